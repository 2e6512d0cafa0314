internal import RondoCore
internal import Synchronization

/// One TCP, Unix or TLS connection, driven by the run loops and modes that it is scheduled in.
///
/// It looks the name up, connects, lets a proxy be spoken to, secures, and then moves bytes when it is asked
/// to; or it begins with a socket that is connected already, of either side. It tells its owner by `handler`,
/// in a pass of a scheduled mode, and never inside a call of the owner's. Both the public socket streams and
/// the HTTP exchange stand on it.
///
/// One thread at a time: its owner sees to that, by `gate` where several loops serve it. All that comes from
/// a run loop goes through the gate before it touches anything here.
///
/// Its parts: `+Schedule` loops and modes, `+Opening` from `open()` to `close()`, `+Connecting`,
/// `+Negotiating` (proxies), `+Securing` (TLS), `+Bytes`.
package final class SocketChannel {
    package struct Configuration: Sendable {
        /// Whom the connection is to: what TLS asks for, and what errors name.
        package var host: String
        package var port: Int

        package init(host: String, port: Int, tls: TLSSettings? = nil, route: ChannelRoute? = nil) {
            self.host = host
            self.port = port
            if tls != nil || route != nil { set { rest in (rest.tls, rest.route) = (tls, route) } }
        }

        /// Nil: nothing is secured, unless `secure(_:)` does it later.
        package var tls: TLSSettings? {
            get { rest?.tls }
            set { set { $0.tls = newValue } }
        }

        /// The way there, where it is not the direct one.
        package var route: ChannelRoute? {
            get { rest?.route }
            set { set { $0.route = newValue } }
        }

        /// Who looks the host up.
        package var resolver: Resolver {
            get { rest?.resolver ?? .shared }
            set { set { $0.resolver = newValue } }
        }

        /// How long it may take from `open()` to the event `open`, and from `secure(_:)` to `secured`, in seconds;
        /// nil: as long as it takes.
        package var openingLimit: Double? {
            get { rest?.openingLimit }
            set { if newValue != nil || rest != nil { set { $0.openingLimit = newValue } } }
        }

        /// Where the handshakes of a server's connections are counted, and how long they may take.
        var handshakes: UnfinishedHandshakes? {
            get { rest?.handshakes }
            set { if newValue != nil || rest != nil { set { $0.handshakes = newValue } } }
        }

        /// What most connections have none of, and would be larger than all the rest.
        private struct Rest {
            var tls: TLSSettings?
            var route: ChannelRoute?
            var resolver = Resolver.shared
            var openingLimit: Double?
            var handshakes: UnfinishedHandshakes?
        }

        private indirect enum Box {
            case empty
            case full(Rest)
        }

        private var box = Box.empty

        private var rest: Rest? { if case .full(let rest) = box { rest } else { nil } }

        /// Host and port are all that it says.
        var isPlain: Bool { if case .empty = box { true } else { false } }

        private mutating func set(_ change: (inout Rest) -> Void) {
            var rest = rest ?? Rest()
            change(&rest)
            box = .full(rest)
        }
    }

    /// From the resolver's thread to a loop's.
    final class LookUpAnswer: Sendable {
        private let answer = Mutex<Resolver.Answer?>(nil)

        func put(_ found: Resolver.Answer) { answer.withLock { $0 = found } }

        func take() -> Resolver.Answer? {
            answer.withLock { answer in
                defer { answer = nil }
                return answer
            }
        }
    }

    package enum Event: Equatable, Sendable {
        case resolving(host: String)
        case connecting(SocketAddress)
        case connected(SocketAddress)
        /// Of each TLS there is: that with a proxy comes before that with the host.
        case secured(version: String, cipher: String, subject: String)
        /// Bytes can be read and written from here on. Once: not again after a later `secure(_:)`, which ends
        /// with `secured`.
        case open
        /// A read may find something; only while `wantsRead`, in every pass while bytes wait.
        case readable
        /// A write may be taken; only while `wantsWrite`.
        case writable
        /// The last event. The descriptor is closed already.
        case failed(ChannelError)
    }

    package enum ReadResult: Equatable, Sendable {
        case bytes(Int)
        case wouldBlock
        /// The peer has ended its side in order: FIN, or close_notify over TLS.
        case end
        /// TLS only: FIN without close_notify, which somebody in between could have sent.
        case truncated
    }

    /// What there is before `open()`.
    enum Origin {
        /// The configuration's host, or its route's.
        case host
        case address(SocketAddress)
        case socket(Socket)
    }

    enum Phase {
        // Indirect is what is passed through, or seldom: every channel has the size of the largest other one.
        case created(Origin)
        /// Opened, and waiting for its first pass.
        case starting(Origin)
        case resolving(Resolver.Request)
        indirect case connecting(Connecting)
        /// Connected, for as long as the owner is told so.
        case standing(Connected)
        indirect case negotiating(Connected, Negotiating)
        /// To be secured in the next pass.
        indirect case upgrading(Connected, TLSSettings, received: [UInt8], through: TLSEngine?)
        case securing(Connected, TLSEngine)
        case open(Connected, TLSEngine?)
        case closed
    }

    struct Connecting {
        var connector = Connector()
        var attempts: [Connector.AttemptID: Attempt] = [:]
        /// A Unix socket's address where as many wait as may; tried again.
        var busy: Busy?
    }

    struct Busy {
        let id: Connector.AttemptID
        let address: SocketAddress
        /// Seconds until the next attempt.
        let pause: Double
    }

    struct Attempt {
        let socket: Socket
        let address: SocketAddress
        let source: RunLoop.Source
    }

    struct Connected {
        let socket: Socket
        let source: RunLoop.Source
    }

    typealias Place = StreamCore.Place

    /// What most channels have while they are being opened, if at all; with it each would be half as large
    /// again.
    private final class Rare {
        var onTrust: ((TLSTrust) -> Void)?
        var onIdentityRequest: ((TLSIdentityRequest) -> Void)?
        var label: String?
        var asker: RunLoop.Source?
        var delays: [Timer] = []
        var limits: [Timer] = []
        var answer: LookUpAnswer?
        var handshake: UnfinishedHandshakes.Entry?

        var isEmpty: Bool {
            onTrust == nil && onIdentityRequest == nil && label == nil && asker == nil && delays.isEmpty
                && limits.isEmpty && answer == nil && handshake == nil
        }
    }

    private var madeRare: Rare {
        if let rare { return rare }
        let rare = Rare()
        self.rare = rare
        return rare
    }

    /// It is open: what it had for the way there is not kept.
    func dropRare() { if rare?.isEmpty ?? false { rare = nil } }

    /// Of a channel whose owner has set none.
    ///
    /// `@unchecked Sendable`: such a channel is used by one thread, that of its loop.
    final class OpenGate: ChannelGate, @unchecked Sendable {
        private weak var channel: SocketChannel?

        init(_ channel: SocketChannel) { self.channel = channel }

        func enter(_ body: (SocketChannel) -> Void) {
            if let channel { body(channel) }
        }
    }

    package internal(set) var configuration: Configuration
    /// What any thread may touch.
    package let interest = ChannelInterest()
    package var handler: ((Event) -> Void)? {
        get { heldHandler }
        set { heldHandler = newValue }
    }
    // Not as `handler` itself: what another module sets is checked for overlapping accesses, whatever stands here.
    @exclusivity(unchecked) private var heldHandler: ((Event) -> Void)?
    /// Asked about the peer, in place of `TLSSettings.trustHandler`; like `handler`, in a pass.
    package var onTrust: ((TLSTrust) -> Void)? {
        get { rare?.onTrust }
        set { if newValue != nil || rare != nil { madeRare.onTrust = newValue } }
    }
    /// Asked for an identity, in place of `TLSSettings.identityHandler`; like `handler`, in a pass.
    package var onIdentityRequest: ((TLSIdentityRequest) -> Void)? {
        get { rare?.onIdentityRequest }
        set { if newValue != nil || rare != nil { madeRare.onIdentityRequest = newValue } }
    }
    package internal(set) var remoteAddress: SocketAddress?
    /// Whether closing the channel closes the descriptor, or leaves it to whoever has handed it in.
    package var closesDescriptor = true
    /// The name of its sources in traces.
    package var label: String? {
        get { rare?.label }
        set {
            guard newValue != label else { return }
            madeRare.label = newValue
            forEachSource { $0.label = newValue }
        }
    }
    /// Whether `readable` is wanted. While it is not, the kernel's buffer fills and TCP holds the peer back.
    @exclusivity(unchecked) package var wantsRead = false {
        didSet {
            guard wantsRead != oldValue else { return }
            updateInterest()
            if wantsRead { signalIfPlaintextIsPending() }
        }
    }
    /// Whether `writable` is wanted: after a write that was not taken in full.
    @exclusivity(unchecked) package var wantsWrite = false {
        didSet { if wantsWrite != oldValue { updateInterest() } }
    }

    /// The owner has been told that it is open.
    var hasOpened = false
    /// TLS may have to write before it can read on, and the reverse.
    @exclusivity(unchecked) var readWaitsForWrite = false
    @exclusivity(unchecked) var writeWaitsForRead = false
    /// This side's end has to be said once what was written before it is gone.
    @exclusivity(unchecked) var owesEnd = false

    @exclusivity(unchecked) var phase: Phase {
        didSet {
            if case .open(let connected, nil) = phase {
                plainDescriptor = connected.socket.descriptor
            } else {
                plainDescriptor = -1
            }
        }
    }
    /// The descriptor of a connection that is open and not secured, otherwise negative: for what is done with each message,
    /// without a copy of the phase.
    @exclusivity(unchecked) private(set) var plainDescriptor: Int32 = -1
    /// In the channel's modes from the first schedule on, so that they are not empty while a name is looked
    /// up; served for whatever comes from elsewhere than a descriptor.
    @exclusivity(unchecked) var turns: ChannelTurns?
    /// Calls a handler of the settings, outside the gate.
    var asker: RunLoop.Source? {
        get { rare?.asker }
        set { if newValue != nil || rare != nil { madeRare.asker = newValue } }
    }
    /// For the next connection attempt.
    var delays: [Timer] {
        get { rare?.delays ?? [] }
        set { madeRare.delays = newValue }
    }
    /// For the end of `openingLimit`.
    var limits: [Timer] {
        get { rare?.limits ?? [] }
        set { madeRare.limits = newValue }
    }
    /// What a look-up under way has found.
    var answer: LookUpAnswer? {
        get { rare?.answer }
        set { if newValue != nil || rare != nil { madeRare.answer = newValue } }
    }
    /// As long as it is not over, of a server's connection.
    var unfinishedHandshake: UnfinishedHandshakes.Entry? {
        get { rare?.handshake }
        set { if newValue != nil || rare != nil { madeRare.handshake = newValue } }
    }
    private var rare: Rare?
    /// No asker, no timers among other things.
    var hasNothingRare: Bool { rare == nil }

    init(_ configuration: Configuration, _ origin: Origin) {
        self.configuration = configuration
        phase = .created(origin)
    }

    /// A channel to a host.
    package convenience init(_ configuration: Configuration) {
        self.init(configuration, .host)
    }

    /// A channel to an address, where nothing has to be looked up: a Unix socket's, for instance.
    package convenience init(to address: SocketAddress, _ configuration: Configuration) {
        self.init(configuration, .address(address))
    }

    /// A channel over a socket that is connected already, by whichever side. It is opened like any other; the
    /// first event is `secured` or `open`.
    package convenience init(adopting socket: Socket, _ configuration: Configuration) {
        self.init(configuration, .socket(socket))
        remoteAddress = socket.peerAddress
    }

    deinit { close() }

    /// The turns, from now on.
    var madeTurns: ChannelTurns {
        if let turns { return turns }
        let turns = ChannelTurns(interest)
        self.turns = turns
        return turns
    }

    // MARK: - State

    package var isOpen: Bool { if case .open = phase { true } else { false } }

    var isClosed: Bool { if case .closed = phase { true } else { false } }

    /// The socket's descriptor, once connected and until closed. It stays the channel's.
    package var descriptor: Int32? { connected?.socket.descriptor }

    package var localAddress: SocketAddress? { connected?.socket.localAddress }

    /// The connected socket and its source.
    var connected: Connected? {
        switch phase {
        case .standing(let connected), .negotiating(let connected, _), .upgrading(let connected, _, _, _),
            .securing(let connected, _), .open(let connected, _):
            connected
        case .created, .starting, .resolving, .connecting, .closed: nil
        }
    }

    /// TLS with the host, from its handshake on.
    var engine: TLSEngine? {
        switch phase {
        case .securing(_, let engine): engine.leadsToProxy ? nil : engine
        case .open(_, let engine): engine?.leadsToProxy ?? true ? nil : engine
        case .created, .starting, .resolving, .connecting, .standing, .negotiating, .upgrading, .closed: nil
        }
    }
}

@available(*, unavailable)
extension SocketChannel: Sendable {}
