internal import RondoCore
internal import RondoMutex

/// The delegate of a session, and the calls to it.
final class SessionCalls: SessionClient, Sendable {
    private let object: Mutex<SessionDelegateObject?>

    init(_ delegate: (any URLSessionDelegate)?) {
        object = Mutex(delegate.map(SessionDelegateObject.init))
    }

    var delegateObject: SessionDelegateObject? { object.withLock { $0 } }
    var delegate: (any URLSessionDelegate)? { delegateObject?.base }

    func parts(
        of session: URLSession, _ plan: TaskPlan, _ receiver: TaskReceiver
    ) -> URLSessionTask.Parts {
        let identifier = session.table.nextIdentifier()
        let calls = TaskCalls(identifier, session, self, receiver, isAwaited: plan.isAwaited)
        plan.webSocket?.belong(to: calls, plan.request?.url)
        plan.stream?.belong(to: calls)
        return URLSessionTask.Parts(
            work: TaskWork(identifier, plan, by: session.engine, for: calls), calls: calls)
    }

    func tellInvalid(_ session: URLSession) {
        delegate?.urlSession(session, didBecomeInvalidWithError: nil)
        // Released after the lock.
        let delegate = object.withLock { $0.take() }
        withExtendedLifetime(delegate) {}
    }
}
