public import RondoCore

/// Options of a connection's socket: a stream's property `.socketOptionsKey`, and part of a listener's
/// configuration.
public struct SocketOptions: Sendable, Hashable {
    /// Probes that tell a silent peer from one that is gone (RFC 9293, section 3.8.4). A connection whose
    /// peer answers none of them fails (`ETIMEDOUT`) after `idle + interval × probes` seconds of silence. For
    /// numbers beyond the limits, the kernel gets the nearest that it accepts.
    public struct KeepAlive: Sendable, Hashable {
        /// Seconds of silence before the first probe, 1 to 32,767.
        public var idle: Int
        /// Seconds between two probes, 1 to 32,767.
        public var interval: Int
        /// The number of unanswered probes after which the connection fails, 1 to 127.
        public var probes: Int

        /// Numbers beyond the limits are replaced by the nearest that the kernel accepts.
        public init(idle: Int = 60, interval: Int = 10, probes: Int = 6) {
            self.idle = min(max(1, idle), 32_767)
            self.interval = min(max(1, interval), 32_767)
            self.probes = min(max(1, probes), 127)
        }
    }

    /// Whether written bytes are sent at once (`TCP_NODELAY`), instead of waiting for the acknowledgement of
    /// earlier ones (Nagle's algorithm). True by default: a program that wants large segments writes large
    /// pieces.
    public var sendsAtOnce = true
    /// Nil, the default: no probes.
    public var keepAlive: KeepAlive?
    /// The most seconds that opening may take: look-up, connection, proxy and TLS together. Nil, the default:
    /// as long as the kernel tries. Can be set only before the stream is opened. TLS that begins later
    /// (STARTTLS) has the same limit again.
    public var connectTimeout: TimeInterval?

    public init() {}
}

extension Socket {
    /// Applies the options to an open socket. A socket other than TCP accepts none of TCP's, and needs none.
    static func apply(_ options: SocketOptions, to descriptor: Int32) {
        set(Int32(IPPROTO_TCP), TCP_NODELAY, options.sendsAtOnce ? 1 : 0, descriptor)
        apply(options.keepAlive, to: descriptor)
    }

    /// Has the kernel probe a silent peer; nil: not.
    static func apply(_ keepAlive: SocketOptions.KeepAlive?, to descriptor: Int32) {
        let tcp = Int32(IPPROTO_TCP)
        set(SOL_SOCKET, SO_KEEPALIVE, keepAlive == nil ? 0 : 1, descriptor)
        guard let keepAlive else { return }
        // The limits hold for numbers that were set later, too.
        let limited = SocketOptions.KeepAlive(
            idle: keepAlive.idle, interval: keepAlive.interval, probes: keepAlive.probes)
        set(tcp, TCP_KEEPIDLE, limited.idle, descriptor)
        set(tcp, TCP_KEEPINTVL, limited.interval, descriptor)
        set(tcp, TCP_KEEPCNT, limited.probes, descriptor)
    }

    private static func set(_ level: Int32, _ option: Int32, _ value: Int, _ descriptor: Int32) {
        var value = Int32(value)
        // Fails for a Unix socket, which needs no such option.
        _ = setsockopt(descriptor, level, option, &value, socklen_t(MemoryLayout<Int32>.size))
    }
}
