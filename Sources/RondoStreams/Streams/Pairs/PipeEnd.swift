// One end of a pipe to another process, behind an input or an output stream.
//
// Threads: the changeable state is protected by the Mutex. While it is held, only the kernel is called, by
// calls that do not wait. The core's lock comes first: `look` takes the Mutex under it. A call that has to
// wait for the other process waits in poll(2), without the Mutex, so that no callback of the thread's loop
// runs meanwhile (rule ST-25).
//
// While no mode of the stream runs, the descriptor is not watched: the pipe fills, and the other process
// waits.

internal import CRondoSystem
internal import Glibc
internal import RondoCore
internal import RondoMutex

/// The end of a pipe that one stream reads or writes (rules CH-11, CH-13 and CH-15).
final class PipeEnd: StreamBackend, Sendable {
    fileprivate struct State {
        /// Negative once closed.
        var descriptor: Int32
        /// Set from the opening to the close or the end.
        var source: RunLoop.Source?
        var ended: (@Sendable () -> Void)?
    }

    private let state: Mutex<State>
    private let core: StreamCore
    private let side: StreamState.Direction
    private let name: String

    /// - Parameters:
    ///   - descriptor: A non-blocking descriptor, which this object closes.
    ///   - ended: See `InputStream.init(pipe:name:ended:)`.
    init(
        _ descriptor: Int32, _ core: StreamCore, _ side: StreamState.Direction, name: String,
        ended: (@Sendable () -> Void)?
    ) {
        state = Mutex(State(descriptor: descriptor, ended: ended))
        self.core = core
        self.side = side
        self.name = name
    }

    deinit { finish(closes: true) }

    private var interest: RunLoop.Source.Interest { side == .input ? .read : .write }

    // MARK: - Opening and closing

    func open(_ side: StreamState.Direction) {
        core.opened(isReady: false)
        let source = state.withLock { state -> RunLoop.Source? in
            guard state.descriptor >= 0, state.source == nil else { return nil }
            state.source = RunLoop.Source(
                fileDescriptor: state.descriptor, keepsFile: true, interest: interest
            ) { [weak self] source, ready in self?.serve(source, isRefused: ready.isEmpty) }
            return state.source
        }
        guard let source else { return }
        source.label = name
        for mode in core.servingModes { mode.add(source) }
    }

    func close(_ side: StreamState.Direction) { finish(closes: true) }

    /// Stops watching the descriptor, closes it if asked to, and calls `ended`, all without the Mutex.
    private func finish(closes: Bool) {
        let (source, descriptor, ended) = state.withLock { state in
            let descriptor = closes ? state.descriptor : -1
            if closes { state.descriptor = -1 }
            return (state.source.take(), descriptor, state.ended.take())
        }
        // The source goes before its descriptor is closed. A loop of another thread releases it when it wakes
        // up.
        source?.invalidateAndWakeUp()
        if descriptor >= 0 { _ = Glibc.close(descriptor) }
        ended?()
    }

    func schedule(in mode: LoopMode) {
        if let source = state.withLock({ $0.source }) { mode.add(source) }
    }

    func remove(from mode: LoopMode) {
        if let source = state.withLock({ $0.source }) { mode.remove(source, keeping: core.modes) }
    }

    func advance() {}
    var peerName: String? { name }

    // MARK: - Callbacks of the loop

    private func serve(_ source: RunLoop.Source, isRefused: Bool) {
        if isRefused {
            // The kernel refuses to watch the descriptor; the source has the reason.
            fail(source.refusalCode ?? ENOMEM)
        } else if core.state.wantsToBeReady {
            look()
        } else {
            // The client wants no such event: stop watching. Not earlier, because most clients read or write
            // before the next pass.
            source.stopWatching(interest) { core.state.wantsToBeReady }
        }
    }

    private enum Outcome: Equatable {
        /// Bytes or space are there.
        case ready
        case nothing
        case end
        /// The value of `errno`.
        case failed(Int32)
    }

    /// Notes what can be done now: bytes or space are there, the end is, or nothing is new.
    private func look() {
        switch core.noteReady(outcome, { $0 == .ready }) {
        case .ready, .nothing: break
        case .end: end()
        case .failed(let code): fail(code)
        }
    }

    private func outcome() -> Outcome {
        let events = events()
        switch side {
        case .input where events & POLLIN != 0: return .ready
        case .input where events & POLLHUP != 0: return .end
        // No reader is left (rule CH-15).
        case .output where events & POLLERR != 0: return .failed(EPIPE)
        case .output where events & POLLOUT != 0: return .ready
        case .input, .output: return events & (POLLERR | POLLNVAL) != 0 ? .failed(EIO) : .nothing
        }
    }

    /// What `poll` says of the descriptor; none once it is closed.
    private func events() -> Int32 {
        state.withLock { state in
            state.descriptor < 0
                ? 0 : SocketCalls.poll(state.descriptor, for: side == .input ? POLLIN : POLLOUT)
        }
    }

    private func end() {
        core.update { $0.ended() }
        finish(closes: false)
    }

    private func fail(_ code: Int32) {
        core.update { $0.failed(.posix(code, "\(name): \(SocketError.sentence(of: code))")) }
        finish(closes: false)
    }

    // MARK: - Bytes

    /// Repeats `call` until it returns a result, and waits for the other process in between.
    ///
    /// - Returns: The result; -1 on failure, which is recorded.
    private func transfer(_ call: (Int32) -> Int) -> Int {
        while true {
            let (result, code, descriptor) = state.withLock { state -> (Int, Int32, Int32) in
                guard state.descriptor >= 0 else { return (-1, EBADF, -1) }
                let result = call(state.descriptor)
                return (result, errno, state.descriptor)
            }
            if result >= 0 { return result }
            switch code {
            case EINTR: continue
            case EAGAIN:
                // By rule ST-20 the stream is not closed on another thread meanwhile.
                var wanted = pollfd(
                    fd: descriptor, events: Int16(side == .input ? POLLIN : POLLOUT), revents: 0)
                _ = poll(&wanted, 1, -1)
            default:
                if descriptor >= 0 { fail(code) }
                return -1
            }
        }
    }

    /// Arms the stream for its next event, and watches the descriptor again.
    private func noteUse() {
        core.update { $0.used(isReady: false) }
        guard let source = state.withLock({ $0.source }), source.interest != interest else { return }
        source.interest = interest
    }

    func read(_ buffer: UnsafeMutableRawBufferPointer) -> Int {
        guard core.status != .atEnd else { return 0 }
        let count = transfer { Glibc.read($0, buffer.baseAddress, buffer.count) }
        if count > 0 { noteUse() } else if count == 0 { end() }
        return count
    }

    func lend(atMost limit: Int) -> UnsafeMutableBufferPointer<UInt8>? { nil }

    // At the end only trying can tell (rule ST-26).
    var hasBytesAvailable: Bool { events() != 0 }
    var hasSpaceAvailable: Bool { events() != 0 }

    func write(_ bytes: UnsafeRawBufferPointer) -> Int {
        guard let start = bytes.baseAddress else { return 0 }
        let count = transfer { rondo_write_quietly($0, start, bytes.count) }
        if count >= 0 { noteUse() }
        return count
    }

    func write(_ pieces: [UnsafeRawBufferPointer]) -> Int { pieces.first.map { write($0) } ?? 0 }

    // MARK: - Properties

    func property(forKey key: Foundation.Stream.PropertyKey) -> AnyObject? { nil }
    func setProperty(_ property: AnyObject?, forKey key: Foundation.Stream.PropertyKey) -> Bool { false }
}
