import RondoCore
import RondoTestSupport
import Testing

@testable import RondoStreams

/// The article “Limits”, compared with the constants of streams and ports.
@Suite struct StreamLimitsPageTests {
    @Test func `the article about limits has the numbers of streams, names and TLS`() throws {
        let listener = StreamListener.Configuration()
        let differences = try LimitsPage.differences(
            in: .streams,
            from: [
                "Connector.addressLimit": Connector.addressLimit,
                "Resolver.lookUpLimit": Resolver.lookUpLimit,
                "Resolver.threadLimit": Resolver.threadLimit,
                "Resolver.waitingLimit": Resolver.waitingLimit,
                "HostLookUp.threadLimit": HostLookUp.threadLimit,
                "ConnectNegotiation.headLimit": ConnectNegotiation.headLimit,
                "ConnectNegotiation.interimLimit": ConnectNegotiation.interimLimit,
                "ProxyDialogue.limit": ProxyDialogue.limit,
                "PEM.fileLimit": PEM.fileLimit,
                "TLSCertificate.nameLimit": TLSCertificate.nameLimit,
                "TLSCertificate.textLimit": TLSCertificate.textLimit,
                "TLSIdentityRequest.issuerLimit": TLSIdentityRequest.issuerLimit,
                "TLSVerifier.problemLimit": TLSVerifier.problemLimit,
                "TLSSessionCache.hostLimit": TLSSessionCache.hostLimit,
                "TLSSessionCache.sessionLimit": TLSSessionCache.sessionLimit,
                "LingeringClose.connectionLimit": LingeringClose.connectionLimit,
                "LingeringClose.seconds": Int(LingeringClose.seconds),
                "LingeringClose.byteLimit": LingeringClose.byteLimit,
                "StreamListener.Configuration.maximumUnfinishedHandshakes":
                    listener.maximumUnfinishedHandshakes,
                "StreamListener.Configuration.handshakeTimeout": Int(listener.handshakeTimeout ?? 0),
                "StreamChunks.Lines.maximumLength": StreamChunks.Lines.maximumLength,
            ])
        #expect(differences == [])
    }

    @Test func `the article about limits has the numbers of ports`() throws {
        let differences = try LimitsPage.differences(
            in: .ports,
            from: [
                "Port.defaultMaximumQueuedMessages": RondoCore.Port.defaultMaximumQueuedMessages,
                "SocketPort.defaultMaximumMessageSize": RondoStreams.SocketPort.defaultMaximumMessageSize,
                "SocketPort.defaultMaximumConnections": RondoStreams.SocketPort.defaultMaximumConnections,
                "SocketPort.maximumComponents": RondoStreams.SocketPort.maximumComponents,
                "SocketPort.maximumUnfinishedBytes": RondoStreams.SocketPort.maximumUnfinishedBytes,
            ])
        #expect(differences == [])
    }
}
