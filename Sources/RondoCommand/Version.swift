internal import CRondoOpenSSL
internal import Rondo

/// The output of `rondo --version`: the facts that a bug report needs.
enum Version {
    static var text: String {
        let system = ProcessInfo.processInfo.operatingSystemVersionString
        let tls = OpenSSL_version(OPENSSL_VERSION).map { String(cString: $0) } ?? "unknown"
        return "rondo \(rondoVersion)\nTLS: \(tls)\nSystem: \(system)"
    }
}
