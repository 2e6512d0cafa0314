// The input and the output stream of one connection: two streams over one SocketChannel.
//
// *Threads and modes.* The channel is in the loops and modes of both streams, so a pass on behalf of one may serve the
// other. Therefore nothing is delivered from here: what the channel says changes the two states, and each
// stream tells its delegate in its own modes (StreamCore.swift).
//
// Threads: everything is behind `lock`, because the two streams may live on different threads; the channel's
// gate takes it too. Nothing is called with it held but the channel, the two cores and run-loop sources, none
// of which calls back.
//
// Its parts: `+Bytes` reading and writing, `+Properties`. Reading is done by a SocketReader, writing by a SocketWriter,
// waiting by WaitingThreads.

internal import Glibc
internal import RondoCore
internal import RondoMutex

/// The connection of two streams, with its socket channel.
///
/// `@unchecked Sendable`: every variable is behind `lock`. The channel is used under it too; once it was taken out it belongs
/// to the thread that has taken it.
final class SocketPair: StreamBackend, ChannelGate, @unchecked Sendable {
    let target: SocketTarget
    /// Not NSLock, which is 250 bytes.
    let lock = Mutex(())
    /// True once the last of the streams was closed, and with it the connection.
    private(set) var isOver = false
    let input = StreamCore(.input)
    let output = StreamCore(.output)
    // Also changed in `+Bytes` and `+Properties`. Unchecked, because under `lock` no access overlaps with another, and to check
    // these two takes 9 % of the instructions of a small message from one stream to the other (bench-guard's
    // stream.message: 11,200 in place of 10,200).
    @exclusivity(unchecked) var reader: SocketReader
    @exclusivity(unchecked) var writer: SocketWriter
    var settings = SocketSettings.standard
    /// Nil before one of the streams is opened, and after both were closed.
    private(set) var channel: SocketChannel?
    /// Made when a thread waits for the first time.
    private var waiting: WaitingThreads?
    private let live = LiveObject(.connection)

    /// - Parameter early: What was read of an open connection already.
    init(_ target: SocketTarget, early: [UInt8] = []) {
        self.target = target
        reader = SocketReader(input, early: early)
        writer = SocketWriter(output)
    }

    deinit {
        // Without a channel the client's descriptor was not taken over yet.
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

    /// Why the system has no thread for the loader's loop, which serves the socket of a stream with a dispatch queue; nil:
    /// it has.
    private static var loaderFailure: NSError? {
        do throws(SystemError) {
            _ = try RunLoop.startedLoader()
            return nil
        } catch {
            return .posix(error.code)
        }
    }

    /// Of an output whose input stays open the peer is told the end, and is read on.
    func close(_ side: StreamState.Direction) {
        // The connection may release objects of the program's, which may call back: it is closed and released without the
        // lock, when no stream refers to it any more.
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
        guard side == .input ? reader.close() : writer.close() else { return nil }
        guard reader.isOpen || writer.isOpen else {
            isOver = true
            settings = settings.withoutHandlers
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
        // They keep the pair until both streams are closed, as each is when it goes. (Weak references would make every use
        // of the pair slower. A closure that captures one object needs no memory of its own.)
        channel.gate = self
        channel.handler = { [self] event in handle(event) }
        channel.closesDescriptor = closesDescriptor
        for mode in drivers(of: .input) + drivers(of: .output) {
            channel.schedule(in: mode.loop, forMode: mode.mode)
        }
        self.channel = channel
        // One that was handed over is open, and says so no more.
        if channel.isOpen { hasOpened() } else { channel.open() }
    }

    func enter(for _: ChannelInterest, _ body: (SocketChannel) -> Void) {
        lock.withLock { _ in
            if let channel { body(channel) }
        }
    }

    private func makeChannel() throws(SocketError) -> SocketChannel {
        let settings = settings.value
        var configuration = ChannelConfiguration(host: remoteHost, port: remotePort, tls: settings.tls)
        configuration.openingLimit = settings.options.connectTimeout
        if configuration.tls != nil { configuration.handshakes = settings.handshakes }
        return try target.makeChannel(configuration, through: settings.proxy)
    }

    // MARK: - Schedule

    /// The modes of a stream, or the loader's where it has a dispatch queue.
    private func drivers(of side: StreamState.Direction) -> [ScheduledMode] {
        core(side).modes + (core(side).queue == nil ? [] : [.loader])
    }

    func schedule(in mode: ScheduledMode) {
        lock.withLock { _ in
            channel?.schedule(in: mode.loop, forMode: mode.mode)
            checkSpaceAtOnce()
        }
    }

    func remove(from mode: ScheduledMode) {
        lock.withLock { _ in
            checkSpaceAtOnce()
            guard let channel else { return }
            // The other stream may still need it.
            guard !drivers(of: .input).contains(mode), !drivers(of: .output).contains(mode) else { return }
            channel.remove(from: mode.loop, forMode: mode.mode)
        }
    }

    // MARK: - What the channel says (the lock is held)

    private func handle(_ event: ChannelEvent) {
        switch event {
        case .resolving, .connecting, .connected, .negotiating: return
        case .secured: hasBeenSecured()
        case .open: hasOpened()
        case .readable:
            // Dropped only now, when it was in vain: most clients have read before the next pass.
            if !reader.isReadable(channel, &writer) { channel?.wantsRead = false }
        case .writable:
            if output.state.wantsToBeReady { output.update { $0.setReady(true) } }
            if waiting?.isEmpty ?? true { channel?.wantsWrite = false }
        case .failed(let error):
            if case .negotiation(let error) = error {
                settings = settings.changed { $0.proxyResponse = error.response }
            }
            breakDown(error.streamError)
        }
        waiting?.wakeUp()
    }

    private func hasOpened() {
        applyOptions()
        if reader.isOpen { announce(.input) }
        if writer.isOpen { announce(.output) }
        if writer.hasEnded { channel?.endWriting() }
    }

    /// The end of a STARTTLS; at the start the state is not open yet, and `open` follows.
    private func hasBeenSecured() {
        if output.status == .open { output.update { $0.setReady(true) } }
        updateInterest()
    }

    private func announce(_ side: StreamState.Direction) {
        core(side).opened(isReady: side == .output)
        guard side == .input else { return }
        channel?.wantsRead = true
        if reader.hasEarlyBytes { _ = reader.isReadable(channel, &writer) }
    }

    /// The connection is lost: each open stream fails, the input when its last byte was read (rule ST-38).
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

    /// Makes attempts until one answers, and runs the thread's loop in the waiting mode between them.
    func wait(_ attempt: () -> Int?) -> Int {
        if let result = lock.withLock({ _ in attempt() }) { return result }
        let waiter = WaitingThreads.Waiter()
        lock.withLock { _ in madeWaiting.add(waiter) }
        defer {
            lock.withLock { _ in waiting?.remove(waiter) }
            waiter.end()
        }
        while true {
            let result = lock.withLock { _ in
                let result = attempt()
                if result == nil, let channel { madeWaiting.drive(channel, in: waiter.loop) }
                return result
            }
            if let result { return result }
            guard waiter.waitForChange() else { return -1 }
        }
    }

    /// One poll of the waiting mode, where the connection has something to do that no call of the client's
    /// would do, and no loop either: it is scheduled nowhere.
    func advance() {
        let loop = lock.withLock { _ -> RunLoop? in
            guard let channel, channel.isBusy, !input.isScheduled, !output.isScheduled else { return nil }
            let loop = RunLoop.currentLoop()
            madeWaiting.drive(channel, in: loop)
            return loop
        }
        if let loop { WaitingThreads.poll(loop) }
    }

    private var madeWaiting: WaitingThreads {
        if let waiting { return waiting }
        let waiting = WaitingThreads()
        self.waiting = waiting
        return waiting
    }
}
