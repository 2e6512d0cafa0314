internal import RondoCore

/// The destination of a channel, and how it connects.
package struct ChannelConfiguration: Sendable {
    /// The host of the connection: the name for TLS and in errors.
    package var host: String
    package var port: Int

    package init(host: String, port: Int, tls: TLSSettings? = nil, route: ProxyRoute? = nil) {
        self.host = host
        self.port = port
        self.tls = tls
        self.route = route
    }

    /// Nil: the connection is not secured, unless `secure(_:)` does that later.
    package var tls: TLSSettings? {
        get { options?.tls }
        set { set(newValue) { $0.tls = $1 } }
    }

    /// The proxy that leads to the host; nil: the connection is direct.
    package var route: ProxyRoute? {
        get { options?.route }
        set { set(newValue) { $0.route = $1 } }
    }

    /// The resolver that looks the host up.
    package var resolver: Resolver {
        get { options?.resolver ?? .shared }
        set { set(newValue) { $0.resolver = $1 ?? .shared } }
    }

    /// Other addresses, and the local end; nil: the defaults.
    package var connect: ConnectSettings? {
        get { options?.connect }
        set { set(newValue) { $0.connect = $1 } }
    }

    /// The most seconds from `open()` to the event `open`, and from `secure(_:)` to `secured`; nil: no limit.
    package var openingLimit: Double? {
        get { options?.openingLimit }
        set { set(newValue) { $0.openingLimit = $1 } }
    }

    /// For a server's connection: the count of the listener's unfinished handshakes, and their time limit.
    var handshakes: UnfinishedHandshakes? {
        get { options?.handshakes }
        set { set(newValue) { $0.handshakes = $1 } }
    }

    /// The optional settings. Boxed, because most connections have none and they are larger than all other
    /// fields together.
    private struct Options {
        var tls: TLSSettings?
        var route: ProxyRoute?
        var resolver = Resolver.shared
        var connect: ConnectSettings?
        var openingLimit: Double?
        var handshakes: UnfinishedHandshakes?
    }

    /// The host that the socket connects to: the destination, or a proxy on the way to it.
    var nextHop: (host: String, port: Int) { route.map { ($0.host, $0.port) } ?? (host, port) }

    private indirect enum Box {
        case empty
        case full(Options)
    }

    private var box = Box.empty

    private var options: Options? { if case .full(let options) = box { options } else { nil } }

    /// True if nothing but host and port is set.
    var isPlain: Bool { if case .empty = box { true } else { false } }

    /// Setting nil where nothing is set makes no box.
    private mutating func set<Value>(_ value: Value?, _ change: (inout Options, Value?) -> Void) {
        guard value != nil || options != nil else { return }
        var options = options ?? Options()
        change(&options, value)
        box = .full(options)
    }
}
