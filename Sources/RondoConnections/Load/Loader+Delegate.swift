internal import FoundationNetworking
internal import RondoCore
internal import Synchronization

extension Loader {
    /// Calls the delegate, at once on this loop's thread or by its queue. What was decided before may be
    /// otherwise afterwards: the delegate can cancel.
    ///
    /// - Returns: Whether the call goes by the queue, and the loop goes on when it was made.
    @discardableResult
    func deliver(_ call: DelegateCall) -> Bool {
        guard let connection, let delegate, !connection.isCancelled else { return false }
        let queue = connection.delegateQueue
        if let calls = queue == nil ? calls : madeCalls {
            let adding = calls.add(call, to: queue) { [self] call in makeQueued(call, to: connection) }
            if case .queued(let mayRead) = adding {
                if !mayRead { exchange?.pause() }
                return true
            }
        }
        hasCalled = true
        let answer = call.make(to: delegate, of: connection)
        if connection.isCancelled {
            tearDown()
        } else if call.isQuestion {
            take(answer)
        }
        return false
    }

    /// Tells whoever wants to hear what happens below the delegate's methods, until the end.
    func report(_ diagnostic: ExchangeStep) {
        guard connection != nil, let listener = settings.values.onStep else { return }
        hasCalled = true
        listener(diagnostic)
    }

    /// Whether a call of `method` would come to its default, as is known from an earlier one. Traces tell of every
    /// call, so that all are made while somebody listens.
    func spares(_ method: DelegateClass.Method) -> Bool {
        delegateClass?.hasDefault(of: method) ?? false && !RunLoop.isTraced
    }

    /// Whether the delegate has taken enough of what was read to read on.
    var mayRead: Bool { calls?.mayRead ?? true }

    /// On the delegate queue.
    private func makeQueued(_ call: DelegateCall, to connection: URLConnection) {
        guard let delegate = connection.delegate else { return }
        let answer = call.make(to: delegate, of: connection)
        if call.isTerminal {
            shared.withLock { $0.isOver = true }
            enter { leave() }
        } else if call.isQuestion {
            shared.withLock { $0.answer = answer }
            wakeUp()
        } else if shared.withLock({ $0.calls })?.mayRead ?? true {
            // The loop goes on where it waited for the delegate.
            wakeUp()
        }
    }

    /// Goes on with what the delegate has said.
    func take(_ answer: DelegateCall.Answer) {
        switch answer {
        case .none:
            break
        case .cached(let answer):
            answeredCaching(answer)
        case .challenge(let answer):
            answeredChallenge(answer)
        case .request(let request):
            perform(state.answered(request))
        case .usesStorage(let uses):
            usesCredentialStorage = uses
            perform(state.begin())
        case .bodyStream(let stream):
            answeredBodyStream(.some(stream))
        case .noBodyStreamMethod:
            answeredBodyStream(.none)
        }
    }
}
