internal import RondoCore
internal import RondoMutex

/// The tasks of a session: those that were never resumed, and those that were and have not ended.
final class SessionTasks: Sendable {
    private struct Unresumed {
        weak var task: URLSessionTask?
    }

    private struct Running {
        /// Nil: only the program holds the task.
        var held: URLSessionTask?
        weak var task: URLSessionTask?

        init(_ task: URLSessionTask) {
            held = task
            self.task = task
        }
    }

    private struct State {
        var lastIdentifier = 0
        var unresumed: [Int: Unresumed] = [:]
        var running: [Int: Running] = [:]
        var isInvalid = false
        var hasEnded = false
    }

    private let state = Mutex(State())

    /// The identifier of a new task: 1, 2, 3 … (rule US-35).
    func nextIdentifier() -> Int {
        state.withLock { state in
            state.lastIdentifier += 1
            return state.lastIdentifier
        }
    }

    /// Takes in a task that was made.
    ///
    /// - Returns: False: the session is invalid.
    func add(_ task: URLSessionTask) -> Bool {
        state.withLock { state in
            if state.isInvalid { return false }
            state.unresumed[task.taskIdentifier] = Unresumed(task: task)
            return true
        }
    }

    /// The task is held until `remove(_:)`: it was resumed, or has a last call to make.
    ///
    /// - Returns: False: the session has come to its end.
    func hold(_ task: URLSessionTask) -> Bool {
        state.withLock { state in
            state.unresumed[task.taskIdentifier] = nil
            if state.hasEnded { return false }
            state.running[task.taskIdentifier] = Running(task)
            return true
        }
    }

    /// The task has ended.
    func remove(_ identifier: Int) {
        let removed = state.withLock { state in
            state.unresumed[identifier] = nil
            return state.running.removeValue(forKey: identifier)
        }
        withExtendedLifetime(removed) {}
    }

    /// The task runs, and only the program holds it from here on.
    func loosen(_ identifier: Int) {
        let held = state.withLock { $0.running[identifier]?.held.take() }
        withExtendedLifetime(held) {}
    }

    /// `new` has taken the place of `old`.
    func replace(_ old: URLSessionTask, by new: URLSessionTask) {
        let removed = state.withLock { state in
            state.running[new.taskIdentifier] = Running(new)
            return state.running.removeValue(forKey: old.taskIdentifier)
        }
        withExtendedLifetime(removed) {}
    }

    /// A task that was never resumed is gone.
    func forget(_ identifier: Int) { state.withLock { $0.unresumed[identifier] = nil } }

    /// Those that were resumed and have not ended, in order of their identifiers (rule US-79).
    var all: [URLSessionTask] {
        state.withLock { Self.sorted($0.running) }.filter(\.work.isOutstanding)
    }

    /// No task is made from here on.
    ///
    /// - Returns: Those that were never resumed, which are to be cancelled, and the others. All are held until they have
    ///   ended: while the first of them end, the last are not cancelled yet.
    func invalidate() -> (unresumed: [URLSessionTask], running: [URLSessionTask]) {
        state.withLock { state in
            state.isInvalid = true
            let running = Self.sorted(state.running)
            let unresumed = state.unresumed.sorted { $0.key < $1.key }.compactMap(\.value.task)
            state.unresumed = [:]
            for task in unresumed { state.running[task.taskIdentifier] = Running(task) }
            return (unresumed, running)
        }
    }

    /// Those of them that are there still.
    private static func sorted(_ running: [Int: Running]) -> [URLSessionTask] {
        running.sorted { $0.key < $1.key }.compactMap(\.value.task)
    }

    /// Whether the session has come to its end: it is invalid, and no task has anything to tell any more; once.
    func takeEnd() -> Bool {
        state.withLock { state in
            guard state.isInvalid, state.running.isEmpty, !state.hasEnded else { return false }
            state.hasEnded = true
            return true
        }
    }
}
