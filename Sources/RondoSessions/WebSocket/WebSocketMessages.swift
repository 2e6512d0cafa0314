internal import RondoCore

extension URLSessionWebSocketTask {
    /// The messages that come, one after the other; see `Messages`.
    public var messages: Messages { Messages(task: self) }

    /// The messages of a WebSocket. They end after a normal close, 1000 or 1001, and throw when it ends otherwise. While nobody
    /// iterates, the server is held back (rules WS-10 and WS-27).
    public struct Messages: AsyncSequence, Sendable {
        public typealias Element = Message
        public typealias Failure = any Error

        let task: URLSessionWebSocketTask

        public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(task: task) }

        public struct AsyncIterator: AsyncIteratorProtocol {
            let task: URLSessionWebSocketTask

            /// - Throws: `URLError.cancelled` when the Swift task was cancelled; no message is lost by that.
            public mutating func next() async throws -> Message? {
                do {
                    return try await task.receive()
                } catch {
                    if Task.isCancelled { throw error }
                    switch task.closeCode {
                    case .normalClosure, .goingAway: return nil
                    default: throw error
                    }
                }
            }
        }
    }
}
