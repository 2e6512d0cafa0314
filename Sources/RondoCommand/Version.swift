internal import CRondoOpenSSL
internal import Rondo

/// What `rondo --version` says: what a report of a bug has to hold.
enum Version {
    static var text: String {
        let system = ProcessInfo.processInfo.operatingSystemVersionString
        let tls = OpenSSL_version(OPENSSL_VERSION).map { String(cString: $0) } ?? "unknown"
        return "rondo \(rondoVersion)\nTLS: \(tls)\nSystem: \(system)"
    }
}
