internal import FoundationNetworking
internal import RondoConnections
internal import RondoCore
internal import RondoStreams

/// Reads the proxy settings of `connectionProxyDictionary`, which uses CFNetwork's keys (rule US-15).
enum ProxyDictionary {
    private typealias SOCKSKey = StreamSOCKSProxyConfiguration

    /// The ports of proxies for which the dictionary names none. As Chromium reads the same dictionaries.
    static let defaultPort = 80, defaultSOCKSPort = 1080

    /// The proxies that the dictionary chooses: `.direct` if it is empty, or enables none; nil if it does not
    /// say which are enabled.
    static func choice(_ keyed: [AnyHashable: Any]) -> URLConnection.ProxyChoice? {
        if keyed.isEmpty { return .direct }
        // A key may be a String or an NSString, which are different keys on Linux.
        let dictionary = [String: Any](keyed.map { ("\($0.key.base)", $0.value) }) { $1 }
        guard ["HTTP", "HTTPS", "SOCKS"].contains(where: { dictionary["\($0)Enable"] != nil }) else {
            return nil
        }
        var proxies = SchemeProxies()
        proxies.http = proxy("HTTP", dictionary)
        proxies.https = proxy("HTTPS", dictionary)
        proxies.socks = proxy("SOCKS", dictionary)
        if proxies.isEmpty { return .direct }
        let exceptions = (dictionary["ExceptionsList"] as? [Any] ?? []).map {
            "\($0)".trimmingCharacters(in: .whitespaces).lowercased()
        }
        proxies.exceptions = NoProxyList(networks: exceptions.map(wholeNetwork))
        proxies.patterns = exceptions.map(pattern)
        proxies.excludesSimpleNames = isOn(dictionary["ExcludeSimpleHostnames"])
        return .bySchemes(proxies)
    }

    // MARK: - Proxies

    /// The proxy of a kind; nil if it is not enabled.
    private static func proxy(_ kind: String, _ dictionary: [String: Any]) -> SchemeProxies.Named? {
        guard isOn(dictionary["\(kind)Enable"]) else { return nil }
        let isSOCKS = kind == "SOCKS"
        let host: Any? = dictionary["\(kind)Proxy"] ?? (isSOCKS ? dictionary[SOCKSKey.hostKey.rawValue] : nil)
        let port: Any? = dictionary["\(kind)Port"] ?? (isSOCKS ? dictionary[SOCKSKey.portKey.rawValue] : nil)
        let number = port == nil ? (isSOCKS ? defaultSOCKSPort : defaultPort) : Self.number(port)
        guard let name = host as? String, !name.isEmpty, let number, 1...65_535 ~= number,
            let proxy = isSOCKS ? socks(name, number, dictionary) : http(name, number, dictionary)
        else {
            return .unusable("\(kind)Proxy \(host ?? "none"), \(kind)Port \(port ?? "none")")
        }
        return .usable(proxy)
    }

    private static func http(_ host: String, _ port: Int, _ dictionary: [String: Any]) -> StreamProxy {
        StreamProxy(
            .httpConnect, host: host, port: port, userName: dictionary[userKey] as? String,
            password: dictionary[passwordKey] as? String)
    }

    /// Nil if the version is unknown.
    private static func socks(_ host: String, _ port: Int, _ dictionary: [String: Any]) -> StreamProxy? {
        var settings: [String: Any] = [SOCKSKey.hostKey.rawValue: host, SOCKSKey.portKey.rawValue: port]
        settings[SOCKSKey.versionKey.rawValue] = dictionary[SOCKSKey.versionKey.rawValue]
        settings[SOCKSKey.userKey.rawValue] = dictionary[SOCKSKey.userKey.rawValue] ?? dictionary[userKey]
        settings[SOCKSKey.passwordKey.rawValue] =
            dictionary[SOCKSKey.passwordKey.rawValue] ?? dictionary[passwordKey]
        return StreamProxy(socksDictionary: settings as NSDictionary)
    }

    /// The values of `kCFProxyUsernameKey` and `kCFProxyPasswordKey`.
    private static let userKey = "kCFProxyUsernameKey", passwordKey = "kCFProxyPasswordKey"

    // MARK: - Exceptions

    /// A pattern of `ExceptionsList` as hosts are compared with it, without a dot at its end.
    private static func pattern(_ exception: String) -> String {
        let pattern = NoProxyList.compared(exception)
        // Without its dot, `*.` would stand for every host.
        return pattern.hasSuffix("*") && exception.hasSuffix(".") ? exception : pattern
    }

    /// A network of `ExceptionsList` with all four numbers of its address: `10.1/16` is `10.1.0.0/16`.
    private static func wholeNetwork(_ pattern: String) -> String {
        let address = pattern.prefix { $0 != "/" }
        let parts = address.split(separator: ".", omittingEmptySubsequences: false)
        guard address.count < pattern.count, parts.count < 4, parts.allSatisfy({ UInt8($0) != nil }) else {
            return pattern
        }
        let whole = (parts + [Substring](repeating: "0", count: 4 - parts.count)).joined(separator: ".")
        return whole + String(pattern.dropFirst(address.count))
    }

    // MARK: - Values

    private static func isOn(_ value: Any?) -> Bool {
        (value as? Bool) ?? (number(value).map { $0 != 0 } ?? false)
    }

    private static func number(_ value: Any?) -> Int? {
        (value as? Int) ?? (value as? NSNumber)?.intValue ?? (value as? String).flatMap { Int($0) }
    }
}
