internal import RondoCore

/// What a delegate is asked, by the method that has a completion handler or by the one that waits.
struct Question<Value: Sendable>: Sendable {
    enum Asked {
        case answered(Value)
        /// The answer goes to `later`.
        case later
        /// No delegate has such a method.
        case notImplemented
    }

    /// Of the method, for the log.
    let name: String
    let method: SessionMethod
    let asyncMethod: SessionMethod
    /// Makes the call; false: the delegate does not conform to the protocol.
    let call: @Sendable (SessionDelegateObject, @escaping @Sendable (Value) -> Void) -> Bool
    /// The same; nil: it does not conform.
    let callAsync: @Sendable (SessionDelegateObject) async -> Value?

    /// Asks the first of `delegates` that has one of the methods. Where the session's calls come.
    ///
    /// - Parameters:
    ///   - driver: Where the method that waits runs.
    ///   - later: Takes an answer that comes after this function has returned; nil: no delegate has such a method. On any
    ///     thread.
    func ask(
        _ delegates: [SessionDelegateObject], on driver: SessionDriver,
        later: @escaping @Sendable (Value?) -> Void
    ) -> Asked {
        for (index, delegate) in delegates.enumerated() {
            if !delegate.kind.lacks(method) {
                let reply = Reply<Value>(name, later: later)
                let conforms = call(delegate) { reply.give($0) }
                if conforms, !delegate.kind.lacks(method) {
                    return reply.endCall().map { .answered($0) } ?? .later
                }
                reply.withdraw()
            }
            guard !delegate.kind.lacks(asyncMethod) else { continue }
            let others = Array(delegates[(index + 1)...])
            Task(executorPreference: SessionExecutor(driver)) {
                let answer = await callAsync(delegate)
                if let answer, !delegate.kind.lacks(asyncMethod) { return later(answer) }
                switch ask(others, on: driver, later: later) {
                case .answered(let answer): later(answer)
                case .later: break
                case .notImplemented: later(nil)
                }
            }
            return .later
        }
        return .notImplemented
    }
}

/// Runs the delegate's functions that wait where the session's calls come.
private final class SessionExecutor: TaskExecutor {
    private let driver: SessionDriver

    init(_ driver: SessionDriver) { self.driver = driver }

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        driver.perform { [self] in job.runSynchronously(on: asUnownedTaskExecutor()) }
    }
}
