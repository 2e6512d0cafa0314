internal import RondoMutex

/// A thread whose run loop runs until it is told to stop.
///
/// For loading in the background: `start()`, schedule on `runLoop`, `stop()`. The loop runs also while
/// nothing is scheduled on it; blocks performed before the stop are run. A started thread lives until it is
/// stopped, even if this object is released. Where the system has no thread left, `start()` does not wait for
/// one: see there.
public final class RunLoopThread: Sendable {
    private enum Phase {
        case new
        case starting
        case started
        case ended
    }

    private struct State {
        var phase = Phase.new
        /// Kept when the thread has ended: a caller that waits in `start()` may see that late.
        var loop: RunLoop?
        var stopWasAsked = false
        /// The block that stops the thread has run: the thread ends.
        var isStopping = false
        var startError: SystemError?
        /// Run by the thread before its loop runs.
        var preparations: [@Sendable (RunLoop) -> Void] = []
    }

    /// The name that debuggers and messages show.
    public let name: String
    /// The quality of service that the thread was made with. Linux's scheduler does not use it.
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
        // No preconditions here, which lose their messages in release.
        if mode == .common {
            fatalError("The common name is not a mode: give a RunLoopThread one of the common modes.")
        }
        self.name = name
        self.qualityOfService = qualityOfService
        self.mode = mode
    }

    /// Starts the thread, and returns once its loop exists. To be called once.
    ///
    /// - Returns: The loop, which runs from now on. Where the kernel has no thread left, `startError` says
    ///   so, and this is a loop whose thread has ended: it takes nothing. `startIfPossible()` throws then.
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

    /// As `start()`, for a program that goes on without the thread, or tries again later.
    ///
    /// - Throws: An error of `NSPOSIXErrorDomain`, `EAGAIN` as a rule: the system has no thread left. Nothing
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

    /// Why `start()` has started no thread, an error of `NSPOSIXErrorDomain`; nil: it has, or was not called.
    public var startError: (any Error)? { state.withLock { $0.startError } }

    /// Has the thread call `prepare` with its loop, before that runs and before `start()` returns. Before
    /// `start()` only.
    ///
    /// - Returns: Whether the thread was not started yet; if it was, `prepare` is not called.
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
        try SystemThread.start(name: name) { [self] in main() }
        return changed.wait { state.withLock { $0.loop } }
    }

    /// The thread's loop. The thread must have been started; once it has ended, the loop takes nothing more.
    public var runLoop: RunLoop {
        guard let loop = state.withLock({ $0.loop }) else {
            fatalError("The loop of a RunLoopThread exists from start() on: call that first.")
        }
        return loop
    }

    /// Runs `block` on the thread, in the order of the calls. Once the thread has ended, the block is
    /// dropped.
    public func perform(_ block: sending @escaping () -> Void) {
        runLoop.perform(inModes: [mode], block: block)
    }

    /// Asks the thread to end; blocks performed before are run first, and runs nested in callbacks are
    /// stopped as well, those that begin later are not. Any thread, any number of times.
    public func stop() {
        let loop = state.withLock { state -> RunLoop? in
            state.stopWasAsked = true
            guard case .started = state.phase else { return nil }
            return state.loop
        }
        // In the order of the blocks, so that none performed before it is lost.
        loop?.perform(inModes: [mode]) { [self, weak loop] in
            state.withLock { $0.isStopping = true }
            loop?.state.withLock { $0.stopAll() }
        }
        loop?.state.withLock { [mode] in $0.stopNested(outside: mode) }
        loop?.askForAttention()?.wake()
    }

    /// Waits until the thread has ended, which takes a `stop()`. Not from the thread itself, which would wait
    /// for ever: that traps.
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
        // (A `Port` has an observer at the notification center, which takes 0.5 ms of W16's start.)
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
        // Before a `join()` returns, cancel callbacks are made and descriptors closed.
        ThreadEnd.runNow()
        state.withLock { $0.phase = .ended }
        changed.notify()
    }
}

/// A condition that callers wait for, by Foundation's `NSCondition`.
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
    /// The one shared background loop. It drives only connections without a loop: those with a delegate queue
    /// and no schedule, and asynchronous requests. Its thread is made on first use and never ends.
    ///
    /// Where the system has no thread for it, this is a loop that takes nothing, and the next call tries
    /// again. `startedLoader()` throws then.
    package static var loader: RunLoop {
        // Callers that can tell the error ask `startedLoader()`.
        (try? startedLoader()) ?? withoutThread()
    }

    /// `loader`.
    ///
    /// - Throws: The kernel's reason for giving no thread.
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
