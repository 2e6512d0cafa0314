package import RondoCore

/// One TCP, Unix or TLS connection, driven by the run loops and modes that it is scheduled in.
///
/// A channel looks the name up, connects, talks to a proxy and secures the connection (all of that in
/// `ChannelOpening`), and then moves bytes on request; or it starts with a socket that is connected already,
/// on either side. It reports to its owner by `handler`, in a pass of a scheduled mode and never inside a
/// call of the owner. Both the public socket streams and the HTTP exchange are built on it.
///
/// One thread at a time: the owner ensures that, by a `ChannelGate` if several loops serve the channel. All
/// callbacks of run loops pass the gate before they touch anything here.
package final class SocketChannel {
    package typealias Configuration = ChannelConfiguration
    package typealias Event = ChannelEvent
    package typealias ReadResult = ChannelReadResult

    package private(set) var configuration: Configuration
    package private(set) var remoteAddress: SocketAddress?
    /// Whether closing the channel closes the descriptor, or leaves it to the program that has supplied it.
    /// The owner sets it.
    package var closesDescriptor = true

    package var handler: ((Event) -> Void)? {
        get { tellOwner }
        set { tellOwner = newValue }
    }

    /// Whether `readable` events are wanted. While false, the kernel's buffer fills and TCP holds the peer
    /// back.
    package var wantsRead: Bool {
        get { isReading }
        set {
            guard newValue != isReading else { return }
            isReading = newValue
            updateInterest()
            if newValue { askForPassIfPlaintextIsPending() }
        }
    }
    /// Whether `writable` events are wanted: set it after a write that was not accepted in full.
    package var wantsWrite: Bool {
        get { isWriting }
        set {
            guard newValue != isWriting else { return }
            isWriting = newValue
            updateInterest()
        }
    }
    // The storage of these three: bench-guard's stream.message takes 3.4 % more instructions with `didSet` in
    // its place.
    private var tellOwner: ((Event) -> Void)?
    private var isReading = false
    private var isWriting = false

    /// True once the owner was told `open`: a later `secure(_:)` does not repeat the event.
    private(set) var hasOpened = false

    private(set) var phase: ChannelPhase { didSet { plainDescriptor = phase.plainDescriptor } }
    /// A copy of `phase.plainDescriptor`, so that reads and writes need not copy the phase.
    private(set) var plainDescriptor: Int32 = -1
    /// The channel's loops and modes, and the gate by which their callbacks reach it. Any thread may use it.
    package let registration = ChannelRegistration()
    /// Called with questions about the peer, in place of the handlers of `TLSSettings`; like `handler`, in a
    /// pass.
    package var handlers = ChannelHandlers()

    init(_ configuration: Configuration, _ point: ChannelOpening.StartingPoint) {
        self.configuration = configuration
        phase = .created(point)
    }

    /// Makes a channel to a host.
    package convenience init(_ configuration: Configuration) {
        self.init(configuration, .host)
    }

    /// Makes a channel to an address that needs no look-up, for example that of a Unix socket.
    package convenience init(to address: SocketAddress, _ configuration: Configuration) {
        self.init(configuration, .address(address))
    }

    /// Makes a channel over a connected socket, of either side. It is opened like any other; the first event
    /// is `secured` or `open`. `at` is the peer's address, if it is known.
    package convenience init(adopting socket: Socket, at: SocketAddress? = nil, _ settings: Configuration) {
        self.init(settings, .socket(socket))
        remoteAddress = at ?? socket.peerAddress
    }

    deinit { close() }

    // MARK: - State

    package var isOpen: Bool { if case .open = phase { true } else { false } }

    private var isClosed: Bool { if case .closed = phase { true } else { false } }

    /// The socket's descriptor, while it is connected. The caller must not close it.
    package var descriptor: Int32? { transport?.socket.descriptor }

    /// The connected socket.
    var transport: ChannelTransport? { phase.transport }

    /// Whether TLS with the host has begun, and not with a proxy alone.
    package var isSecuredToHost: Bool { transport?.isSecuredToHost ?? false }

    /// TLS with the peer, while bytes can be moved.
    var engine: TLSEngine? { phase.openEngine }

    // MARK: - From `open()` to `close()`

    /// Starts the opening in the next pass of a scheduled mode; no event comes before.
    package func open() {
        guard case .created(let point) = phase else { return }
        phase = .opening(ChannelOpening(point, of: self, registration))
        registration.askForPass()
    }

    /// Secures the open connection (STARTTLS, rule ST-42). The connection is not open meanwhile; the event is
    /// `secured` or `failed`, in a later pass, in which TLS begins: until then other settings replace these.
    /// While the connection is still being made, the settings take effect as if they had been set from the
    /// start.
    ///
    /// - Parameter received: Bytes that the owner has read and not used. TLS gets them: none may pass for
    ///   secured data.
    /// - Returns: False if the connection is secured already, or TLS has begun, or the channel is closed.
    package func secure(_ settings: TLSSettings?, received: [UInt8] = []) -> Bool {
        switch phase {
        case .created: break
        case .opening(let opening):
            guard opening.isBeforeHost else { return opening.replaceUpgrade(by: settings) }
        case .open(let transport):
            guard !transport.isSecuredToHost else { return false }
            guard let settings else { return true }
            registration.setInterest([], of: transport.source)
            phase = .opening(
                ChannelOpening(upgrading: transport, settings, received: received, of: self, registration))
            registration.askForPass()
        case .closed: return false
        }
        configuration.tls = settings
        return true
    }

    /// Counts later handshakes with `handshakes`; nil: without a limit.
    func joinHandshakes(_ handshakes: UnfinishedHandshakes?) { configuration.handshakes = handshakes }

    /// Sets the time limit of a later `secure(_:)`.
    func limitOpening(to seconds: Double) { configuration.openingLimit = seconds }

    /// Stops watching the socket, and the time limit of the opening, until `resume()`. Inside the gate.
    package func suspend() {
        if case .opening(let opening) = phase { opening.limit.suspend() }
        registration.suspend()
    }

    /// Undoes `suspend()`, and requests a pass in place of the events that were refused. Inside the gate.
    package func resume() {
        if case .opening(let opening) = phase { opening.limit.resume() }
        registration.resume()
    }

    /// Closes the channel without a further event. Over TLS the last bytes and close_notify are still sent,
    /// and the peer gets some time to take them (`LingeringClose`).
    package func close() {
        switch phase {
        case .closed: return
        case .created(.socket(let socket)): socket.close(closesDescriptor: closesDescriptor)
        case .created: break
        case .opening(let opening): opening.close(closesDescriptor: closesDescriptor)
        case .open(let transport):
            registration.remove(transport.source)
            transport.close(closesDescriptor: closesDescriptor)
        }
        phase = .closed
        registration.end()
    }

    // MARK: - Callbacks of run loops, inside the gate

    func sourceIsReady(_ source: RunLoop.Source, _ ready: RunLoop.Source.Interest) {
        if plainDescriptor >= 0, !ready.isEmpty { return reportReadiness(ready, nil) }
        if ready.isEmpty, endRefused() { return }
        switch phase {
        case .opening(let opening): opening.sourceIsReady(source, ready)
        case .open(let transport): reportReadiness(ready, transport.engine)
        case .created, .closed: break
        }
    }

    /// Continues in a pass that was requested, or that a timer has brought.
    func servePass() {
        if endRefused() { return }
        switch phase {
        case .opening(let opening): opening.servePass()
        case .open(let transport): if wantsRead, transport.hasPendingPlaintext { reportReadable() }
        case .created, .closed: break
        }
    }

    /// Closes a connection whose descriptor the kernel refuses to watch.
    ///
    /// - Returns: Whether it has done so.
    private func endRefused() -> Bool {
        guard let transport, let code = transport.source.refusalCode else { return false }
        let error = SocketError(code: code, operation: .watch, address: remoteAddress)
        fail(.broken(host: configuration.host, port: configuration.port, error))
        return true
    }

    // MARK: - Parking

    /// Ends the channel and leaves its connection open.
    ///
    /// - Returns: The descriptor. Nil, with nothing changed, if the connection is more than an open plain
    ///   socket: it is secured, not open, configured beyond host and port (a proxy, for example), or has
    ///   something left to send.
    func handOver() -> Int32? {
        guard case .open(let transport) = phase, transport.engine == nil, configuration.isPlain,
            closesDescriptor
        else { return nil }
        letGo(of: transport)
        return transport.socket.handOver()
    }

    /// Ends the channel and leaves its connection open. Its source goes first, before another one can use the
    /// descriptor.
    private func letGo(of transport: ChannelTransport) {
        registration.remove(transport.source)
        phase = .closed
        registration.end()
    }

    /// Starts the channel with an open connection.
    func resume(_ socket: Socket, _ engine: TLSEngine? = nil) {
        hasOpened = true
        phase = .open(
            ChannelTransport(
                socket: socket, source: registration.makeSource(socket.descriptor, interest: []),
                engine: engine))
    }

    /// Ends the channel and moves its connection, TLS included, to a new channel that is scheduled nowhere
    /// and has no owner.
    ///
    /// - Returns: Nil, with nothing changed, if the connection is not open.
    package func moveConnection() -> SocketChannel? {
        guard case .open(let transport) = phase else { return nil }
        let next = SocketChannel(configuration, .host)
        next.remoteAddress = remoteAddress
        next.closesDescriptor = closesDescriptor
        letGo(of: transport)
        next.resume(transport.socket, transport.engine)
        return next
    }
}

// MARK: - Schedule

extension SocketChannel {
    /// Schedules the channel, even while open. `.common` stands for every common mode; several loops and
    /// modes are allowed.
    package func schedule(in loop: RunLoop, forMode mode: RunLoop.Mode) {
        guard !isClosed else { return }
        schedule(in: SharedQueue.join(loop, mode))
    }

    /// Schedules the channel in the mode of `queue`. The caller must be a client of the queue that leaves it
    /// after the channel.
    package func schedule(with queue: SharedQueue) {
        guard !isClosed else { return }
        queue.joinAgain()
        schedule(in: queue)
    }

    /// - Parameter queue: Must have been joined for the channel.
    private func schedule(in queue: SharedQueue) {
        registration.beginAccess(to: self)
        registration.add(queue)
    }

    package func remove(from loop: RunLoop, forMode mode: RunLoop.Mode) {
        registration.remove(LoopMode(loop: loop, mode: mode))
    }

    package func removeFromAllLoops() { registration.removeAll().leave() }
}

// MARK: - Calls of its opening

extension SocketChannel: ChannelOpeningOwner {
    func tell(_ event: ChannelEvent) {
        if case .connected(let address) = event { remoteAddress = address }
        handler?(event)
    }

    func didOpen(_ transport: ChannelTransport) {
        phase = .open(transport)
        updateInterest()
        // The owner may have set `wantsRead` earlier, and the socket does not become readable for bytes that
        // are decrypted already.
        askForPassIfPlaintextIsPending()
        handlers.shrink()
        // A proxy's TLS was already reported during the opening.
        if let engine = transport.engine, !engine.leadsToProxy { handler?(engine.securedEvent) }
        guard isOpen, !hasOpened else { return }
        hasOpened = true
        handler?(.open)
    }

    func fail(_ error: ChannelError) {
        let handler = handler
        close()
        handler?(.failed(error))
    }

    func askForPassIfPlaintextIsPending() {
        if wantsRead && hasBufferedBytes { registration.askForPass() }
    }
}

@available(*, unavailable)
extension SocketChannel: Sendable {}
