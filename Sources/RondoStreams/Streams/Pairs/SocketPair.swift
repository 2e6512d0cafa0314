// The input and the output stream of one connection: two streams over one SocketChannel.
//
// *Modes.* The channel is in the loops and modes of both streams, so a pass for one stream may serve the
// other. Therefore nothing is delivered from here: the channel's events change the two states, and each
// stream calls its delegate in its own modes (StreamCore.swift).
//
// *Threads.* Everything is protected by `lock`, because the two streams may be used on different threads; the
// channel's gate takes it too. While it is held, only the channel, the two cores and run-loop sources are
// called, none of which calls back.
//
// Its parts: `+Bytes` reading and writing, `+Properties`. A SocketReader reads, a SocketWriter writes, and
// WaitingThreads waits.

internal import Glibc
internal import RondoCore
internal import RondoMutex

/// The connection of two streams, with its socket channel.
///
/// `@unchecked Sendable`: every variable is protected by `lock`. The channel is used under it too; once taken
/// out, it belongs to the thread that has taken it.
final class SocketPair: StreamBackend, ChannelGate, @unchecked Sendable {
    let target: SocketTarget
    /// Not NSLock, which takes 250 bytes.
    let lock = Mutex(())
    /// True once the last of the streams was closed, and with it the connection.
    private(set) var isOver = false
    let input = StreamCore(.input)
    let output = StreamCore(.output)
    // Changed in `+Bytes` and `+Properties` too, the streams' own calls, which take the lock here. Unchecked,
    // because no two accesses overlap under `lock`. With the checks of these two bench-guard's stream.message
    // takes 11 % more instructions.
    @exclusivity(unchecked) var reader: SocketReader
    @exclusivity(unchecked) var writer: SocketWriter
    var settings = SocketSettings.standard
    /// Nil before one of the streams is opened, and after both were closed.
    private(set) var channel: SocketChannel?
    private let live = LiveObject(.connection)

    /// - Parameter early: Bytes of an open connection that were read already.
    init(_ target: SocketTarget, early: [UInt8] = []) {
        self.target = target
        reader = SocketReader(input, early: early)
        writer = SocketWriter(output)
        if case .channel(let channel) = target, channel.isSecuredToHost {
            settings = settings.changed {
                ($0.tls, $0.tlsInformation) = (channel.configuration.tls, channel.tlsInformation)
            }
        }
    }

    deinit {
        // Without a channel the descriptor was not taken over yet.
        if channel == nil, !isOver, case .descriptor(let descriptor) = target, closesDescriptor {
            _ = Glibc.close(descriptor)
        }
    }

    func core(_ side: StreamState.Direction) -> StreamCore { side == .input ? input : output }

    // MARK: - Opening and closing

    func open(_ side: StreamState.Direction) {
        lock.withLock { _ in
            if side == .input { reader.open() } else { writer.open() }
            if let failure = writer.failure ?? (isOver ? .posix(ENOTCONN) : nil) {
                return core(side).update { $0.failed(failure) }
            }
            if core(side).queue != nil, let failure = Self.loaderFailure {
                return core(side).update { $0.failed(failure) }
            }
            guard let channel else { return start(side) }
            if channel.isOpen { announce(side) }
        }
    }

    /// The error if the system cannot start the thread of the loader's loop, which serves the socket of a
    /// stream with a dispatch queue; nil if the thread runs.
    private static var loaderFailure: NSError? {
        do throws(SystemError) {
            _ = try RunLoop.startedLoader()
            return nil
        } catch {
            return .posix(error.code)
        }
    }

    /// Closes one stream. When the output closes before the input, the peer is told the end, and the input
    /// can still be read.
    func close(_ side: StreamState.Direction) {
        // The connection may release objects of the program, which may call back: it is closed and released
        // without the lock, when no stream refers to it any more.
        var (closed, old): (SocketChannel?, SocketSettings?)
        lock.withLock { _ in
            old = settings
            closed = leave(side)
        }
        closed?.close()
        closed?.handler = nil
        withExtendedLifetime(old) {}
    }

    /// - Returns: The channel, which the caller must close, if neither stream is open any more.
    private func leave(_ side: StreamState.Direction) -> SocketChannel? {
        guard side == .input ? reader.close() : writer.close() else { return nil }
        guard reader.isOpen || writer.isOpen else {
            isOver = true
            settings = settings.withoutHandlers
            if let information = channel?.tlsInformation {
                settings = settings.changed { $0.tlsInformation = information }
            }
            // Under the lock, so that no late callback of a loop meets the channel while it is closed.
            channel?.registration.endAccess()
            return channel.take()
        }
        if side == .output { channel?.endWriting() }
        updateInterest()
        return nil
    }

    private func start(_ side: StreamState.Direction) {
        let channel: SocketChannel
        do throws(SocketError) {
            channel = try makeChannel()
        } catch {
            isOver = true
            let failure = NSError.posix(error.code, error.description)
            writer.refuse(failure)
            return core(side).update { $0.failed(failure) }
        }
        // The handler retains the pair until both streams are closed; each stream closes in its deinit.
        // (A weak reference would make every use of the pair slower. A closure that captures one object needs
        // no memory of its own.)
        channel.registration.beginAccess(to: channel, by: self)
        channel.handler = { [self] event in handle(event) }
        channel.closesDescriptor = closesDescriptor
        for mode in input.servingModes { channel.schedule(in: mode.loop, forMode: mode.mode) }
        for mode in output.servingModes { channel.schedule(in: mode.loop, forMode: mode.mode) }
        self.channel = channel
        guard channel.isOpen else { return channel.open() }
        // An open channel that was handed over does not report `open` again. With TLS, the streams are open
        // when it is secured.
        if let tls = settings.value.tls, secure(channel, by: tls) { applyOptions() } else { didOpen() }
    }

    /// Waits for another thread that is inside, and so refuses nothing.
    func admit(_ event: () -> Void, onRefusal: () -> Void) { lock.withLock { _ in event() } }

    private func makeChannel() throws(SocketError) -> SocketChannel {
        let settings = settings.value
        let peer = target.peerAddress
        var configuration = ChannelConfiguration(
            host: target.host(at: peer), port: target.port(at: peer), tls: settings.tls)
        configuration.openingLimit = settings.options.connectTimeout
        if configuration.tls != nil { configuration.handshakes = settings.handshakes }
        return try target.makeChannel(configuration, at: peer, through: settings.proxy)
    }

    // MARK: - Schedule

    func schedule(in mode: LoopMode) {
        lock.withLock { _ in
            if let channel {
                channel.schedule(in: mode.loop, forMode: mode.mode)
                if waitingCount == 0 { WaitingThreads.release(channel) }
            }
            checkSpaceUnlessItCanWait()
        }
    }

    func remove(from mode: LoopMode) {
        lock.withLock { _ in
            checkSpaceUnlessItCanWait()
            guard let channel else { return }
            // The other stream may still need the mode.
            guard !input.isServed(in: mode), !output.isServed(in: mode) else { return }
            channel.remove(from: mode.loop, forMode: mode.mode)
        }
    }

    // MARK: - The channel's events (the lock is held)

    private func handle(_ event: ChannelEvent) {
        switch event {
        case .resolving, .connecting, .connected, .negotiating, .securing: return
        case .secured: didSecure()
        case .open: didOpen()
        case .readable:
            // The interest is dropped only now, after an event in vain: most clients have read before the
            // next pass.
            if !reader.readAhead(from: channel, &writer) { channel?.wantsRead = false }
        case .writable:
            if output.state.wantsToBeReady { output.update { $0.setReady(true) } }
            // A thread that waits to write sets it again by its next attempt, if there is not enough room.
            channel?.wantsWrite = false
        case .failed(let error):
            if case .negotiation(let error) = error {
                settings = settings.changed { $0.proxyResponse = error.response }
            }
            breakDown(error.streamError)
        }
        writer.waiting?.wakeUp()
    }

    private func didOpen() {
        applyOptions()
        if reader.isOpen { announce(.input) }
        if writer.isOpen { announce(.output) }
        if writer.hasEnded { channel?.endWriting() }
    }

    /// Handles the end of a STARTTLS; for TLS from the start the state is not open yet, and `open` follows.
    private func didSecure() {
        if output.status == .open { output.update { $0.setReady(true) } }
        // `open` was reported already; a stream may have been opened while TLS was being set up.
        if let channel, channel.hasOpened {
            if reader.isOpen, input.status == .opening { announce(.input) }
            if writer.isOpen, output.status == .opening { announce(.output) }
        }
        // It may have been closed while TLS was being set up.
        if writer.hasEnded { channel?.endWriting() }
        updateInterest()
    }

    private func announce(_ side: StreamState.Direction) {
        core(side).opened(isReady: side == .output)
        guard side == .input else { return }
        channel?.wantsRead = true
        if reader.hasEarlyBytes { _ = reader.readAhead(from: channel, &writer) }
    }

    /// Handles the loss of the connection: each open stream fails, the input after its last byte was read
    /// (rule ST-38).
    private func breakDown(_ error: NSError) {
        writer.fail(error)
        reader.fail(error)
        channel?.wantsRead = false
        channel?.wantsWrite = false
    }

    func updateInterest() {
        guard let channel, channel.isOpen else { return }
        channel.wantsRead = reader.wantsBytes
        if !writer.isOpen { channel.wantsWrite = false }
    }

    // MARK: - Clients that wait or poll

    /// Repeats `attempt` until it returns a result, and runs the thread's loop in the waiting mode in
    /// between.
    func wait(_ attempt: () -> Int?) -> Int {
        if let result = lock.withLock({ _ in attempt() }) { return result }
        let waiter = WaitingThreads.Waiter()
        lock.withLock { _ in waitingCreatingIfNeeded.add(waiter) }
        defer {
            lock.withLock { _ in writer.waiting?.remove(waiter) }
            waiter.end()
        }
        while true {
            let result = lock.withLock { _ in
                let result = attempt()
                if result == nil, let channel {
                    WaitingThreads.drive(channel, in: waiter.loop, isAlone: waitingCount == 1)
                }
                return result
            }
            if let result { return result }
            guard waiter.waitForChange() else { return -1 }
        }
    }

    /// Polls the waiting mode once, if the connection is scheduled nowhere and has work that no other call of
    /// the client would do.
    func advance() {
        let loop = lock.withLock { _ -> RunLoop? in
            guard let channel, channel.isBusy, !input.isScheduled, !output.isScheduled else { return nil }
            let loop = RunLoop.currentLoop()
            WaitingThreads.drive(channel, in: loop, isAlone: waitingCount == 0)
            return loop
        }
        if let loop { WaitingThreads.poll(loop) }
    }

    private var waitingCount: Int { writer.waiting?.count ?? 0 }

    private var waitingCreatingIfNeeded: WaitingThreads {
        if let waiting = writer.waiting { return waiting }
        let waiting = WaitingThreads()
        writer.waiting = waiting
        return waiting
    }
}
