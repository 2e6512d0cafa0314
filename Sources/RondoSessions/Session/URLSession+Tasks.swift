internal import RondoCore
internal import RondoMutex

/// The table of a session's tasks: the tasks that were never resumed, and the tasks that run.
final class SessionTasks: Sendable {
    private struct Running {
        /// Nil if only the program keeps the task alive.
        var held: URLSessionTask?
        weak var task: URLSessionTask?

        init(_ task: URLSessionTask) {
            held = task
            self.task = task
        }
    }

    private enum Phase {
        case valid
        /// No task is added any more.
        case invalid
        /// The last task has ended, so that the session makes its last call.
        case ended
    }

    private struct State {
        var phase = Phase.valid
        var lastIdentifier = 0
        var created: [Int: WeakTask] = [:]
        var running: [Int: Running] = [:]
    }

    private let state = Mutex(State())

    /// The identifier for a new task: 1, 2, 3 … (rule US-35).
    func nextIdentifier() -> Int {
        state.withLock { state in
            state.lastIdentifier += 1
            return state.lastIdentifier
        }
    }

    /// Adds a new task.
    ///
    /// - Returns: False if the session is invalid.
    func add(_ task: URLSessionTask) -> Bool {
        state.withLock { state in
            guard case .valid = state.phase else { return false }
            state.created[task.taskIdentifier] = WeakTask(task: task)
            return true
        }
    }

    /// Retains the task until `remove(_:)`, because it was resumed or has a last call to make.
    ///
    /// - Returns: False if the session has made its last call.
    func retain(_ task: URLSessionTask) -> Bool {
        state.withLock { state in
            state.created[task.taskIdentifier] = nil
            if case .ended = state.phase { return false }
            state.running[task.taskIdentifier] = Running(task)
            return true
        }
    }

    /// Removes a task that has ended.
    func remove(_ identifier: Int) {
        let removed = state.withLock { state in
            state.created[identifier] = nil
            return state.running.removeValue(forKey: identifier)
        }
        withExtendedLifetime(removed) {}
    }

    /// Releases a running task, so that only the program keeps it alive.
    func loosen(_ identifier: Int) {
        let held = state.withLock { $0.running[identifier]?.held.take() }
        withExtendedLifetime(held) {}
    }

    /// Puts `new` in the place of `old`.
    func replace(_ old: URLSessionTask, by new: URLSessionTask) {
        let removed = state.withLock { state in
            state.running[new.taskIdentifier] = Running(new)
            return state.running.removeValue(forKey: old.taskIdentifier)
        }
        withExtendedLifetime(removed) {}
    }

    /// Removes a task that was deallocated before it was resumed.
    func forget(_ identifier: Int) { state.withLock { $0.created[identifier] = nil } }

    /// The tasks that were resumed and have not ended, in the order of their identifiers (rule US-79).
    var all: [URLSessionTask] {
        state.withLock { Self.sorted($0.running) }.filter(\.work.isOutstanding)
    }

    /// Forbids new tasks.
    ///
    /// - Returns: The tasks that were never resumed, which the caller cancels, and the running tasks. The
    ///   table retains both, so that it is not empty while the caller cancels the first of them.
    func invalidate() -> (created: [URLSessionTask], running: [URLSessionTask]) {
        state.withLock { state in
            if case .valid = state.phase { state.phase = .invalid }
            let running = Self.sorted(state.running)
            let created = state.created.sorted { $0.key < $1.key }.compactMap(\.value.task)
            state.created = [:]
            for task in created { state.running[task.taskIdentifier] = Running(task) }
            return (created, running)
        }
    }

    /// The tasks that still exist, in the order of their identifiers.
    private static func sorted(_ running: [Int: Running]) -> [URLSessionTask] {
        running.sorted { $0.key < $1.key }.compactMap(\.value.task)
    }

    /// True once: when the session is invalid and its last task has ended.
    func takeEnd() -> Bool {
        state.withLock { state in
            guard case .invalid = state.phase, state.running.isEmpty else { return false }
            state.phase = .ended
            return true
        }
    }
}
