// The input and the output stream of one connection: two streams over one SocketChannel.
//
// *Who runs.* The channel is in the loops and modes of both streams, so a pass on behalf of one may serve the
// other. Therefore nothing is delivered from here: what the channel says changes the two states, and each
// stream tells its delegate from its own source, in its own modes (StreamCore.swift).
//
// *How the end is found.* A socket that is readable has bytes or has met its end, and the delegate is told
// these apart. So a little is read ahead (`readAhead`), which costs small messages no call more than reading
// them does; a client that asks for more gets the rest straight into its own buffer. As long as those bytes
// lie here, no more is read, so that a client that pauses holds the peer back.
//
// *How one waits.* A read or write that must wait runs the thread's loop in a private mode that holds nothing
// but this channel (rules ST-24, ST-25). The channel may be served by another thread's loop meanwhile: a
// source of the waiter's own tells it that something has changed.
//
// Threads: everything is behind `lock`, because the two streams may live on different threads; the channel's
// gate takes it too. Nothing is called with it held but the channel, the two cores and run-loop sources, none
// of which calls back.

internal import RondoCore
internal import Synchronization

/// `@unchecked Sendable`: every variable is behind `lock`.
final class SocketPair: StreamBackend, @unchecked Sendable {
    /// Bytes read ahead at most; enough for most messages.
    static let readAhead = 4_096
    /// The mode that a waiting thread runs its loop in.
    static let waitingMode = RunLoop.Mode("RondoStreamWaiting")

    private struct Sides: OptionSet {
        let rawValue: UInt8

        static let input = Sides(rawValue: 1), output = Sides(rawValue: 2)
    }

    private enum Ending {
        case end
        case failed(NSError)
    }

    /// Not NSLock, which is 250 bytes.
    private let lock = Mutex(())
    private let host: String
    private let port: Int
    private let input: StreamCore
    private let output: StreamCore
    private var tls: TLSSettings?
    /// Nil before one of the streams is opened, and after both were closed.
    private var channel: SocketChannel?
    /// The streams that the client has opened and not closed.
    private var opened: Sides = []
    /// The last of them was closed, and with it the connection.
    private var isOver = false
    /// Where the streams are scheduled; a place of both is here twice.
    private var places: [StreamCore.Place] = []
    private var waiters: [RunLoop.Source] = []
    /// Loops whose waiting mode holds the channel already.
    private var waitingLoops: [RunLoop] = []
    private var ahead: ArraySlice<UInt8> = []
    /// What comes behind `ahead`.
    private var inputEnding: Ending?
    /// Why nothing can be written any more.
    private var outputFailure: NSError?

    init(host: String, port: Int, input: StreamCore, output: StreamCore) {
        self.host = host
        self.port = port
        self.input = input
        self.output = output
    }

    deinit { channel?.close() }

    private func core(_ side: StreamState.Direction) -> StreamCore { side == .input ? input : output }
    private func set(_ side: StreamState.Direction) -> Sides { side == .input ? .input : .output }

    // MARK: - Opening and closing

    func open(_ side: StreamState.Direction) {
        lock.withLock { _ in
            opened.insert(set(side))
            if let failure = outputFailure ?? (isOver ? .posix(ENOTCONN) : nil) {
                return core(side).update { $0.failed(failure) }
            }
            let channel = channel ?? makeChannel()
            guard channel.isOpen else { return }
            announce(side)
        }
    }

    func close(_ side: StreamState.Direction) {
        lock.withLock { _ in
            guard opened.remove(set(side)) != nil else { return }
            guard opened.isEmpty else { return updateInterest() }
            isOver = true
            channel?.close()
            channel = nil
            ahead = []
        }
    }

    private func makeChannel() -> SocketChannel {
        let channel = SocketChannel(.init(host: host, port: port, tls: tls))
        // Neither keeps the pair alive: it is the pair that owns the channel.
        channel.gate = { [weak self] body in self?.lock.withLock { _ in body() } }
        channel.handler = { [weak self] event in self?.handle(event) }
        for place in places { channel.schedule(in: place.loop, forMode: place.mode) }
        self.channel = channel
        channel.open()
        return channel
    }

    // MARK: - Schedule

    func schedule(in loop: RunLoop, forMode mode: RunLoop.Mode) {
        lock.withLock { _ in
            places.append(.init(loop: loop, mode: mode))
            channel?.schedule(in: loop, forMode: mode)
            channel?.resumeInterest()
        }
    }

    func remove(from loop: RunLoop, forMode mode: RunLoop.Mode) {
        let place = StreamCore.Place(loop: loop, mode: mode)
        lock.withLock { _ in
            guard let index = places.firstIndex(of: place) else { return }
            places.remove(at: index)
            if !places.contains(place) { channel?.remove(from: loop, forMode: mode) }
        }
    }

    // MARK: - What the channel says (the lock is held)

    private func handle(_ event: SocketChannel.Event) {
        switch event {
        case .resolving, .connecting, .connected: return
        case .secured:
            // The end of a STARTTLS; at the start the state is not open yet, and `open` follows.
            if output.state.status == .open { output.update { $0.setReady(true) } }
        case .open:
            if opened.contains(.input) { announce(.input) }
            if opened.contains(.output) { announce(.output) }
        case .readable:
            // Dropped only now, when it was in vain: most clients have read before the next pass.
            guard ahead.isEmpty, inputEnding == nil, opened.contains(.input) else {
                channel?.wantsRead = false
                break
            }
            lookAhead()
        case .writable:
            if output.state.wantsToBeReady { output.update { $0.setReady(true) } }
            if waiters.isEmpty { channel?.wantsWrite = false }
        case .failed(let error):
            breakDown(error.streamError)
        }
        for waiter in waiters { waiter.signalAndWakeUp() }
    }

    private func announce(_ side: StreamState.Direction) {
        core(side).opened(isReady: side == .output)
        if side == .input { channel?.wantsRead = true }
    }

    /// The connection is lost: each open stream fails, the input when its last byte was read (rule ST-38).
    private func breakDown(_ error: NSError) {
        outputFailure = outputFailure ?? error
        inputEnding = inputEnding ?? .failed(error)
        if opened.contains(.output) { output.update { $0.failed(error) } }
        settleInput()
        channel?.wantsRead = false
        channel?.wantsWrite = false
    }

    /// When the bytes read ahead are used up, what comes behind them takes effect.
    private func settleInput() {
        guard ahead.isEmpty, let inputEnding, opened.contains(.input) else { return }
        switch inputEnding {
        case .end: input.update { $0.ended() }
        case .failed(let error): input.update { $0.failed(error) }
        }
    }

    private func updateInterest() {
        guard let channel, channel.isOpen else { return }
        channel.wantsRead = opened.contains(.input) && ahead.isEmpty && inputEnding == nil
        if !opened.contains(.output) { channel.wantsWrite = false }
    }

    // MARK: - Reading

    func read(_ buffer: UnsafeMutableRawBufferPointer) -> Int {
        wait { take(buffer) }
    }

    /// One attempt to read; nil: wait.
    private func take(_ buffer: UnsafeMutableRawBufferPointer) -> Int? {
        switch input.state.status {
        case .open: break
        case .opening: return nil
        case .atEnd: return 0
        default: return -1
        }
        var count = min(ahead.count, buffer.count)
        ahead.prefix(count).withUnsafeBytes { buffer.copyMemory(from: $0) }
        ahead = ahead.dropFirst(count)
        // Released, not kept for later: most connections are idle most of the time.
        if ahead.isEmpty { ahead = [] }
        // A read-ahead that was not full has emptied the socket.
        if count == 0 || count == Self.readAhead {
            count += receive(UnsafeMutableRawBufferPointer(rebasing: buffer.dropFirst(count)))
        }
        settleInput()
        switch inputEnding {
        case .end where count == 0: return 0
        case .failed where count == 0: return -1
        default: break
        }
        if let channel, channel.isOpen { channel.wantsRead = ahead.isEmpty && inputEnding == nil }
        guard count > 0 else { return nil }
        input.update { $0.used(isReady: !ahead.isEmpty) }
        return count
    }

    /// Reads from the channel and remembers how it ended.
    private func receive(_ buffer: UnsafeMutableRawBufferPointer) -> Int {
        guard !buffer.isEmpty, inputEnding == nil, let channel, channel.isOpen else { return 0 }
        do throws(ChannelError) {
            switch try channel.read(into: buffer) {
            case .bytes(let count): return count
            case .wouldBlock: return 0
            // A connection lost while something was written looks like an orderly end afterwards.
            case .end: inputEnding = outputFailure.map { .failed($0) } ?? .end
            case .truncated: breakDown(.truncated(host: host))
            }
        } catch {
            breakDown(error.streamError)
        }
        return 0
    }

    private func lookAhead() {
        let bytes = [UInt8](unsafeUninitializedCapacity: Self.readAhead) { buffer, count in
            count = receive(UnsafeMutableRawBufferPointer(buffer))
        }
        ahead = bytes[...]
        if !bytes.isEmpty { input.update { $0.setReady(true) } }
        settleInput()
    }

    var hasBytesAvailable: Bool {
        lock.withLock { _ in
            if ahead.isEmpty { lookAhead() }
            return !ahead.isEmpty
        }
    }

    // MARK: - Writing

    func write(_ bytes: UnsafeRawBufferPointer) -> Int {
        wait { give(bytes) }
    }

    /// One attempt to write; nil: wait.
    private func give(_ bytes: UnsafeRawBufferPointer) -> Int? {
        guard outputFailure == nil, output.state.mayTransfer else { return -1 }
        guard let channel, channel.isOpen else { return nil }
        do throws(ChannelError) {
            let count = try channel.write(bytes)
            output.update { $0.used(isReady: count == bytes.count) }
            if count < bytes.count { channel.wantsWrite = true }
            return count > 0 ? count : nil
        } catch {
            // What the peer has sent before is still read; then the input fails, too.
            let error = error.streamError
            outputFailure = error
            output.update { $0.failed(error) }
            channel.wantsWrite = false
            return -1
        }
    }

    var hasSpaceAvailable: Bool { output.state.isReady }

    // MARK: - Waiting

    /// Makes attempts until one answers, and runs the thread's loop in the waiting mode between them.
    private func wait(_ attempt: () -> Int?) -> Int {
        if let result = lock.withLock({ _ in attempt() }) { return result }
        let loop = RunLoop.currentLoop()
        let waiter = RunLoop.Source {}
        loop.add(waiter, forMode: Self.waitingMode)
        lock.withLock { _ in waiters.append(waiter) }
        var wasStopped = false
        defer {
            lock.withLock { _ in waiters.removeAll { $0 === waiter } }
            waiter.invalidate()
            // Whoever stopped the loop meant what runs outside of this.
            if wasStopped { loop.stop() }
        }
        while true {
            let result = lock.withLock { _ in
                let result = attempt()
                if result == nil { channel.map { waitIn(loop, $0) } }
                return result
            }
            if let result { return result }
            switch loop.run(in: Self.waitingMode, for: .infinity, returnAfterSourceHandled: true) {
            case .handledSource, .timedOut: break
            case .stopped: wasStopped = true
            // The mode holds the waiter and is run, unless the thread itself is ending.
            case .finished: return -1
            }
        }
    }

    private func waitIn(_ loop: RunLoop, _ channel: SocketChannel) {
        guard !waitingLoops.contains(loop) else { return }
        waitingLoops.append(loop)
        channel.schedule(in: loop, forMode: Self.waitingMode)
        // What it had to do before it was in any loop, to begin with opening, it does now.
        channel.resumeInterest()
    }

    // MARK: - Properties

    func property(forKey key: Foundation.Stream.PropertyKey) -> AnyObject? {
        lock.withLock { _ in
            switch key {
            case .socketRemoteHostNameKey: host as NSString
            case .socketRemotePortNumberKey: port as NSNumber
            case .tlsSettingsKey: tls.map { $0 as AnyObject }
            case .tlsInformationKey: channel?.tlsInformation.map { $0 as AnyObject }
            case .socketSecurityLevelKey: (tls?.level ?? .none).rawValue as NSString
            default: nil
            }
        }
    }

    func setProperty(_ property: AnyObject?, forKey key: Foundation.Stream.PropertyKey) -> Bool {
        lock.withLock { _ in
            guard !isOver else { return false }
            switch key {
            case .tlsSettingsKey:
                guard property == nil || property is TLSSettings else { return false }
                return secure(property as? TLSSettings)
            case .socketSecurityLevelKey:
                guard let settings = TLSSettings.level(property, basedOn: tls) else { return false }
                return secure(settings)
            case .sslSettingsKey:
                guard let values = property as? [String: Any],
                    let settings = TLSSettings.dictionary(values, basedOn: tls)
                else { return false }
                return secure(settings)
            default:
                return false
            }
        }
    }

    /// From the start, or, when the connection stands already, from here on (rule ST-42).
    private func secure(_ settings: TLSSettings?) -> Bool {
        if let channel {
            let wasOpen = channel.isOpen
            guard channel.secure(settings, received: Array(ahead)) else { return false }
            if wasOpen, settings != nil {
                // What was read ahead is TLS's; there is neither bytes nor space until that stands.
                ahead = []
                channel.wantsRead = inputEnding == nil && opened.contains(.input)
                input.update { $0.setReady(false) }
                output.update { $0.setReady(false) }
            }
        }
        tls = settings
        return true
    }
}
