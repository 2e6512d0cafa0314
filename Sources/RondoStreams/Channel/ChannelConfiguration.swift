internal import RondoCore

/// What a channel is to connect to, and how.
package struct ChannelConfiguration: Sendable {
    /// The host of the connection: what TLS asks for, and what errors name.
    package var host: String
    package var port: Int

    package init(host: String, port: Int, tls: TLSSettings? = nil, route: ChannelRoute? = nil) {
        self.host = host
        self.port = port
        self.tls = tls
        self.route = route
    }

    /// Nil: nothing is secured, unless `secure(_:)` does it later.
    package var tls: TLSSettings? {
        get { rest?.tls }
        set { set(newValue) { $0.tls = $1 } }
    }

    /// The way there, where it is not the direct one.
    package var route: ChannelRoute? {
        get { rest?.route }
        set { set(newValue) { $0.route = $1 } }
    }

    /// Looks the host up.
    package var resolver: Resolver {
        get { rest?.resolver ?? .shared }
        set { set(newValue) { $0.resolver = $1 ?? .shared } }
    }

    /// Where the connection leads, and from where; nil: nothing is set.
    package var connect: ConnectSettings? {
        get { rest?.connect }
        set { set(newValue) { $0.connect = $1 } }
    }

    /// How long it may take from `open()` to the event `open`, and from `secure(_:)` to `secured`, in seconds;
    /// nil: as long as it takes.
    package var openingLimit: Double? {
        get { rest?.openingLimit }
        set { set(newValue) { $0.openingLimit = $1 } }
    }

    /// Where the handshakes of a server's connections are counted, and how long they may take.
    var handshakes: UnfinishedHandshakes? {
        get { rest?.handshakes }
        set { set(newValue) { $0.handshakes = $1 } }
    }

    /// Boxed: most connections have none of it, and it is larger than everything else together.
    private struct Rest {
        var tls: TLSSettings?
        var route: ChannelRoute?
        var resolver = Resolver.shared
        var connect: ConnectSettings?
        var openingLimit: Double?
        var handshakes: UnfinishedHandshakes?
    }

    /// Where the connection goes first: the host, or a proxy on the way to it.
    var nextHop: (host: String, port: Int) { route.map { ($0.host, $0.port) } ?? (host, port) }

    private indirect enum Box {
        case empty
        case full(Rest)
    }

    private var box = Box.empty

    private var rest: Rest? { if case .full(let rest) = box { rest } else { nil } }

    /// Host and port are all that it says.
    var isPlain: Bool { if case .empty = box { true } else { false } }

    /// Nil changes nothing, and boxes nothing, where nothing is set yet.
    private mutating func set<Value>(_ value: Value?, _ change: (inout Rest, Value?) -> Void) {
        guard value != nil || rest != nil else { return }
        var rest = rest ?? Rest()
        change(&rest, value)
        box = .full(rest)
    }
}
