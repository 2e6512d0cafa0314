import Rondo
import RondoHTTP
import RondoStreams
import Testing

@testable import RondoConnections

/// The article “Limits”, compared with the constants that it lists.
@Suite struct LimitsPageTests {
    /// The values of the rows, by the name in their first cell.
    private static func rows() throws -> [String: String] {
        let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        let page = root.appendingPathComponent("Sources/Rondo/Rondo.docc/EveryLimit.md")
        var rows: [String: String] = [:]
        let text = try String(contentsOf: page, encoding: .utf8)
        for line in text.split(separator: "\n") {
            let cells = line.split(separator: "|").map { $0.trimmingCharacters(in: .whitespaces) }
            guard cells.count == 4, cells[0].hasPrefix("`") else { continue }
            rows[cells[0].trimmingCharacters(in: ["`"])] = cells[1]
        }
        return rows
    }

    /// The number in a cell such as “256 KiB” or “1,000”.
    private static func number(_ cell: String) -> Int? {
        let words = cell.split(separator: " ")
        let units = ["KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30]
        guard let first = words.first, let count = Int(first.filter { $0 != "," }) else { return nil }
        return words.count == 1 ? count : units[String(words[1])].map { count * $0 }
    }

    @Test func `the article about limits has the numbers of HTTP`() throws {
        let (head, part, content) = (HTTP1Limits(), MultipartReader.Limits(), RondoHTTP.ContentLimits())
        try Self.compare([
            "HTTP1Limits.maximumStatusLineLength": head.maximumStatusLineLength,
            "HTTP1Limits.maximumHeadSize": head.maximumHeadSize,
            "HTTP1Limits.maximumFieldCount": head.maximumFieldCount,
            "HTTP1Limits.maximumInformationalResponses": head.maximumInformationalResponses,
            "HTTP1Limits.maximumEmptyLines": head.maximumEmptyLines,
            "HTTP1Limits.maximumChunkLineLength": head.maximumChunkLineLength,
            "HTTP1Limits.maximumTrailerSize": head.maximumTrailerSize,
            "MultipartReader.Limits.maximumHeadSize": part.maximumHeadSize,
            "MultipartReader.Limits.maximumFieldCount": part.maximumFieldCount,
            "ContentLimits.maximumRatio": Int(content.maximumRatio),
            "ContentLimits.ratioThreshold": Int(content.ratioThreshold),
            "ContentLimits.maximumCodings": content.maximumCodings,
            "SetCookie.maximumSize": SetCookie.maximumSize,
            "CookieRules.maximumPerDomain": CookieRules.maximumPerDomain,
            "CookieRules.maximumCount": CookieRules.maximumCount,
            "StrictTransportSecurity.maximumCount": StrictTransportSecurity.maximumCount,
        ])
    }

    @Test func `the article about limits has the numbers of loads and streams`() throws {
        let connections = ConnectionLimits()
        try Self.compare([
            "CollectedBody.maximumBytes": CollectedBody.maximumBytes,
            "ProtocolBridge.maximumWaitingBytes": ProtocolBridge.maximumWaitingBytes,
            "BodySpool.maximumInMemory": BodySpool.maximumInMemory,
            "BodySpool.maximum": Int(BodySpool.maximum),
            "DownloadTarget.maximumResumptions": DownloadTarget.maximumResumptions,
            "ConnectionLimits.connectionsPerServer": connections.connectionsPerServer,
            "ConnectionLimits.connections": connections.connections,
            "ConnectionLimits.idleConnectionsPerServer": connections.idleConnectionsPerServer,
            "ConnectionLimits.idleConnections": connections.idleConnections,
            "ResponseDisk.maximumSize": ResponseDisk.maximumSize,
            "ResponseDisk.maximumWaiting": ResponseDisk.maximumWaiting,
            "Resolver.lookUpLimit": Resolver.lookUpLimit,
            "Resolver.threadLimit": Resolver.threadLimit,
            "Resolver.waitingLimit": Resolver.waitingLimit,
        ])
    }

    private static func compare(_ limits: [String: Int]) throws {
        let rows = try rows()
        for (name, value) in limits {
            #expect(rows[name].flatMap(number) == value, "\(name)")
        }
    }
}
