// The errors of TLS as values: OpenSSL's error queue is translated once, here.

internal import CRondoOpenSSL
internal import RondoCore

/// The reason why a connection could not be secured, or is secured no longer.
package struct TLSError: Error, Hashable, Sendable {
    package enum Reason: Hashable, Sendable {
        /// The peer's certificate was refused.
        case certificate(CertificateProblem)
        /// The client has sent no certificate, and this server requires one.
        case certificateMissing
        /// The peer requires a certificate, and this side has sent none; the alert by which the peer says so.
        case certificateRequired(Alert)
        /// The two sides have no version of TLS in common; OpenSSL's words for it.
        case protocolVersion(String)
        /// The peer has aborted with an alert.
        case alert(Alert)
        /// The peer closed the connection before it was secured; with the errno, if the close was a reset.
        case closedDuringHandshake(Int32?)
        /// The peer's bytes are not TLS; OpenSSL's words for it.
        case notTLS(String)
        /// The peer violated the TLS protocol in another way; OpenSSL's words for it.
        case protocolViolation(String)
        /// The kernel refused to read or write; an errno.
        case system(Int32)
        /// Our own settings cannot be used; a sentence says which and why.
        case settings(String, Setting = .other)
    }

    /// The setting at fault.
    package enum Setting: Hashable, Sendable {
        /// `TLSSettings.ciphers` or `cipherSuites`.
        case ciphers
        /// `TLSSettings.certificateAuthorities`.
        case authorities
        case revocationLists
        case other
    }

    /// A fatal alert that the peer has sent (RFC 8446, section 6).
    package struct Alert: Hashable, Sendable, CustomStringConvertible {
        package let number: UInt8

        package static let handshakeFailure = Alert(number: 40)
        package static let protocolVersion = Alert(number: 70)
        package static let certificateRequired = Alert(number: 116)

        package init(number: UInt8) { self.number = number }

        /// "handshake failure (alert 40)".
        package var description: String {
            // OpenSSL 3.0 has no words for this one.
            let words =
                self == .certificateRequired
                ? "certificate required" : String(cString: SSL_alert_desc_string_long(Int32(number)))
            return "\(words) (alert \(number))"
        }
    }

    package let reason: Reason
    /// The host of the connection; empty if the settings failed before a host was known.
    package let host: String
    /// True if this side is the server, and `host` its client.
    package let isServers: Bool

    package init(_ reason: Reason, host: String = "", isServers: Bool = false) {
        self.reason = reason
        self.host = host
        self.isServers = isServers
    }

    /// Whether the program has rejected the peer (`TLSTrust.reject()`).
    var isRejection: Bool {
        if case .certificate(let problem) = reason { problem.kind == .rejected } else { false }
    }

    package func naming(host: String) -> TLSError { TLSError(reason, host: host, isServers: isServers) }
}

extension TLSError: CustomStringConvertible {
    package var description: String {
        let peer = host.isEmpty ? (isServers ? "the client" : "the server") : host
        switch reason {
        case .certificate(let problem):
            return problem.description(host: peer)
        case .certificateMissing:
            return "\(peer) showed no certificate, which TLSSettings.clientCertificates requires"
        case .protocolVersion(let words):
            return "\(peer) and this side have no version of TLS in common (\(words)). "
                + "The \(isServers ? "client" : "server") should offer TLS 1.2 or 1.3; see TLSSettings.minimumVersion"
        case .alert(let alert):
            return "\(peer) refused to go on with TLS: \(alert)\(hint(for: alert))"
        case .certificateRequired(let alert):
            // A server's certificate is no answer to a client that says so.
            let hint = isServers ? "" : ". It asks for a certificate of this side's (TLSSettings.identity)"
            return "\(peer) refused to go on with TLS: \(alert)\(hint)"
        case .closedDuringHandshake(let code):
            let how = code.map { ": \(SocketError.sentence(of: $0))" } ?? ""
            return "\(peer) closed the connection before it was secured\(how). "
                + (isServers
                    ? "Check that the client speaks TLS, and that it trusts this server's certificate"
                    : "Check that this port speaks TLS, and that nothing in between blocks it")
        case .notTLS(let words) where isServers:
            return "what the client \(host.isEmpty ? "" : "at \(host) ")sends is not TLS (\(words)). "
                + "Check its URL: it probably speaks without TLS, as http:// does"
        case .notTLS(let words):
            return "what \(peer) answers is not TLS (\(words)). "
                + "Check the port: it probably speaks without TLS, as http:// does, or has refused to change to TLS"
        case .protocolViolation(let words):
            return "\(peer) broke the rules of TLS: \(words)"
        case .system(let code):
            return "the secured connection to \(peer) failed: \(SocketError.sentence(of: code))"
        case .settings(let words, _):
            return words
        }
    }

    private func hint(for alert: Alert) -> String {
        switch alert.number {
        case 40, 71: ". Its ciphers or its age may be below what this side accepts"
        case 42...46,
            48 where isServers:
            ". It does not trust this server's certificate (TLSSettings.identity)"
        case 42...46, 48: ". It asks for a certificate of this side's that it trusts"
        case 112: ". It has no certificate for that name"
        case 120: ". It speaks none of the protocols in TLSSettings.alpn"
        default: ""
        }
    }
}

// MARK: - OpenSSL's error queue

/// OpenSSL's error queue of the current thread. It must be empty before a call, because `SSL_get_error` looks
/// at it, and must be drained after a failure, so that no later call finds old errors.
enum OpenSSLErrors {
    struct Entry {
        let code: UInt
        var library: Int32 { ERR_GET_LIB(code) }
        var reason: Int32 { ERR_GET_REASON(code) }
        /// "wrong version number".
        var words: String {
            if let text = ERR_reason_error_string(code) { return String(cString: text) }
            return "error \(String(code, radix: 16))"
        }
    }

    static func clear() { ERR_clear_error() }

    /// Removes and returns all errors, the first one first.
    static func drain() -> [Entry] {
        var entries: [Entry] = []
        while true {
            let code = ERR_get_error()
            if code == 0 { return entries }
            entries.append(Entry(code: code))
        }
    }

    /// The words of the first error in the queue, which is drained; for failures of local calls.
    static func drainedWords() -> String { drain().first?.words ?? "unknown error" }

    /// Translates OpenSSL's first error. The engine itself handles a failed verification.
    static func reason(for entry: Entry) -> TLSError.Reason {
        if entry.reason == ERR_R_MALLOC_FAILURE { return .system(ENOMEM) }
        guard entry.library == ERR_LIB_SSL else { return .protocolViolation(entry.words) }
        switch entry.reason {
        case SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE:
            return .certificateMissing
        case SSL_R_WRONG_VERSION_NUMBER, SSL_R_HTTP_REQUEST, SSL_R_HTTPS_PROXY_REQUEST:
            return .notTLS(entry.words)
        case SSL_R_UNSUPPORTED_PROTOCOL, SSL_R_WRONG_SSL_VERSION, SSL_R_VERSION_TOO_LOW,
            SSL_R_VERSION_TOO_HIGH, SSL_R_NO_PROTOCOLS_AVAILABLE, SSL_R_TLSV1_ALERT_PROTOCOL_VERSION:
            return .protocolVersion(entry.words)
        case SSL_AD_REASON_OFFSET...(SSL_AD_REASON_OFFSET + 255):
            let alert = TLSError.Alert(number: UInt8(entry.reason - SSL_AD_REASON_OFFSET))
            return alert == .certificateRequired ? .certificateRequired(alert) : .alert(alert)
        default:
            return .protocolViolation(entry.words)
        }
    }
}
