internal import RondoCore
internal import RondoMutex

/// The tasks of a session: those that were never resumed, and those that were and have not ended.
final class SessionTasks: Sendable {
    private struct Unresumed {
        weak var task: URLSessionTask?
    }

    private struct State {
        var lastIdentifier = 0
        var unresumed: [Int: Unresumed] = [:]
        var running: [Int: URLSessionTask] = [:]
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
            state.running[task.taskIdentifier] = task
            return true
        }
    }

    /// The task is gone, or has ended.
    func remove(_ task: URLSessionTask) {
        let removed = state.withLock { state in
            state.unresumed[task.taskIdentifier] = nil
            return state.running.removeValue(forKey: task.taskIdentifier)
        }
        withExtendedLifetime(removed) {}
    }

    /// `new` has taken the place of `old`.
    func replace(_ old: URLSessionTask, by new: URLSessionTask) {
        let removed = state.withLock { state in
            state.running[new.taskIdentifier] = new
            return state.running.removeValue(forKey: old.taskIdentifier)
        }
        withExtendedLifetime(removed) {}
    }

    /// A task that was never resumed is gone.
    func forget(_ identifier: Int) { state.withLock { $0.unresumed[identifier] = nil } }

    /// Those that were resumed and have not ended, in order of their identifiers (rule US-79).
    var all: [URLSessionTask] {
        state.withLock { $0.running }.sorted { $0.key < $1.key }.map(\.value).filter(\.work.isOutstanding)
    }

    /// No task is made from here on.
    func invalidate() -> (unresumed: [URLSessionTask], running: [URLSessionTask]) {
        state.withLock { state in
            state.isInvalid = true
            let unresumed = state.unresumed.sorted { $0.key < $1.key }.compactMap(\.value.task)
            return (unresumed, state.running.sorted { $0.key < $1.key }.map(\.value))
        }
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
