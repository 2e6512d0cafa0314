internal import Synchronization

/// A thread whose run loop runs until it is told to stop.
///
/// What a program needs for loading in the background: `start()`, schedule on `runLoop`, `stop()`. The loop
/// is kept alive while nothing is scheduled on it; blocks performed before the stop are run.
public final class RunLoopThread: Sendable {
    private enum Phase {
        case new
        case starting
        case started(RunLoop)
        case ended
    }

    private struct State {
        var phase = Phase.new
        var stopWasAsked = false
    }

    /// The name that debuggers show.
    public let name: String
    private let mode: RunLoop.Mode
    private let state = Mutex(State())
    private let changed = PhaseCondition()

    /// - Parameters:
    ///   - name: Shown by debuggers; Linux keeps the first 15 bytes.
    ///   - mode: The mode that the thread's loop runs in.
    public init(name: String = "Rondo", mode: RunLoop.Mode = .default) {
        self.name = name
        self.mode = mode
    }

    /// Starts the thread, and returns once its loop exists. To be called once.
    ///
    /// - Returns: The loop, which runs from now on.
    @discardableResult
    public func start() -> RunLoop {
        let isFirst = state.withLock { state -> Bool in
            guard case .new = state.phase else { return false }
            state.phase = .starting
            return true
        }
        precondition(isFirst, "A RunLoopThread is started once; make a new one for a new run.")
        let thread = Thread { [self] in main() }
        thread.name = name
        thread.start()
        return changed.wait {
            if case .started(let loop) = state.withLock({ $0.phase }) { loop } else { nil }
        }
    }

    /// The thread's loop. The thread must have been started.
    public var runLoop: RunLoop {
        guard case .started(let loop) = state.withLock({ $0.phase }) else {
            preconditionFailure("The loop of a RunLoopThread exists from start() until the thread has ended.")
        }
        return loop
    }

    /// Runs `block` on the thread, in the order of the calls.
    public func perform(_ block: sending @escaping () -> Void) {
        runLoop.perform(inModes: [mode], block: block)
    }

    /// Asks the thread to end; blocks performed before are run first. Any thread, any number of times.
    public func stop() {
        let loop = state.withLock { state -> RunLoop? in
            state.stopWasAsked = true
            guard case .started(let loop) = state.phase else { return nil }
            return loop
        }
        // In the order of the blocks, so that none performed before it is lost.
        loop?.perform(inModes: [mode]) { [weak loop] in loop?.stop() }
    }

    /// Waits until the thread has ended. Not from the thread itself.
    public func join() {
        changed.wait { if case .ended = state.withLock({ $0.phase }) { () } else { nil } }
    }

    private func main() {
        let loop = RunLoop.currentLoop()
        let keepAlive = Port()
        loop.add(keepAlive, forMode: mode)
        state.withLock { $0.phase = .started(loop) }
        changed.notify()
        while !state.withLock({ $0.stopWasAsked }) || loop.hasBlocks(forMode: mode) {
            _ = loop.runActivation(mode, limit: .never, returnAfterSourceHandled: false)
        }
        keepAlive.invalidate()
        state.withLock { $0.phase = .ended }
        changed.notify()
    }
}

/// A change to wait for, by Foundation's `NSCondition`.
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
    /// The one shared background loop: it drives only what has no loop of its own (connections with a delegate
    /// queue and no schedule, and asynchronous requests). Its thread is made on first use and never ends.
    package static let loader = RunLoopThread(name: "rondo.loader").start()

    fileprivate func hasBlocks(forMode mode: Mode) -> Bool {
        state.withLock { state in state.existingIndex(of: mode).map { state.hasBlocks(for: $0) } ?? false }
    }
}
