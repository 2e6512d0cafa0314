internal import RondoCore

extension URLSessionWebSocketTask {
    /// The messages as they arrive; see `Messages`.
    public var messages: Messages { Messages(reading: Messages.Reading(self)) }

    /// The messages of a WebSocket. The sequence ends after a normal close, 1000 or 1001, and throws after
    /// any other end. While the program does not iterate, the server is held back (rules WS-10 and WS-27).
    ///
    /// A program may leave the sequence before its end and go on with the task. When it has released the
    /// sequence, its iterators and the task, in any order, the WebSocket is closed with 1001 as by
    /// `cancel(with:reason:)`.
    public struct Messages: AsyncSequence, Sendable {
        public typealias Element = Message
        public typealias Failure = any Error

        /// The reading of a WebSocket, shared by a sequence and its iterators; deallocated with the last of
        /// them.
        final class Reading: Sendable {
            let task: URLSessionWebSocketTask

            init(_ task: URLSessionWebSocketTask) { self.task = task }

            deinit { task.calls?.loosen() }
        }

        let reading: Reading

        /// An iterator; each message goes to only one of the iterators.
        public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(reading: reading) }

        /// An iterator over the messages.
        public struct AsyncIterator: AsyncIteratorProtocol {
            let reading: Reading

            /// The next message; nil after a normal close.
            ///
            /// - Throws: The task's `URLError`; `URLError.cancelled` if the Swift task was cancelled, which
            ///   loses no message.
            public mutating func next(isolation actor: isolated (any Actor)?) async throws -> Message? {
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
