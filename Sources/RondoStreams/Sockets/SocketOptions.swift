public import RondoCore

/// How the socket of a connection behaves; a stream's property `.socketOptionsKey`, and part of a listener's
/// configuration.
public struct SocketOptions: Sendable, Hashable {
    /// Probes that tell a silent peer from one that is gone (RFC 9293, section 3.8.4). A connection whose
    /// peer answers none of them is lost (`ETIMEDOUT`) after `idle + interval × probes` seconds of silence.
    public struct KeepAlive: Sendable, Hashable {
        /// Seconds of silence before the first probe, 1 to 32,767.
        public var idle: Int
        /// Seconds between two probes, 1 to 32,767.
        public var interval: Int
        /// Unanswered probes until the connection is given up, 1 to 127.
        public var probes: Int

        /// Numbers beyond the limits are taken for the nearest that the kernel accepts.
        public init(idle: Int = 60, interval: Int = 10, probes: Int = 6) {
            self.idle = min(max(1, idle), 32_767)
            self.interval = min(max(1, interval), 32_767)
            self.probes = min(max(1, probes), 127)
        }
    }

    /// Whether written bytes go out at once (`TCP_NODELAY`), instead of waiting for the answer to those
    /// sent before (Nagle's algorithm). True at first: a program that wants large segments writes large pieces.
    public var sendsAtOnce = true
    /// Nil, as at first: no probes.
    public var keepAlive: KeepAlive?
    /// How long opening may take, in seconds: look-up, connection, proxy and TLS together. Nil, as at first:
    /// as long as the kernel tries. Only settable before the stream is opened. TLS that begins later (STARTTLS)
    /// has as long again.
    public var connectTimeout: TimeInterval?

    public init() {}
}

extension Socket {
    /// Sets what can be set on an open socket. A socket that is not TCP's takes none of it, and needs none.
    static func apply(_ options: SocketOptions, to descriptor: Int32) {
        let tcp = Int32(IPPROTO_TCP)
        set(tcp, TCP_NODELAY, options.sendsAtOnce ? 1 : 0, descriptor)
        set(SOL_SOCKET, SO_KEEPALIVE, options.keepAlive == nil ? 0 : 1, descriptor)
        guard let keepAlive = options.keepAlive else { return }
        set(tcp, TCP_KEEPIDLE, keepAlive.idle, descriptor)
        set(tcp, TCP_KEEPINTVL, keepAlive.interval, descriptor)
        set(tcp, TCP_KEEPCNT, keepAlive.probes, descriptor)
    }

    private static func set(_ level: Int32, _ option: Int32, _ value: Int, _ descriptor: Int32) {
        var value = Int32(value)
        // Refused for a Unix socket: nothing is lost by that.
        _ = setsockopt(descriptor, level, option, &value, socklen_t(MemoryLayout<Int32>.size))
    }
}
