internal import Glibc
internal import RondoCore
internal import RondoMutex

/// Reads an output of a child into memory, in the modes of the child, up to a limit (rules CH-13 and CH-14).
final class OutputCollector: Sendable {
    /// The most bytes of one read: the capacity of a pipe. It leaves time for other sources.
    private static let piece = 64 * 1024

    private struct State {
        /// Negative once the descriptor is closed.
        var descriptor: Int32
        var data = Data()
        var hasOverflown = false
        /// The errno of a failed read.
        var failure: Int32?
        var overflow: (@Sendable () -> Void)?
        var source: RunLoop.Source?

        /// Reads once.
        ///
        /// - Returns: True if reading is over: at the end, beyond the limit, or after an error.
        mutating func readPiece(upTo limit: Int) -> Bool {
            guard descriptor >= 0 else { return false }
            let count = withUnsafeTemporaryAllocation(byteCount: OutputCollector.piece, alignment: 1) {
                buffer in
                let count = Glibc.read(descriptor, buffer.baseAddress, buffer.count)
                if count < 0, errno != EAGAIN, errno != EINTR { failure = errno }
                if count > 0 {
                    let room = limit - data.count
                    data.append(contentsOf: UnsafeRawBufferPointer(rebasing: buffer.prefix(min(count, room))))
                    if count > room { hasOverflown = true }
                }
                return count
            }
            return count == 0 || hasOverflown || failure != nil
        }

        /// Reads what is in the pipe now; other processes may go on writing. The child may have enlarged the
        /// pipe.
        mutating func readAvailable(upTo limit: Int) {
            var count: Int32 = 0
            guard ioctl(descriptor, UInt(FIONREAD), &count) == 0 else { return }
            for _ in stride(from: 0, to: Int(count), by: OutputCollector.piece) {
                if readPiece(upTo: limit) { return }
            }
        }
    }

    let limit: Int
    private let tracker: OutputTracker
    private let state: Mutex<State>

    init(_ descriptor: Int32, limit: Int, tracker: OutputTracker) {
        self.limit = max(0, limit)
        self.tracker = tracker
        state = Mutex(State(descriptor: descriptor))
        let source = RunLoop.Source(fileDescriptor: descriptor, keepsFile: true, interest: .read) {
            [weak self] _, ready in
            // If the kernel refuses to watch the pipe, its output cannot be read.
            if ready.isEmpty { self?.fail() } else { self?.read() }
        }
        source.label = "collects an output"
        state.withLock { $0.source = source }
    }

    deinit { finish() }

    var data: Data { state.withLock { $0.data } }
    var hasOverflown: Bool { state.withLock { $0.hasOverflown } }
    /// The errno of a failed read; nil if the output was read completely, up to the limit.
    var failure: Int32? { state.withLock { $0.failure } }

    /// Called when the output exceeds the limit, on the thread of a loop.
    var overflow: (@Sendable () -> Void)? {
        get { nil }
        set { state.withLock { $0.overflow = newValue } }
    }

    func schedule(in loop: RunLoop, forMode mode: RunLoop.Mode) {
        if let source = state.withLock({ $0.source }) { loop.add(source, forMode: mode) }
    }

    func unschedule(from loop: RunLoop, forMode mode: RunLoop.Mode, keeping modes: [LoopMode]) {
        if let source = state.withLock({ $0.source }) { loop.remove(source, forMode: mode, keeping: modes) }
    }

    private func read() {
        let (isOver, overflow) = state.withLock { state in
            let isOver = state.readPiece(upTo: limit)
            return (isOver, state.hasOverflown ? state.overflow : nil)
        }
        if isOver { finish() }
        overflow?()
    }

    /// Reads the bytes in the pipe and closes it, even if it has no end yet. Any thread.
    func finishWithAvailableBytes() {
        state.withLock { $0.readAvailable(upTo: limit) }
        finish()
    }

    private func fail() {
        state.withLock { $0.failure = $0.source?.refusalCode ?? ENOMEM }
        finish()
    }

    /// Closes the pipe.
    func finish() {
        let isFirst = state.withLock { state -> Bool in
            guard state.descriptor >= 0 else { return false }
            state.source.take()?.invalidate()
            close(state.descriptor)
            state.descriptor = -1
            state.overflow = nil
            return true
        }
        if isFirst { tracker.outputHasEnded() }
    }
}

/// Reports the ends of outputs to their child, which is made after them.
final class OutputTracker: Sendable {
    private struct State {
        var early = 0
        var child: (@Sendable () -> Void)?
    }

    private let state = Mutex(State())

    func outputHasEnded() {
        let child = state.withLock { state in
            if state.child == nil { state.early += 1 }
            return state.child
        }
        child?()
    }

    func connect(_ child: @escaping @Sendable () -> Void) {
        let early = state.withLock { state in
            state.child = child
            return state.early
        }
        for _ in 0..<early { child() }
    }
}
