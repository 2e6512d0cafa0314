internal import FoundationNetworking
internal import RondoCore
internal import Synchronization

/// One call to a delegate, on its way.
enum DelegateCall {
    case willSend(URLRequest, redirectResponse: URLResponse?)
    case response(URLResponse)
    case data(Data)
    case sent(Int, total: Int, expected: Int)
    case finish
    case fail(URLError)

    var isTerminal: Bool {
        switch self {
        case .finish, .fail: true
        case .willSend, .response, .data, .sent: false
        }
    }

    /// Makes the call.
    ///
    /// - Returns: The delegate's answer to `.willSend`; nil for every other call.
    func make(to delegate: Any?, of connection: URLConnection) -> URLRequest? {
        let dataDelegate = delegate as? any URLConnectionDataDelegate
        switch self {
        case .willSend(let request, let response):
            guard let dataDelegate else { return request }
            return dataDelegate.connection(connection, willSend: request, redirectResponse: response)
        case .response(let response): dataDelegate?.connection(connection, didReceive: response)
        case .data(let data): dataDelegate?.connection(connection, didReceive: data)
        case .sent(let bytes, let total, let expected):
            dataDelegate?.connection(
                connection, didSendBodyData: bytes, totalBytesWritten: total,
                totalBytesExpectedToWrite: expected)
        case .finish: dataDelegate?.connectionDidFinishLoading(connection)
        case .fail(let error):
            (delegate as? any URLConnectionDelegate)?.connection(connection, didFailWithError: error)
        }
        return nil
    }
}

/// Calls that wait for the delegate queue: made in order and one at a time, however wide the queue is
/// (rule UC-11).
final class QueuedCalls: Sendable {
    /// Bytes that may wait for the delegate; while there are more, the socket is not read.
    static let maximumWaitingBytes = 1024 * 1024

    /// `@unchecked Sendable`: a call is handed in by the loop's thread and made by one operation.
    private struct Waiting: @unchecked Sendable {
        let call: DelegateCall

        var size: Int { if case .data(let data) = call { data.count } else { 0 } }
    }

    private struct State {
        var waiting: [Waiting] = []
        var bytes = 0
        var isDraining = false
    }

    private let state = Mutex(State())

    /// - Parameter make: Makes a call, on the queue.
    /// - Returns: Whether more may be read from the socket.
    func add(_ call: DelegateCall, to queue: OperationQueue, make: @escaping @Sendable (DelegateCall) -> Void)
        -> Bool
    {
        let waiting = Waiting(call: call)
        let (mustDrain, mayRead) = state.withLock { state in
            state.waiting.append(waiting)
            state.bytes += waiting.size
            defer { state.isDraining = true }
            return (!state.isDraining, state.bytes <= Self.maximumWaitingBytes)
        }
        if mustDrain {
            queue.addOperation { [self] in
                while let next = next() { make(next) }
            }
        }
        return mayRead
    }

    /// Nothing that waits is called any more.
    func removeAll() {
        let dropped = state.withLock { state in
            defer {
                state.waiting = []
                state.bytes = 0
            }
            return state.waiting
        }
        withExtendedLifetime(dropped) {}
    }

    private func next() -> DelegateCall? {
        state.withLock { state -> Waiting? in
            guard !state.waiting.isEmpty else {
                state.isDraining = false
                return nil
            }
            let first = state.waiting.removeFirst()
            state.bytes -= first.size
            return first
        }?.call
    }

    var mayRead: Bool { state.withLock { $0.bytes <= Self.maximumWaitingBytes / 2 } }
}
