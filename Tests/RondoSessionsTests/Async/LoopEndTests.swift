import Rondo
import RondoTestSupport
import Testing

import class Rondo.URLSession

@testable import RondoSessions

/// Async functions of a session whose loop's thread ends while they wait (rule US-41).
@Suite(.timeLimit(.minutes(1)), .leavesNoConnections) struct LoopEndTests {
    /// A session whose loop runs until `stop()`.
    private final class RunningLoop: Sendable {
        let thread = LoopThread { loop in
            loop.add(Port(), forMode: .default)
            loop.runOut()
        }
        let session: URLSession

        init() throws {
            session = URLSession(configuration: .ephemeral, delegate: nil, runLoop: try thread.loop)
        }

        func stop() throws {
            // A loop that does not run yet would not be stopped.
            try thread.loop.waitUntilAsleep()
            try thread.loop.stop()
            _ = try thread.value()
        }
    }

    /// Waits for `wait` and returns its value. A function that waits for ever fails the test.
    private static func value<Value: Sendable>(_ wait: @escaping @Sendable () async -> Value) throws -> Value
    {
        let value = Box<Value?>(nil)
        Task { value.value = await wait() }
        return try waitFor("the end of an async function") { value.value }
    }

    /// The code of the error with which `waiting` has failed.
    private static func code<Value: Sendable>(of waiting: Task<Value, any Error>) throws -> URLError.Code? {
        guard case .failure(let error) = try value({ await waiting.result }) else { return nil }
        return (error as? URLError)?.code
    }

    @Test(arguments: [false, true])
    func `US-41 a receive and a ping of a WebSocket fail when the thread of the loop ends`(_ isOpen: Bool)
        throws
    {
        let server =
            isOpen
            ? try socketServer { $0.waitForEnd() }
            : try TestServer { peer in
                _ = try peer.readRequest()
                peer.waitForEnd()
            }
        let running = try RunningLoop()
        let task = running.session.webSocketTask(with: server.socketURL)
        task.resume()
        let shared = try #require(task.work.webSocket)
        if isOpen { try waitFor("the handshake") { shared.isOpen ? () : nil } }
        let receive = Task { try await task.receive() }
        let ping = Task { try await task.sendPing() }
        try waitFor("both operations") {
            // Of a copy.
            var queues = shared.state.withLock { $0.queues }
            return queues.takeReceivers().isEmpty || queues.takeSenders().isEmpty ? nil : ()
        }
        try running.stop()
        #expect(try Self.code(of: receive) == .cancelled)
        #expect(try Self.code(of: ping) == .cancelled)
        #expect(try Self.code(of: Task { try await task.receive() }) == .cancelled)
    }

    @Test(arguments: [true, false])
    func `US-41 an operation of a task that cannot begin fails if the thread of the loop has ended`(
        isInvalidated: Bool
    ) throws {
        let running = try RunningLoop()
        if isInvalidated { running.session.finishTasksAndInvalidate() }
        try running.stop()
        let url = try #require(URL(string: isInvalidated ? "ws://127.0.0.1/" : "http://127.0.0.1/"))
        let webSocket = running.session.webSocketTask(with: url)
        webSocket.resume()
        #expect(try Self.code(of: Task { try await webSocket.receive() }) == .cancelled)
        let stream = running.session.streamTask(withHostName: "127.0.0.1", port: 1)
        stream.resume()
        let read = Task { try await stream.readData(ofMinLength: 1, maxLength: 10, timeout: 0).0 }
        #expect(try Self.code(of: read) == .cancelled)
    }

    @Test func `US-41 a read of a stream task fails when the thread of the loop ends`() throws {
        let server = try TestServer { $0.waitForEnd() }
        let running = try RunningLoop()
        let task = running.session.streamTask(withHostName: "127.0.0.1", port: Int(server.port))
        task.resume()
        let read = Task { try await task.readData(ofMinLength: 1, maxLength: 10, timeout: 0).0 }
        let shared = try #require(task.work.plan.stream)
        try waitFor("the read") { shared.state.withLock { $0.queues.isEmpty } ? nil : () }
        try running.stop()
        #expect(try Self.code(of: read) == .cancelled)
        let late = Task { try await task.write(Data("late".utf8), timeout: 0) }
        #expect(try Self.code(of: late) == .cancelled)
    }

    @Test func `US-41 calls that cannot throw return when the thread of the loop ends`() throws {
        let server = try TestServer { $0.waitForEnd() }
        let mayEnd = Latch()
        let thread = LoopThread { _ in do { try mayEnd.wait() } catch { Issue.record(error) } }
        let session = URLSession(configuration: .ephemeral, delegate: nil, runLoop: try thread.loop)
        let task = session.downloadTask(with: server.url())
        task.resume()
        let (tasks, data) = (
            Task { await session.allTasks }, Task { await task.cancelByProducingResumeData() }
        )
        try waitFor("the handler") { task.work.state.withLock { $0.resumeDataHandlers.isEmpty } ? nil : () }
        mayEnd.open()
        try thread.value()
        #expect(try Self.value { await data.value } == nil)
        #expect(try Self.value { await tasks.value.isEmpty })
        // The thread has ended before the call.
        #expect(try Self.value { await task.cancelByProducingResumeData() } == nil)
        #expect(try Self.value { await session.tasks.2.isEmpty })
    }
}
