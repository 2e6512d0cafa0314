internal import RondoCore

/// A call that asks a delegate for a reply, by the method with a completion handler or by its async form.
struct Question<Value: Sendable>: Sendable {
    enum Outcome {
        case replied(Value)
        /// The reply will be passed to `later`.
        case later
        /// No delegate implements either method.
        case notImplemented
    }

    /// The name of the method, for the log.
    let name: String
    let method: SessionMethod
    let asyncMethod: SessionMethod
    /// Makes the call. Returns false if the delegate does not conform to the protocol.
    let call: @Sendable (SessionDelegateObject, @escaping @Sendable (Value) -> Void) -> Bool
    /// Makes the call of the async form. Returns nil if the delegate does not conform to the protocol.
    let callAsync: @Sendable (SessionDelegateObject) async -> Value?

    /// Asks the first of `delegates` that implements one of the methods. On the delegate queue or the
    /// session's run loop. As long as the reply is missing, `work` says so.
    ///
    /// - Parameters:
    ///   - work: The work of the task that the question is about.
    ///   - schedule: Runs the async method.
    ///   - later: Gets a reply that arrives after this function has returned, on any thread; nil if no
    ///     delegate implements the method.
    func ask(
        _ delegates: AskedDelegates, of work: TaskWork, on schedule: SessionSchedule,
        later: @escaping @Sendable (Value?) -> Void
    ) -> Outcome {
        var others = delegates
        while true {
            let left = others
            guard let delegate = others.next() else { break }
            if !delegate.kind.lacks(method) {
                // Before the call, in which the reply may be given.
                work.noteOwedReply(name)
                let reply = Reply<Value>(name, later: later)
                let conforms = call(delegate) { reply.give($0) }
                if conforms, !delegate.kind.lacks(method) {
                    guard let value = reply.endCall() else { return .later }
                    work.noteOwedReply(nil)
                    return .replied(value)
                }
                reply.withdraw()
            }
            guard !delegate.kind.lacks(asyncMethod) else { continue }
            work.noteOwedReply(name)
            Task(executorPreference: SessionExecutor(schedule)) { [others] in
                guard admitCall(left, of: work, on: schedule, later: later) else { return }
                let value = await callAsync(delegate)
                if let value, !delegate.kind.lacks(asyncMethod) { return later(value) }
                askLater(others, of: work, on: schedule, later: later)
            }
            return .later
        }
        work.noteOwedReply(nil)
        return .notImplemented
    }

    /// Asks `delegates` after `ask` has returned.
    private func askLater(
        _ delegates: AskedDelegates, of work: TaskWork, on schedule: SessionSchedule,
        later: @escaping @Sendable (Value?) -> Void
    ) {
        guard admitCall(delegates, of: work, on: schedule, later: later) else { return }
        switch ask(delegates, of: work, on: schedule, later: later) {
        case .replied(let value): later(value)
        case .later: break
        case .notImplemented: later(nil)
        }
    }

    /// Admits a call of a delegate after `ask` has returned. If the task was suspended since, `delegates` are
    /// asked when it is resumed (rule US-30).
    ///
    /// - Returns: False if the call must not be made now: the task is suspended, or was cancelled (rule
    ///   US-33).
    private func admitCall(
        _ delegates: AskedDelegates, of work: TaskWork, on schedule: SessionSchedule,
        later: @escaping @Sendable (Value?) -> Void
    ) -> Bool {
        work.state.withLock { state in
            state.admitOrHold { askLater(delegates, of: work, on: schedule, later: later) }
        }
    }
}

/// Runs the delegate's async methods on the delegate queue or the session's run loop.
private final class SessionExecutor: TaskExecutor {
    private let schedule: SessionSchedule

    init(_ schedule: SessionSchedule) { self.schedule = schedule }

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        schedule.perform { [self] in job.runSynchronously(on: asUnownedTaskExecutor()) }
    }
}
