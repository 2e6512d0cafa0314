import Rondo
import RondoTestSupport
import Testing

// The classes by which programs replace a session, its tasks and their metrics in tests. They are deprecated as the
// initialisers are that they call: otherwise the compiler warns.

@available(*, deprecated)
private final class SessionMock: URLSession, @unchecked Sendable {
    override init() {}

    override func webSocketTask(with request: URLRequest) -> URLSessionWebSocketTask { SocketMock() }
    override func streamTask(withHostName hostname: String, port: Int) -> URLSessionStreamTask {
        StreamMock()
    }
}

@available(*, deprecated)
private final class SocketMock: URLSessionWebSocketTask, @unchecked Sendable {
    let sent = Box<[String]>([])

    override init() {}

    override func send(_ message: Message) async throws { sent.mutate { $0.append(message.words) } }
}

@available(*, deprecated)
private final class StreamMock: URLSessionStreamTask, @unchecked Sendable {
    override init() {}

    override var countOfBytesSent: Int64 { 7 }
}

@available(*, deprecated)
private final class MetricsMock: URLSessionTaskMetrics, @unchecked Sendable {
    override init() {}

    override var transactionMetrics: [URLSessionTaskTransactionMetrics] { [TransactionMock()] }
}

@available(*, deprecated)
private final class TransactionMock: URLSessionTaskTransactionMetrics, @unchecked Sendable {
    override init() {}

    override var fetchStartDate: Date? { Date(timeIntervalSinceReferenceDate: 1) }
}

/// Classes of a program that inherit from those of sessions, in a file that sees only what is public.
@Suite(.timeLimit(.minutes(2)), .leavesNoConnections) struct SubclassTests {
    @available(*, deprecated)
    @Test func `US-3 a program's classes take the place of a session, its tasks and their metrics`()
        async throws
    {
        let session: URLSession = SessionMock()
        #expect(session.configuration.timeoutIntervalForRequest == 60)
        #expect(session.delegate == nil && session.runLoop == nil)
        let socket = session.webSocketTask(with: try #require(URL(string: "ws://localhost/")))
        try await socket.send(.string("text"))
        #expect((socket as? SocketMock)?.sent.value == ["text: text"])
        socket.resume()
        socket.cancel()
        #expect(socket.closeCode == .invalid && socket.originalRequest == nil)
        #expect(session.streamTask(withHostName: "localhost", port: 1).countOfBytesSent == 7)
        let metrics: URLSessionTaskMetrics = MetricsMock()
        #expect(metrics.redirectCount == 0 && metrics.taskInterval.duration == 0)
        let transaction = try #require(metrics.transactionMetrics.first)
        #expect(transaction.fetchStartDate?.timeIntervalSinceReferenceDate == 1)
        #expect(transaction.request.url == nil && transaction.response == nil)
        #expect(transaction.connectEndDate == nil && transaction.networkProtocolName == nil)
        session.invalidateAndCancel()
    }

    @available(*, deprecated)
    @Test func `US-3 operations that a class inherits fail at once in a task without a session`() async {
        let socket = SocketMock()
        let ofReceive = await #expect(throws: URLError.self) { _ = try await socket.receive() }
        #expect(ofReceive?.code == .cancelled)
        socket.cancel()
        #expect(socket.closeCode == .invalid)
        let stream = StreamMock()
        let ofRead = await #expect(throws: URLError.self) {
            _ = try await stream.readData(ofMinLength: 1, maxLength: 1, timeout: 0)
        }
        #expect(ofRead?.code == .cancelled)
        let ofWrite = await #expect(throws: URLError.self) { try await stream.write(Data([1]), timeout: 0) }
        #expect(ofWrite?.code == .cancelled)
    }

    @available(*, deprecated)
    @Test func `US-7 a session that was made without anything has the default configuration, and loads`()
        async throws
    {
        let server = try TestServer { peer in
            _ = try peer.readRequest()
            try peer.respond(body: "content")
        }
        let session: URLSession = SessionMock()
        #expect(try await session.data(from: server.url()).0 == Data("content".utf8))
        session.invalidateAndCancel()
    }
}
