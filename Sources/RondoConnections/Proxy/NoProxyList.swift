internal import RondoCore
internal import RondoHTTP
internal import RondoStreams

/// The hosts of `no_proxy`: separated by commas or spaces, `*` for all.
///
/// A name matches itself and every host below it, with or without a leading dot; if it has a port, only that
/// port. An address matches itself, or with a prefix length (`10.0.0.0/8`) its network.
package struct NoProxyList: Sendable, Hashable {
    private enum Entry: Sendable, Hashable {
        case everything
        case name(String, port: Int?)
        case network([UInt8], prefix: Int, port: Int?)
    }

    private let entries: [Entry]

    package init(_ text: String) {
        entries = text.split(whereSeparator: { $0 == "," || $0.isWhitespace }).compactMap {
            Self.entry(String($0).lowercased())
        }
    }

    /// Only the addresses and the networks of `texts`, not the names.
    package init(networks texts: [String]) {
        entries = texts.compactMap { Self.entry($0.lowercased()) }.filter {
            if case .network = $0 { true } else { false }
        }
    }

    /// A host as lists compare it: in lower case, without the brackets of an IPv6 address and the dot at the
    /// end.
    package static func compared(_ host: String) -> String {
        var host = unbracketed(host.lowercased())
        while host.hasSuffix(".") { host.removeLast() }
        return host
    }

    package func contains(host: String, port: Int) -> Bool {
        let host = Self.compared(host)
        let address = Self.bytes(of: host)
        return entries.contains { entry in
            switch entry {
            case .everything: true
            case .name(let name, let wanted):
                (host == name || host.hasSuffix("." + name)) && (wanted ?? port) == port
            case .network(let bytes, let prefix, let wanted):
                address.map { Self.agree($0, bytes, prefix) } ?? false && (wanted ?? port) == port
            }
        }
    }

    private static func entry(_ text: String) -> Entry? {
        if text == "*" { return .everything }
        if let slash = text.lastIndex(of: "/") {
            guard let bytes = bytes(of: unbracketed(String(text[..<slash]))),
                let prefix = Int(text[text.index(after: slash)...]), (0...bytes.count * 8).contains(prefix)
            else { return nil }
            return .network(bytes, prefix: prefix, port: nil)
        }
        // A plain IPv6 address has colons and no port.
        if let bytes = bytes(of: text) { return .network(bytes, prefix: bytes.count * 8, port: nil) }
        var name = text
        var port: Int?
        if let colon = text.lastIndex(of: ":"),
            text[text.index(after: colon)...].utf8.allSatisfy(Grammar.isDigit)
        {
            // A port that does not exist matches no server; without it the name would stand for every port.
            guard case .number(let number) = URIPort(authority: text) else { return nil }
            name = String(text[..<colon])
            port = Int(number)
        }
        if let bytes = bytes(of: unbracketed(name)) {
            return .network(bytes, prefix: bytes.count * 8, port: port)
        }
        while name.hasPrefix(".") { name.removeFirst() }
        while name.hasSuffix(".") { name.removeLast() }
        return name.isEmpty ? nil : .name(name, port: port)
    }

    private static func unbracketed(_ text: String) -> String {
        text.hasPrefix("[") && text.hasSuffix("]") ? String(text.dropFirst().dropLast()) : text
    }

    /// An address as its bytes, 4 or 16; nil for a name.
    private static func bytes(of text: String) -> [UInt8]? {
        var four = in_addr()
        if inet_pton(AF_INET, text, &four) == 1 { return withUnsafeBytes(of: &four) { Array($0) } }
        var six = in6_addr()
        if inet_pton(AF_INET6, text, &six) == 1 { return withUnsafeBytes(of: &six) { Array($0) } }
        return nil
    }

    private static func agree(_ left: [UInt8], _ right: [UInt8], _ prefix: Int) -> Bool {
        guard left.count == right.count else { return false }
        let whole = prefix / 8
        guard left[..<whole] == right[..<whole] else { return false }
        let rest = prefix % 8
        return rest == 0 || (left[whole] ^ right[whole]) >> (8 - rest) == 0
    }
}
