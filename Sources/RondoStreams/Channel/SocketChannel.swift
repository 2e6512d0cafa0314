package import RondoCore

/// One TCP, Unix or TLS connection, driven by the run loops and modes that it is scheduled in.
///
/// It looks the name up, connects, speaks to a proxy, secures (all that in `ChannelOpening`), and then moves bytes when it
/// is asked to; or it begins with a socket that is connected already, of either side. It tells its owner by `handler`, in a
/// pass of a scheduled mode, and never inside a call of the owner's. Both the public socket streams and the HTTP exchange
/// stand on it.
///
/// One thread at a time: its owner sees to that, by `gate` where several loops serve it. All that comes from
/// a run loop goes through the gate before it touches anything here.
///
/// Its parts: `+Bytes` reads, writes and readiness.
package final class SocketChannel {
    package typealias Configuration = ChannelConfiguration
    package typealias Event = ChannelEvent
    package typealias ReadResult = ChannelReadResult

    package private(set) var configuration: Configuration
    package private(set) var remoteAddress: SocketAddress?
    /// Whether closing the channel closes the descriptor, or leaves it to the program that has handed it in. The owner sets it.
    package var closesDescriptor = true

    package var handler: ((Event) -> Void)? {
        get { tellOwner }
        set { tellOwner = newValue }
    }

    /// Whether `readable` is wanted. While it is not, the kernel's buffer fills and TCP holds the peer back.
    package var wantsRead: Bool {
        get { isReading }
        set {
            guard newValue != isReading else { return }
            isReading = newValue
            updateInterest()
            if newValue { signalIfPlaintextIsPending() }
        }
    }
    /// Whether `writable` is wanted: after a write that was not taken in full.
    package var wantsWrite: Bool {
        get { isWriting }
        set {
            guard newValue != isWriting else { return }
            isWriting = newValue
            updateInterest()
        }
    }
    // Private, so that the compiler sees all accesses and leaves out their checks: 600 instructions of http.request.
    private var tellOwner: ((Event) -> Void)?
    private var isReading = false
    private var isWriting = false

    /// The owner has been told that it is open: a later `secure(_:)` does not tell it again.
    private var hasOpened = false
    /// Of an open connection; `+Bytes` keeps it.
    var tlsWaits = TLSWaits()

    private(set) var phase: ChannelPhase {
        didSet { plainDescriptor = phase.plainDescriptor }
    }
    /// That of the phase, for reads and writes: without a copy of the phase.
    private(set) var plainDescriptor: Int32 = -1
    private let registration = ChannelRegistration()
    private var handlers = ChannelHandlers()

    init(_ configuration: Configuration, _ origin: ChannelOpening.Origin) {
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

    // MARK: - Handlers and label

    /// Asked about the peer, in place of `TLSSettings.trustHandler`; like `handler`, in a pass.
    package var onTrust: ((TLSTrust) -> Void)? {
        get { handlers.onTrust }
        set { handlers.onTrust = newValue }
    }
    /// Asked for an identity, in place of `TLSSettings.identityHandler`; like `handler`, in a pass.
    package var onIdentityRequest: ((TLSIdentityRequest) -> Void)? {
        get { handlers.onIdentityRequest }
        set { handlers.onIdentityRequest = newValue }
    }
    /// The name of its sources in traces.
    package var label: String? {
        get { registration.label }
        set { if newValue != label { registration.label = newValue } }
    }

    // MARK: - State

    package var isOpen: Bool { if case .open = phase { true } else { false } }

    private var isClosed: Bool { if case .closed = phase { true } else { false } }

    /// The socket's descriptor, once connected and until closed. The caller must not close it.
    package var descriptor: Int32? { transport?.socket.descriptor }

    /// The connected socket.
    var transport: ChannelTransport? { phase.transport }

    /// TLS with the peer, while bytes can be moved.
    var engine: TLSEngine? { phase.openEngine }

    // MARK: - From `open()` to `close()`

    /// Starts with the first pass of a scheduled mode; no event comes before.
    package func open() {
        guard case .created(let origin) = phase else { return }
        phase = .opening(ChannelOpening(origin, of: self, registration))
        registration.signal()
    }

    /// Secures the open connection from here on (STARTTLS, rule ST-42). It is not open meanwhile; the events
    /// are `secured` or `failed`, in a later pass. Where the connection is still being made the settings take
    /// effect as if they had been there from the start.
    ///
    /// - Parameter received: Bytes that the owner has read already and not used: they belong to TLS now. So nothing
    ///   that was said before in plain text can be taken for something said in confidence.
    /// - Returns: False if it is secured already, or closed.
    package func secure(_ settings: TLSSettings?, received: [UInt8] = []) -> Bool {
        switch phase {
        case .created: break
        case .opening(let opening): guard opening.maySetTLS else { return false }
        case .open(let transport):
            guard !transport.isSecuredToHost else { return false }
            guard let settings else { return true }
            registration.setInterest([], of: transport.source)
            phase = .opening(
                ChannelOpening(upgrading: transport, settings, received: received, of: self, registration))
            registration.signal()
            return true
        case .closed: return false
        }
        configuration.tls = settings
        return true
    }

    /// A later handshake is one of `handshakes`; nil: there is no limit to them.
    func joinHandshakes(_ handshakes: UnfinishedHandshakes?) { configuration.handshakes = handshakes }

    /// Ends everything without a further event. Over TLS the last bytes and close_notify are still sent, and
    /// the peer gets some time to take them (`LingeringClose`).
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

    // MARK: - What run loops bring, inside the gate

    func sourceIsReady(_ source: RunLoop.Source, _ ready: RunLoop.Source.Interest) {
        if plainDescriptor >= 0, !ready.isEmpty { return moveBytes(ready, nil) }
        if ready.isEmpty, endRefused() { return }
        switch phase {
        case .opening(let opening): opening.sourceIsReady(source, ready)
        case .open(let transport): moveBytes(ready, transport.engine)
        case .created, .closed: break
        }
    }

    /// A pass that was asked for, or a timer's.
    func goOn() {
        if endRefused() { return }
        switch phase {
        case .opening(let opening): opening.goOn()
        case .open(let transport): if wantsRead, transport.hasPendingPlaintext { readable() }
        case .created, .closed: break
        }
    }

    /// Closes a connection that the kernel will not watch.
    ///
    /// - Returns: Whether it has done so.
    private func endRefused() -> Bool {
        guard let transport, let code = transport.source.refusalCode else { return false }
        let error = SocketError(code: code, operation: .watch, address: remoteAddress)
        fail(.broken(host: configuration.host, port: configuration.port, error))
        return true
    }

    // MARK: - Parking

    /// Ends the channel of a connection that goes on without it.
    ///
    /// - Returns: The descriptor; nil, and nothing has changed, where there is more to the connection than that: it is
    ///   secured, or not open, goes by a proxy's tunnel, or has still something to send.
    func handOver() -> Int32? {
        guard case .open(let transport) = phase, transport.engine == nil, configuration.isPlain,
            closesDescriptor,
            !tlsWaits.owesEnd
        else { return nil }
        // Before another source can have the descriptor.
        registration.remove(transport.source)
        let descriptor = transport.socket.handOver()
        // There is nothing left to be closed.
        phase = .closed
        registration.end()
        return descriptor
    }

    /// Goes on with a connection that is open already.
    func resume(_ socket: Socket, _ engine: TLSEngine? = nil) {
        hasOpened = true
        phase = .open(
            ChannelTransport(
                socket: socket, source: registration.makeSource(socket.descriptor, interest: []),
                engine: engine))
    }

    /// Ends the channel of a connection that goes on in another one: TLS and all, scheduled nowhere, without an owner.
    ///
    /// - Returns: Nil, and nothing has changed: it is not open.
    package func moveConnection() -> SocketChannel? {
        guard case .open(let transport) = phase else { return nil }
        let next = SocketChannel(configuration, .host)
        next.remoteAddress = remoteAddress
        next.closesDescriptor = closesDescriptor
        next.tlsWaits = tlsWaits
        // Before another source can have the descriptor.
        registration.remove(transport.source)
        phase = .closed
        registration.end()
        next.resume(transport.socket, transport.engine)
        return next
    }
}

// MARK: - Schedule

extension SocketChannel {
    /// What any thread may touch.
    package var interest: ChannelInterest { registration.interest }

    /// Whether `interest` is this channel's.
    package func has(_ interest: ChannelInterest) -> Bool { registration.interest === interest }

    /// Lets in what run loops bring. Set before the channel is scheduled, by an owner whose threads are several; removed
    /// by an owner that gives the channel up.
    package var gate: (any ChannelGate)? {
        get { interest.gate }
        set { interest.gate = newValue }
    }

    /// Also while open. `.common` stands for every common mode; several loops and modes may be given.
    package func schedule(in loop: RunLoop, forMode mode: RunLoop.Mode) {
        guard !isClosed else { return }
        schedule(in: SharedQueue.join(loop, mode))
    }

    /// In the mode of `queue`; to be called by a client of the queue, which leaves it after the channel.
    package func schedule(with queue: SharedQueue) {
        guard !isClosed else { return }
        queue.joinAgain()
        schedule(in: queue)
    }

    /// - Parameter queue: It was joined for the channel.
    private func schedule(in queue: SharedQueue) {
        if gate == nil { gate = OpenGate(self) }
        registration.add(queue)
    }

    package func remove(from loop: RunLoop, forMode mode: RunLoop.Mode) {
        registration.remove(ScheduledMode(loop: loop, mode: mode))
    }

    package func removeFromAllLoops() { registration.removeAll().leave() }

    /// As `removeFromAllLoops()`, under a lock of the caller's.
    ///
    /// - Returns: The queues to leave without it; nil: none.
    package func takeOutOfLoops() -> StreamSchedule.Left? { registration.removeAll() }

    /// A callback of its source is on this thread's stack, and the loop runs again inside: nothing would be heard of
    /// it in that run.
    package var isServedFurtherOut: Bool {
        transport.map { RunLoop.isServedFurtherOut($0.source) } ?? false
    }

    /// A callback of its source is on this thread's stack, in a run of `loop`, this thread's, after which a connection may
    /// stay registered for the next request; see `RunLoop.mayLeaveLater(_:)`.
    package func mayStayScheduled(in loop: RunLoop) -> Bool {
        phase.openSource.map { loop.mayLeaveLater($0) } ?? false
    }

    /// Lets nothing in any more, and watches again what `ChannelInterest.suspend()` has stopped to watch, for the next owner.
    package func removeGate() {
        if interest.removeGate() { registration.signal() }
    }

    /// Watches again what `ChannelInterest.suspend()` has stopped to watch.
    package func resumeInterest() {
        if interest.resume() { registration.signal() }
    }

    var scheduledModes: [ScheduledMode] { registration.modes }
}

// MARK: - For its opening

extension SocketChannel: ChannelOpeningOwner {
    func tell(_ event: ChannelEvent) {
        if case .connected(let address) = event { remoteAddress = address }
        handler?(event)
    }

    func isOpened(_ transport: ChannelTransport) {
        phase = .open(transport)
        updateInterest()
        // Its owner may have wanted to read since before: no socket announces bytes that are decrypted already.
        signalIfPlaintextIsPending()
        handlers.shrink()
        // A proxy's has been told of.
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

    func signalIfPlaintextIsPending() {
        if wantsRead && hasBufferedBytes { registration.signal() }
    }
}

@available(*, unavailable)
extension SocketChannel: Sendable {}
