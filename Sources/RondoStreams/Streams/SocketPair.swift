// The input and the output stream of one connection: two streams over one SocketChannel.
//
// *Who runs.* The channel is in the loops and modes of both streams, so a pass on behalf of one may serve the
// other. Therefore nothing is delivered from here: what the channel says changes the two states, and each
// stream tells its delegate in its own modes (StreamCore.swift).
//
// *How the end is found.* A socket that is readable has bytes or has met its end, and the delegate is told
// these apart. So a little is read ahead (`ReadAhead`), which costs small messages no call more than reading
// them does; a client that asks for more gets the rest straight into its own buffer. As long as those bytes
// lie here, no more is read, so that a client that pauses holds the peer back.
//
// Threads: everything is behind `lock`, because the two streams may live on different threads; the channel's
// gate takes it too. Nothing is called with it held but the channel, the two cores and run-loop sources, none
// of which calls back.
//
// Its parts: `+Bytes` reading and writing, `+Waiting` for streams without a schedule, `+Properties`.

internal import Glibc
internal import RondoCore
internal import RondoMutex

/// `@unchecked Sendable`: every variable is behind `lock`. The channel is used under it too, and when it was taken out, by
/// whoever has taken it, alone.
final class SocketPair: StreamBackend, ChannelGate, @unchecked Sendable {
    /// What the connection is to, or has come from.
    enum Target {
        case host(String, port: Int)
        // Indirect: larger than the others, and seldom.
        /// A Unix socket's.
        indirect case address(SocketAddress)
        /// A connected socket of the client's, who closes it unless told otherwise (rule ST-40).
        case descriptor(Int32)
        /// One that a listener has accepted.
        case socket(Socket)
    }

    struct Sides: OptionSet {
        let rawValue: UInt8

        static let input = Sides(rawValue: 1), output = Sides(rawValue: 2)
    }

    /// Whether it is known if there is space after what was written in full.
    enum Look: UInt8 {
        case done
        /// Who has written sees to it.
        case wanted
        /// Some `SpaceLook` sees to it, and then has begun.
        case noted, underWay
    }

    enum Ending {
        case end
        case failed(NSError)
    }

    /// What most pairs have none of for most of their life.
    private final class Rare {
        // What comes behind everything that was or could be moved.
        var inputEnding: Ending?
        var outputFailure: NSError?
        var waiting: Waiting?
    }

    /// Threads that wait inside a read or a write.
    final class Waiting {
        var sources: [RunLoop.Source] = []
        /// Loops whose waiting mode holds the channel already.
        var loops: [RunLoop] = []
    }

    // The small ones stand together, and what most pairs have none of is made when it is needed.

    let target: Target
    /// The streams that the client has opened and not closed.
    private(set) var opened: Sides = []
    /// The output was open, and was closed while the input is still read.
    private var hasEndedOutput = false
    /// The last of them was closed, and with it the connection.
    private(set) var isOver = false
    var look = Look.done
    /// Not NSLock, which is 250 bytes. It fills what the small ones leave.
    let lock = Mutex(())
    let input = StreamCore(.input)
    let output = StreamCore(.output)
    var settings = SocketSettings.standard
    /// Nil before one of the streams is opened, and after both were closed.
    var channel: SocketChannel?
    /// Given back when it is used up, not kept for later: most connections are idle most of the time.
    var ahead: ReadAhead?
    /// What was lent of it, until the input's next operation.
    var lent: ReadAhead?
    private var rare: Rare?
    private let live = LiveObject(.connection)

    init(_ target: Target) { self.target = target }

    deinit {
        // Without a channel nobody has taken the client's descriptor over yet.
        if channel == nil, !isOver, case .descriptor(let descriptor) = target, closesDescriptor {
            _ = Glibc.close(descriptor)
        }
    }

    /// What comes behind `ahead`.
    var inputEnding: Ending? {
        get { rare?.inputEnding }
        set { if newValue != nil || rare != nil { madeRare.inputEnding = newValue } }
    }

    /// Why nothing can be written any more.
    var outputFailure: NSError? {
        get { rare?.outputFailure }
        set { if newValue != nil || rare != nil { madeRare.outputFailure = newValue } }
    }

    var waiting: Waiting? {
        get { rare?.waiting }
        set { if newValue != nil || rare != nil { madeRare.waiting = newValue } }
    }

    private var madeRare: Rare {
        if let rare { return rare }
        let rare = Rare()
        self.rare = rare
        return rare
    }

    func core(_ side: StreamState.Direction) -> StreamCore { side == .input ? input : output }
    private func set(_ side: StreamState.Direction) -> Sides { side == .input ? .input : .output }

    // MARK: - Opening and closing

    func open(_ side: StreamState.Direction) {
        lock.withLock { _ in
            opened.insert(set(side))
            if let failure = outputFailure ?? (isOver ? .posix(ENOTCONN) : nil) {
                return core(side).update { $0.failed(failure) }
            }
            guard let channel else { return start(side) }
            if channel.isOpen { announce(side) }
        }
    }

    /// Of an output whose input stays open the peer is told the end, and is read on.
    func close(_ side: StreamState.Direction) {
        // What the connection lets go of may be the program's, and call back: it is closed and released without the lock,
        // when nobody finds it any more.
        var (closed, old): (SocketChannel?, SocketSettings?)
        lock.withLock { _ in
            old = settings
            closed = leave(side)
        }
        closed?.close()
        closed?.gate = nil
        closed?.handler = nil
        withExtendedLifetime(old) {}
    }

    /// - Returns: The channel, to be closed: neither stream is open any more.
    private func leave(_ side: StreamState.Direction) -> SocketChannel? {
        guard opened.remove(set(side)) != nil else { return nil }
        guard !opened.isEmpty else {
            isOver = true
            ahead = nil
            lent = nil
            forgetHandlers()
            return channel.take()
        }
        if side == .output {
            hasEndedOutput = true
            channel?.endWriting()
        } else {
            ahead = nil
            lent = nil
        }
        updateInterest()
        return nil
    }

    private func start(_ side: StreamState.Direction) {
        let channel: SocketChannel
        do throws(SocketError) {
            channel = try makeChannel()
        } catch {
            isOver = true
            outputFailure = .posix(error.code, error.description)
            return core(side).update { $0.failed(outputFailure ?? .unexplained) }
        }
        // They keep the pair until both streams are closed, as each is when it goes. (Weak references would make every use
        // of the pair slower. A closure that captures one object needs no memory of its own.)
        channel.gate = self
        channel.handler = { [self] event in handle(event) }
        channel.closesDescriptor = closesDescriptor
        for place in drivers(of: .input) + drivers(of: .output) {
            channel.schedule(in: place.loop, forMode: place.mode)
        }
        self.channel = channel
        channel.open()
    }

    func enter(_ body: (SocketChannel) -> Void) {
        lock.withLock { _ in
            if let channel { body(channel) }
        }
    }

    private func makeChannel() throws(SocketError) -> SocketChannel {
        let (host, port) = (remoteHost, remotePort)
        var configuration = SocketChannel.Configuration(host: host, port: port, tls: settings.value.tls)
        configuration.openingLimit = settings.value.options.connectTimeout
        if configuration.tls != nil { configuration.handshakes = settings.value.handshakes }
        switch target {
        case .host:
            if let proxy = settings.value.proxy {
                configuration.route = proxy.route(toHost: host, port: port)
            }
            return SocketChannel(configuration)
        case .address(let address):
            return SocketChannel(to: address, configuration)
        case .socket(let socket):
            return SocketChannel(adopting: socket, configuration)
        case .descriptor(let descriptor):
            return SocketChannel(adopting: try Socket(adopting: descriptor), configuration)
        }
    }

    // MARK: - Schedule

    /// The places of a stream, or the loader's where it has a dispatch queue.
    private func drivers(of side: StreamState.Direction) -> [ScheduledMode] {
        core(side).modes + (core(side).queue == nil ? [] : [.loader])
    }

    func schedule(in place: ScheduledMode) {
        lock.withLock { _ in
            channel?.schedule(in: place.loop, forMode: place.mode)
            channel?.resumeInterest()
            lookAtOnce()
        }
    }

    func remove(from place: ScheduledMode) {
        lock.withLock { _ in
            lookAtOnce()
            guard let channel else { return }
            // The other stream may still need it.
            guard !drivers(of: .input).contains(place), !drivers(of: .output).contains(place) else { return }
            channel.remove(from: place.loop, forMode: place.mode)
        }
    }

    // MARK: - What the channel says (the lock is held)

    private func handle(_ event: SocketChannel.Event) {
        switch event {
        case .resolving, .connecting, .connected: return
        case .secured: hasBeenSecured()
        case .open: hasOpened()
        case .readable:
            // Dropped only now, when it was in vain: most clients have read before the next pass.
            guard ahead == nil, inputEnding == nil, opened.contains(.input) else {
                channel?.wantsRead = false
                break
            }
            lookAhead()
        case .writable:
            if output.state.wantsToBeReady { output.update { $0.setReady(true) } }
            if waiting?.sources.isEmpty ?? true { channel?.wantsWrite = false }
        case .failed(let error):
            if case .negotiation(let error) = error {
                settings = settings.changed { $0.proxyResponse = error.response }
            }
            breakDown(error.streamError)
        }
        if let waiting { for waiter in waiting.sources { waiter.signalAndWakeUp() } }
    }

    private func hasOpened() {
        applyOptions()
        if opened.contains(.input) { announce(.input) }
        if opened.contains(.output) { announce(.output) }
        if hasEndedOutput { channel?.endWriting() }
    }

    /// The end of a STARTTLS; at the start the state is not open yet, and `open` follows.
    private func hasBeenSecured() {
        if output.status == .open { output.update { $0.setReady(true) } }
        updateInterest()
    }

    private func announce(_ side: StreamState.Direction) {
        core(side).opened(isReady: side == .output)
        if side == .input { channel?.wantsRead = true }
    }

    /// The connection is lost: each open stream fails, the input when its last byte was read (rule ST-38).
    func breakDown(_ error: NSError) {
        outputFailure = outputFailure ?? error
        inputEnding = inputEnding ?? .failed(error)
        if opened.contains(.output) { output.update { $0.failed(error) } }
        settleInput()
        channel?.wantsRead = false
        channel?.wantsWrite = false
    }

    /// When the bytes read ahead are used up, what comes behind them takes effect.
    func settleInput() {
        guard ahead == nil, let inputEnding, opened.contains(.input) else { return }
        switch inputEnding {
        case .end: input.update { $0.ended() }
        case .failed(let error): input.update { $0.failed(error) }
        }
    }

    func updateInterest() {
        guard let channel, channel.isOpen else { return }
        channel.wantsRead = opened.contains(.input) && ahead == nil && inputEnding == nil
        if !opened.contains(.output) { channel.wantsWrite = false }
    }
}
