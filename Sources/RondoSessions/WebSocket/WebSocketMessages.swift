internal import RondoCore

extension URLSessionWebSocketTask {
    /// The messages that come, one after the other; see `Messages`.
    public var messages: Messages { Messages(reading: Messages.Reading(self)) }

    /// The messages of a WebSocket. They end after a normal close, 1000 or 1001, and throw when it ends otherwise. While the
    /// program does not iterate, the server is held back (rules WS-10 and WS-27).
    ///
    /// A program that leaves the sequence before its end goes on with the task as long as it holds that. When it has let go
    /// of the sequence, its iterators and the task, in any order, the WebSocket is closed with 1001, as `cancel(with:reason:)`
    /// does.
    public struct Messages: AsyncSequence, Sendable {
        public typealias Element = Message
        public typealias Failure = any Error

        /// What a sequence and its iterators have in common: with the last of them it goes.
        final class Reading: Sendable {
            let task: URLSessionWebSocketTask

            init(_ task: URLSessionWebSocketTask) { self.task = task }

            deinit { task.calls?.loosen() }
        }

        let reading: Reading

        public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(reading: reading) }

        public struct AsyncIterator: AsyncIteratorProtocol {
            let reading: Reading

            /// - Throws: `URLError.cancelled` when the Swift task was cancelled; no message is lost by that.
            public mutating func next() async throws -> Message? {
                let task = reading.task
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
