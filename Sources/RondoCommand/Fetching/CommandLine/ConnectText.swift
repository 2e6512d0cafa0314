import Rondo
import RondoStreams

/// The values of options for connections, in curl's spelling.
enum ConnectText {
    /// `host:port:address,address`. A `+` in front means that the entry may expire; `-host:port` removes an
    /// entry.
    static func addResolution(_ text: String, to settings: inout ConnectSettings) throws {
        let isRemoved = text.first == "-"
        var rest = text[...]
        if isRemoved || text.first == "+" { rest = rest.dropFirst() }
        guard let host = takeHost(&rest), let digits = takePart(&rest), let port = UInt16(digits) else {
            throw unusable("--resolve", text)
        }
        let place = ConnectSettings.Place(host: host.lowercased(), port: Int(port))
        if isRemoved {
            settings.addresses[place] = nil
            return
        }
        let addresses = rest.split(separator: ",").map { withoutBrackets(String($0)) }
        guard !addresses.isEmpty, addresses.allSatisfy({ SocketAddress(literal: $0, port: port) != nil })
        else {
            throw unusable("--resolve", text)
        }
        settings.addresses[place] = addresses
    }

    /// `host:port:host:port`, each of which may be empty.
    static func detour(_ text: String) throws -> ConnectSettings.Detour {
        var rest = text[...]
        let from = (takeHost(&rest), takePart(&rest))
        let to = (takeHost(&rest), takePart(&rest))
        guard text.count(where: { $0 == ":" }) >= 3, let fromHost = from.0, let fromPort = port(from.1),
            let toHost = to.0,
            let toPort = port(to.1 ?? "")
        else { throw CommandFailure.usage("--connect-to wants 'host:port:host:port', not '\(text)'") }
        return ConnectSettings.Detour(
            fromHost: fromHost.isEmpty ? nil : fromHost, fromPort: fromPort == 0 ? nil : fromPort,
            toHost: toHost.isEmpty ? nil : toHost, toPort: toPort == 0 ? nil : toPort)
    }

    /// 0 if the text is empty; nil if it is no port.
    private static func port(_ text: String?) -> Int? {
        guard let text else { return nil }
        return text.isEmpty ? 0 : UInt16(text).map { Int($0) }
    }

    /// The text up to the next colon. An IPv6 address in brackets may contain colons.
    private static func takeHost(_ rest: inout Substring) -> String? {
        guard rest.first == "[", let end = rest.firstIndex(of: "]") else { return takePart(&rest) }
        let host = String(rest[rest.index(after: rest.startIndex)..<end])
        rest = rest[rest.index(after: end)...].drop { $0 == ":" }
        return host
    }

    private static func takePart(_ rest: inout Substring) -> String? {
        let part = rest.prefix { $0 != ":" }
        rest = rest.dropFirst(part.count + 1)
        return String(part)
    }

    private static func withoutBrackets(_ text: String) -> String {
        text.hasPrefix("[") && text.hasSuffix("]") ? String(text.dropFirst().dropLast()) : text
    }

    private static func unusable(_ option: String, _ text: String) -> FetchFailure {
        FetchFailure(
            .badURL, "\(option) wants 'host:port:address', the address as numbers, not '\(text)'",
            status: .badOptionSyntax)
    }

    /// The name of an interface, `if!name`, an address, or `host!address`.
    static func localEnd(_ text: String) throws -> ConnectSettings.LocalEnd {
        if text.hasPrefix("if!") { return .interface(String(text.dropFirst(3))) }
        let name = text.hasPrefix("host!") ? String(text.dropFirst(5)) : text
        if SocketAddress(literal: name, port: 0) != nil { return .address(name) }
        if let addresses = Resolver.loopback(host: name, port: 0) { return .address(addresses[0].host) }
        return .interface(name)
    }

    /// - Throws: `FetchFailure` if this machine has no such interface.
    static func check(_ settings: ConnectSettings) throws(FetchFailure) {
        guard let name = settings.localEnd.interfaceName, if_nametoindex(name) == 0 else { return }
        throw FetchFailure(
            .cannotConnectToHost, "--interface: this machine has no interface or address “\(name)”",
            status: .badInterface)
    }

    static func ports(_ text: String) throws -> ClosedRange<UInt16> {
        let parts = text.split(separator: "-", maxSplits: 1).map {
            UInt16($0.trimmingCharacters(in: .whitespaces))
        }
        guard let first = parts.first ?? nil, let last = parts.last ?? nil, first <= last else {
            throw CommandFailure.usage("--local-port: no port or range of ports: \(text)")
        }
        return first...last
    }

    /// `file:password`; `\:` is a colon in the file's name.
    static func certificate(_ text: String, _ before: String?) -> (file: String, password: String?) {
        var file = ""
        var rest = text[...]
        while let character = rest.popFirst() {
            if character == "\\", let next = rest.first, next == ":" || next == "\\" {
                file.append(next)
                rest = rest.dropFirst()
            } else if character == ":" {
                return (file, String(rest))
            } else {
                file.append(character)
            }
        }
        return (file, before)
    }
}
