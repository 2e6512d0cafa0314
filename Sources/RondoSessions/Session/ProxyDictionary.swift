internal import FoundationNetworking
internal import RondoConnections
internal import RondoCore
internal import RondoStreams

/// Reads the proxy settings of `connectionProxyDictionary`, which uses CFNetwork's keys.
enum ProxyDictionary {
    /// The proxy that the dictionary chooses: `.direct` if it is empty, nil if it enables none.
    static func choice(_ keyed: [AnyHashable: Any]) -> URLConnection.ProxyChoice? {
        // A key may be a String or an NSString, which are different keys on Linux.
        let dictionary = [String: Any](keyed.map { ("\($0.key.base)", $0.value) }) { $1 }
        for kind in ["HTTPS", "HTTP", "SOCKS"] {
            guard isOn(dictionary["\(kind)Enable"]), let host = dictionary["\(kind)Proxy"] as? String,
                !host.isEmpty, let port = number(dictionary["\(kind)Port"]), 1...65_535 ~= port
            else { continue }
            let proxy =
                kind == "SOCKS"
                ? StreamProxy(.socks5, host: host, port: port)
                : StreamProxy(.httpConnect, host: host, port: port)
            return .by(proxy)
        }
        return dictionary.isEmpty ? .direct : nil
    }

    private static func isOn(_ value: Any?) -> Bool {
        (value as? Bool) ?? (number(value).map { $0 != 0 } ?? false)
    }

    private static func number(_ value: Any?) -> Int? {
        (value as? Int) ?? (value as? NSNumber)?.intValue ?? (value as? String).flatMap { Int($0) }
    }
}
