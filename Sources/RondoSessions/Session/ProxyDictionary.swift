internal import FoundationNetworking
internal import RondoConnections
internal import RondoCore
internal import RondoStreams

/// A proxy by the keys of CFNetwork, as `connectionProxyDictionary` has them.
enum ProxyDictionary {
    /// Nil: it names none that is switched on.
    static func choice(_ keyed: [AnyHashable: Any]) -> URLConnection.ProxyChoice? {
        // A key is a String or an NSString, which Linux does not take for the same.
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
