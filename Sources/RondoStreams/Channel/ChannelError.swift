package import RondoCore

/// The reason why a channel could not be opened, or failed later; each case names the host.
package indirect enum ChannelError: Error, Equatable, Sendable {
    case resolve(ResolveError)
    /// Every address of the host was tried; the errors are in the order of the attempts. Empty: the host has
    /// no address.
    case connect(host: String, port: Int, [SocketError])
    case tls(TLSError)
    /// A proxy on the way refuses the connection.
    case negotiation(NegotiationError)
    /// The connection was not open within its time limit, in seconds.
    case timedOut(host: String, port: Int, seconds: Double)
    /// The handshake of an accepted connection was dropped, because `limit` newer ones had begun before it
    /// was done.
    case evicted(host: String, port: Int, limit: Int)
    /// The connection failed after it had been open.
    case broken(host: String, port: Int, SocketError)
    /// A proxy on the way to the host cannot be reached, or cannot be secured, or has not let the connection
    /// through within the time limit.
    case proxy(host: String, ChannelError)

    /// Whether TLS has failed, and not the kernel's read or write below it.
    package var isFailureOfTLS: Bool {
        guard case .tls(let error) = self else { return false }
        if case .system = error.reason { return false }
        return true
    }

    /// The cause, in the form that Foundation's errors carry under `NSUnderlyingErrorKey`; nil where Rondo
    /// itself has refused.
    package var underlyingError: NSError? {
        if case .resolve(let error) = self, error.kind == .tooManyLookups { return nil }
        return switch self {
        case .resolve(let error) where error.systemCode != 0:
            NSError.posix(error.systemCode, error.sentence)
        case .resolve(let error):
            NSError(
                domain: "kCFErrorDomainCFNetwork.getaddrinfo", code: Int(error.code),
                userInfo: [NSLocalizedDescriptionKey: error.sentence])
        case .connect(_, _, let errors): errors.last?.posixError
        case .tls(let error):
            NSError(domain: "OpenSSL", code: 0, userInfo: [NSLocalizedDescriptionKey: error.description])
        case .negotiation(let error):
            NSError(
                domain: "kCFErrorDomainCFNetwork", code: error.code,
                userInfo: [NSLocalizedDescriptionKey: error.description])
        case .timedOut: SocketError(code: ETIMEDOUT, operation: .connect).posixError
        case .evicted: SocketError(code: ECONNABORTED, operation: .connect).posixError
        case .broken(_, _, let error): error.posixError
        case .proxy(_, let error): error.underlyingError
        }
    }
}

extension ChannelError {
    /// Whether the program has rejected the peer (`TLSTrust.reject()`).
    package var isRejection: Bool {
        switch self {
        case .tls(let error): error.isRejection
        case .proxy(_, let error): error.isRejection
        case .resolve, .connect, .negotiation, .timedOut, .evicted, .broken: false
        }
    }

    /// The error in the form for a request that is sent to a proxy: an error that says that the proxy cannot
    /// be reached becomes `.proxy`.
    package func ofProxy(onWayTo host: String) -> ChannelError {
        switch self {
        case .resolve, .connect, .tls, .timedOut: .proxy(host: host, self)
        case .negotiation, .evicted, .broken, .proxy: self
        }
    }
}

extension ChannelError: CustomStringConvertible {
    /// A sentence with host, port and cause.
    package var description: String {
        switch self {
        case .resolve(let error): error.description
        case .connect(let host, let port, _) where UInt16(exactly: port) == nil:
            "could not connect to \(host): \(port) is not a port; ports are numbers from 0 to 65535"
        case .connect(let host, let port, let errors):
            errors.isEmpty
                ? "\(host) has no address to connect to on port \(port)"
                : "could not connect to \(Self.place(host, port)): \(Self.causes(errors, host: host))"
        case .tls(let error): error.description
        case .negotiation(let error): error.description
        case .timedOut(let host, let port, let seconds):
            "the connection\(Self.peer(host, port)) was not ready within \(Self.time(seconds))"
        case .evicted(let host, let port, let limit):
            "the TLS handshake with \(Self.place(host, port)) was given up: \(limit) newer ones had begun "
                + "before it was over (StreamListener.Configuration.maximumUnfinishedHandshakes)"
        case .broken(let host, let port, let error):
            "the connection\(Self.peer(host, port))\(host.isEmpty || host.hasPrefix("/") ? "" : ",") broke: "
                + error.description
        case .proxy(let host, .timedOut(let proxy, let port, let seconds)):
            "the connection to \(host) through the proxy \(Self.place(proxy, port)) was not ready within "
                + Self.time(seconds)
        case .proxy(let host, let error):
            "the proxy on the way to \(host) cannot be used: \(error.description)"
        }
    }

    private static func time(_ seconds: Double) -> String {
        "\(seconds.formatted(.number.precision(.fractionLength(0...3)))) s"
    }

    /// Nothing for a descriptor whose peer has no address.
    private static func peer(_ host: String, _ port: Int) -> String {
        host.isEmpty ? "" : " to \(place(host, port))"
    }

    /// A Unix socket has a path and no port.
    private static func place(_ host: String, _ port: Int) -> String {
        host.hasPrefix("/") ? host : "\(host), port \(port)"
    }

    /// The error of each address; the address itself only where it says more than the host.
    private static func causes(_ errors: [SocketError], host: String) -> String {
        errors.map { error in
            if error.operation == .bind { return error.description }
            let sentence = SocketError.sentence(of: error.code)
            guard let address = error.address, address.host != host else { return sentence }
            return "\(address): \(sentence)"
        }.joined(separator: "; ")
    }
}
