import RondoCore
import RondoTestSupport
import Testing

@testable import RondoStreams

/// Tests when a server asks the program about a client.
@Suite(.timeLimit(.minutes(5)), .leavesNothing) struct ServerQuestionTests {
    /// The type of the message that shows a certificate (RFC 5246, section 7.4).
    private static let certificateType: UInt8 = 11

    /// The bytes that have come, without waiting.
    private static func received(by descriptor: Int32) -> [UInt8] {
        var bytes: [UInt8] = []
        var piece = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = recv(descriptor, &piece, piece.count, Int32(MSG_DONTWAIT))
            guard count > 0 else { return bytes }
            bytes += piece.prefix(count)
        }
    }

    /// The end of the record that holds the message with the certificate; nil if there is none.
    private static func endOfCertificate(in flight: [UInt8]) -> Int? {
        var start = 0
        while start + 5 < flight.count {
            let end = start + 5 + Int(flight[start + 3]) << 8 + Int(flight[start + 4])
            if flight[start] == 22, flight[start + 5] == certificateType { return end }
            start = end
        }
        return nil
    }

    /// In TLS 1.2 each message of the client's has a record of its own.
    @Test
    func `ST-44 in TLS 1.2 a server asks about a client once its key is proved, and counts it until then`()
        throws
    {
        let settings = try TLSServerTests.settings {
            $0.clientCertificates = .required
            $0.maximumVersion = .tls12
        }
        let certificates = TestCertificates.shared
        let identity = try TLSIdentity(
            chainFile: certificates.path(.client), privateKeyFile: certificates.keyPath)
        let findings = try onStreamThread { loop in
            let (clientEnd, clientPeer) = try PlainSocket.pair()
            let (serverEnd, serverPeer) = try PlainSocket.pair()
            let socket = try Socket(adopting: clientEnd)
            let client = try TLSEngine(
                context: .shared(for: .test { $0.identity = identity }), descriptor: socket.descriptor,
                hostName: "localhost")
            let handshakes = UnfinishedHandshakes(limit: 4, seconds: nil)
            var configuration = SocketChannel.Configuration(host: "the client", port: 0, tls: settings)
            configuration.handshakes = handshakes
            let talk = Conversation(
                SocketChannel(adopting: try Socket(adopting: serverEnd), configuration))
            var questions: [TLSTrust] = []
            talk.channel.handlers.onTrust = { questions.append($0) }
            talk.open(in: loop)
            _ = try client.handshake()
            PlainSocket.send(Self.received(by: clientPeer), on: serverPeer)
            loop.pass()
            PlainSocket.send(Self.received(by: serverPeer), on: clientPeer)
            _ = try client.handshake()
            let flight = Self.received(by: clientPeer)
            let end = try #require(Self.endOfCertificate(in: flight))
            var counts: [String] = []
            for piece in [flight[..<end], flight[end..<end + 1], flight[(end + 1)...]] {
                PlainSocket.send(Array(piece), on: serverPeer)
                loop.pass()
                counts.append("\(questions.count) \(handshakes.count)")
            }
            questions.first?.accept()
            try loop.run { talk.channel.isOpen || talk.failure != nil }
            client.detach()
            socket.close()
            close(clientPeer)
            close(serverPeer)
            talk.channel.close()
            return counts + [talk.words.last ?? "none"]
        }
        #expect(findings == ["0 1", "0 1", "1 0", "open"])
    }
}
