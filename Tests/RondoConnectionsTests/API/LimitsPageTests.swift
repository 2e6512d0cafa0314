import Rondo
import RondoTestSupport
import Testing

@testable import RondoConnections
@testable import RondoHTTP

/// The article “Limits”, compared with the constants that it lists. Its other sections are compared by the tests of streams,
/// of sessions and of the command.
@Suite struct LimitsPageTests {
    @Test func `the sections of the article about limits are those that tests compare`() throws {
        #expect(try LimitsPage.headings() == LimitsPage.Section.allCases.map(\.rawValue))
    }

    @Test func `the article about limits has the numbers of responses over HTTP`() throws {
        let (head, part) = (HTTP1Limits(), MultipartReader.Limits())
        let differences = try LimitsPage.differences(
            in: .responses,
            from: [
                "HTTP1Limits.maximumStatusLineLength": head.maximumStatusLineLength,
                "HTTP1Limits.maximumHeadSize": head.maximumHeadSize,
                "HTTP1Limits.maximumFieldCount": head.maximumFieldCount,
                "HTTP1Limits.maximumInformationalResponses": head.maximumInformationalResponses,
                "HTTP1Limits.maximumEmptyLines": head.maximumEmptyLines,
                "HTTP1Limits.maximumChunkLineLength": head.maximumChunkLineLength,
                "HTTP1Limits.maximumTrailerSize": head.maximumTrailerSize,
                "ReceiveBuffer.capacity": ReceiveBuffer.capacity,
                "MultipartReader.maximumBoundaryLength": MultipartReader.maximumBoundaryLength,
                "MultipartReader.Limits.maximumHeadSize": part.maximumHeadSize,
                "MultipartReader.Limits.maximumFieldCount": part.maximumFieldCount,
                "MultipartReader.Limits.maximumPadding": part.maximumPadding,
            ])
        #expect(differences == [])
    }

    @Test func `the article about limits has the numbers of content`() throws {
        let content = RondoHTTP.ContentLimits()
        let differences = try LimitsPage.differences(
            in: .content,
            from: [
                "ContentLimits.maximumRatio": Int(content.maximumRatio),
                "ContentLimits.ratioThreshold": Int(content.ratioThreshold),
                "ContentLimits.maximumCodings": content.maximumCodings,
                "ZstdDecoder.maximumWindowLog": Int(ZstdDecoder.maximumWindowLog),
                "CollectedBody.maximumBytes": CollectedBody.maximumBytes,
                "URLConnection.Lines.maximumLength": URLConnection.Lines.maximumLength,
                "ProtocolBridge.maximumWaitingBytes": ProtocolBridge.maximumWaitingBytes,
                "QueuedCalls.maximumWaitingBytes": QueuedCalls.maximumWaitingBytes,
                "ByteSource.maximumWaitingBytes": ByteSource.maximumWaitingBytes,
                "RequestBody.pieceSize": RequestBody.pieceSize,
                "BodySpool.maximumInMemory": BodySpool.maximumInMemory,
                "BodySpool.maximum": Int(BodySpool.maximum),
            ],
            uncompared: ["ContentLimits.maximumSize": "It is no limit unless a program sets one."])
        #expect(differences == [])
    }

    @Test func `the article about limits has the numbers of loads`() throws {
        let connections = ConnectionLimits()
        let differences = try LimitsPage.differences(
            in: .load,
            from: [
                "RedirectPolicy.maximum": URLConnection.RedirectPolicy().maximum,
                "RetryRule.maximum": RetryRule.maximum,
                "DownloadTarget.maximumResumptions": DownloadTarget.maximumResumptions,
                "Challenge.maximumCount": Challenge.maximumCount,
                "Authentication.maximumSilentAttempts": Authentication.maximumSilentAttempts,
                "Authentication.maximumRefusals": Authentication.maximumRefusals,
                "Authentication.maximumRenewals": Authentication.maximumRenewals,
                "ConnectionLimits.connectionsPerServer": connections.connectionsPerServer,
                "ConnectionLimits.connections": connections.connections,
                "ConnectionLimits.idleConnectionsPerServer": connections.idleConnectionsPerServer,
                "ConnectionLimits.idleConnections": connections.idleConnections,
                "IdleConnections.maximumIdleSeconds": Int(IdleConnections<Int>.maximumIdleSeconds),
                "LoadTransfers.maximum": LoadTransfers.maximum,
                "SuggestedFilename.maximumLength": SuggestedFilename.maximumLength,
            ])
        #expect(differences == [])
    }

    @Test func `the article about limits has the numbers of storages`() throws {
        let day = 86_400.0
        let differences = try LimitsPage.differences(
            in: .storages,
            from: [
                "SetCookie.maximumSize": SetCookie.maximumSize,
                "SetCookie.maximumAttributeSize": SetCookie.maximumAttributeSize,
                "CookieRules.maximumPerDomain": CookieRules.maximumPerDomain,
                "CookieRules.maximumCount": CookieRules.maximumCount,
                "CookieRules.maximumAge": Int(CookieRules.maximumAge / day),
                "CookieTable.maximumComparisons": CookieTable.maximumComparisons,
                "StrictTransportSecurity.maximumCount": StrictTransportSecurity.maximumCount,
                "StrictTransportSecurity.maximumHostLength": StrictTransportSecurity.maximumHostLength,
                "StrictTransportSecurity.maximumFieldLength": StrictTransportSecurity.maximumFieldLength,
                "CredentialList.maximumCount": CredentialList.maximumCount,
                "CredentialList.maximumPerServer": CredentialList.maximumPerServer,
                "CredentialList.maximumEntrySize": CredentialList.maximumEntrySize,
                "CacheEntry.maximumHeuristicLifetime": Int(CacheEntry.maximumHeuristicLifetime / day),
                "ResponseDisk.maximumSize": ResponseDisk.maximumSize,
                "ResponseDisk.maximumWaiting": ResponseDisk.maximumWaiting,
                "ResponseDisk.maximumWaitingBytes": ResponseDisk.maximumWaitingBytes,
                "ResponseDisk.maximumWaitingRemovals": ResponseDisk.maximumWaitingRemovals,
                "MemoryTable.maximumVariants": MemoryTable.maximumVariants,
                "KeptDownloads.maximumCount": KeptDownloads.maximumCount,
                "KeptDownloads.maximumBytes": Int(KeptDownloads.maximumBytes),
                "KeptDownloads.maximumAge": Int(KeptDownloads.maximumAge / day),
            ],
            uncompared: ["ResponseStore.maximumSize": "It is a part of the capacity."])
        #expect(differences == [])
    }
}
