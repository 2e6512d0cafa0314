internal import RondoMutex

/// A thread whose run loop runs until `stop()` is called.
///
/// For loading in the background: `start()`, schedule on `runLoop`, `stop()`. The loop also runs while
/// nothing is scheduled on it; blocks performed before the stop are run. A started thread lives until it is
/// stopped, even if this object is released. If the system has no thread left, `start()` does not wait for
/// one; see there.
public final class RunLoopThread: Sendable {
    private enum Phase {
        case new
        case starting
        case started
        case ended
    }

    private struct State {
        var phase = Phase.new
        /// Kept after the thread has ended, because a caller waiting in `start()` may see it only then.
        var loop: RunLoop?
        var stopWasAsked = false
        /// The block that stops the thread has run, so the thread will end.
        var isStopping = false
        var startError: SystemError?
        /// Run by the thread before its loop is first run.
        var preparations: [@Sendable (RunLoop) -> Void] = []
    }

    /// The name that debuggers and messages show.
    public let name: String
    /// The quality of service that was passed to the initializer. Linux's scheduler does not use it.
    public let qualityOfService: QualityOfService
    private let mode: RunLoop.Mode
    private let state = Mutex(State())
    private let changed = PhaseCondition()

    /// - Parameters:
    ///   - name: Shown by debuggers; Linux keeps the first 15 bytes.
    ///   - mode: The mode that the thread's loop runs in.
    ///   - qualityOfService: Handed to Foundation's `Thread`; without effect on Linux so far.
    public init(
        name: String = "Rondo", mode: RunLoop.Mode = .default, qualityOfService: QualityOfService = .default
    ) {
        // No preconditions: in release builds their messages would be lost.
        if mode == .common {
            fatalError("The common name is not a mode: give a RunLoopThread one of the common modes.")
        }
        self.name = name
        self.qualityOfService = qualityOfService
        self.mode = mode
    }

    /// Starts the thread, and returns once its loop exists. To be called once.
    ///
    /// - Returns: The loop, which runs from now on. If the system has no thread left, `startError` is set and
    ///   the returned loop is one whose thread has ended: it ignores whatever is added. `startIfPossible()`
    ///   throws in that case.
    @discardableResult
    public func start() -> RunLoop {
        do throws(SystemError) {
            return try makeThread()
        } catch {
            Log.core.error("The thread “\(name)” could not be started: \(error).")
            let loop = RunLoop.withoutThread()
            state.withLock { state in
                state.phase = .ended
                state.loop = loop
                state.startError = error
            }
            changed.notify()
            return loop
        }
    }

    /// Does the same as `start()`, for a program that can go on without the thread, or try again later.
    ///
    /// - Throws: An error of `NSPOSIXErrorDomain`, usually `EAGAIN`: the system has no thread left. Nothing
    ///   has changed then, and the thread may be started again.
    @discardableResult
    public func startIfPossible() throws -> RunLoop {
        do throws(SystemError) {
            return try makeThread()
        } catch {
            state.withLock { $0.phase = .new }
            throw NSError(
                domain: NSPOSIXErrorDomain, code: Int(error.code),
                userInfo: [NSLocalizedDescriptionKey: error.description])
        }
    }

    /// The reason why `start()` has started no thread, an error of `NSPOSIXErrorDomain`; nil if it has, or
    /// was not called.
    public var startError: (any Error)? { state.withLock { $0.startError } }

    /// Makes the thread call `prepare` with its loop, before the loop first runs and before `start()`
    /// returns. To be called before `start()`.
    ///
    /// - Returns: False if the thread was already started; `prepare` is then not called.
    package func beforeFirstRun(_ prepare: @escaping @Sendable (RunLoop) -> Void) -> Bool {
        state.withLock { state in
            guard case .new = state.phase else { return false }
            state.preparations.append(prepare)
            return true
        }
    }

    fileprivate func makeThread() throws(SystemError) -> RunLoop {
        let isFirst = state.withLock { state -> Bool in
            guard case .new = state.phase else { return false }
            state.phase = .starting
            return true
        }
        if !isFirst { fatalError("A RunLoopThread is started once; make a new one for a new run.") }
        try SystemThread.start(name: name, blocksSignals: false) { [self] in main() }
        return changed.wait { state.withLock { $0.loop } }
    }

    /// The thread's loop. The thread must have been started; once it has ended, the loop ignores additions.
    public var runLoop: RunLoop {
        guard let loop = state.withLock({ $0.loop }) else {
            fatalError("The loop of a RunLoopThread exists from start() on: call that first.")
        }
        return loop
    }

    /// Runs `block` on the thread, in the order of the calls. If the thread has ended, the block is dropped.
    public func perform(_ block: sending @escaping () -> Void) {
        runLoop.perform(inModes: [mode], block: block)
    }

    /// Asks the thread to end. Blocks performed earlier are run first; runs nested in callbacks are stopped
    /// too, except those that begin later. Any thread, any number of times.
    public func stop() {
        let loop = state.withLock { state -> RunLoop? in
            state.stopWasAsked = true
            guard case .started = state.phase else { return nil }
            return state.loop
        }
        // By a block, so that no block performed earlier is lost.
        loop?.perform(inModes: [mode]) { [self, weak loop] in
            state.withLock { $0.isStopping = true }
            loop?.state.withLock { $0.stopAll() }
        }
        loop?.state.withLock { [mode] in $0.stopNested(outside: mode) }
        loop?.askForAttention()?.wake()
    }

    /// Waits until the thread has ended, which requires a `stop()`. Traps on the thread itself, which would
    /// wait for ever.
    public func join() {
        if state.withLock({ $0.loop })?.isCurrent ?? false {
            fatalError(
                "RunLoopThread.join() was called on the thread that it waits for; call it on another one.")
        }
        changed.wait { if case .ended = state.withLock({ $0.phase }) { () } else { nil } }
    }

    private func main() {
        Thread.current.qualityOfService = qualityOfService
        let loop = RunLoop.currentLoop()
        loop.state.withLock { $0.threadName = name }
        loop.threadState.whenEnded = { [self] in
            state.withLock { $0.phase = .ended }
            changed.notify()
        }
        // (Not a `Port`, which registers an observer at the notification center: 0.5 ms of W16's start.)
        let keepAlive = RunLoop.Source {}
        loop.add(keepAlive, forMode: mode)
        let preparations = state.withLock { state in
            defer { state.preparations = [] }
            return state.preparations
        }
        for prepare in preparations { prepare(loop) }
        state.withLock {
            $0.phase = .started
            $0.loop = loop
            // A stop before the start has no blocks to wait for.
            $0.isStopping = $0.stopWasAsked
        }
        changed.notify()
        while !state.withLock({ $0.isStopping }) {
            loop.runActivation(mode, limit: .never, returnAfterSourceHandled: false)
        }
        keepAlive.invalidate()
        // Cancel callbacks are made and descriptors closed before a `join()` returns.
        ThreadEnd.runNow()
    }
}

/// A condition variable made of Foundation's `NSCondition`.
private final class PhaseCondition: Sendable {
    private let condition = NSCondition()

    func wait<Value>(for value: () -> Value?) -> Value {
        condition.lock()
        defer { condition.unlock() }
        while true {
            if let found = value() { return found }
            condition.wait()
        }
    }

    func notify() {
        condition.lock()
        condition.broadcast()
        condition.unlock()
    }
}

extension RunLoop {
    /// The background loop of the process: it drives everything that no loop of the program drives, among it
    /// loads on a delegate queue, sessions, children and kept connections. Its thread is made on first use
    /// and never ends.
    ///
    /// If the system has no thread for it, this returns a loop that ignores additions, and the next call
    /// tries again. `startedLoader()` throws in that case.
    package static var loader: RunLoop {
        // Callers that can report the error call `startedLoader()`.
        (try? startedLoader()) ?? withoutThread()
    }

    /// The same loop as `loader`.
    ///
    /// - Throws: The kernel's reason if it has no thread left.
    package static func startedLoader() throws(SystemError) -> RunLoop {
        try sharedLoader.withLock { shared throws(SystemError) in
            if let shared { return shared }
            let loop = try RunLoopThread(name: "rondo.loader").makeThread()
            shared = loop
            return loop
        }
    }

    private static let sharedLoader = Mutex<RunLoop?>(nil)
}
