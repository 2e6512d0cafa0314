import Rondo
import RondoTestSupport
import Testing

/// Data tasks that become streams.
@Suite(.timeLimit(.minutes(2)), .serialized, .leavesNoConnections) struct BecomingStreamTests {
    private final class Becoming: NSObject, URLSessionDataDelegate, URLSessionStreamDelegate,
        @unchecked Sendable
    {
        // `@unchecked Sendable`: the task is set once, before the event is noted that the test waits for.
        let log = EventLog()
        var stream: URLSessionStreamTask?

        func urlSession(
            _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
            completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
        ) {
            log.note("response \((response as? HTTPURLResponse)?.statusCode ?? 0)")
            completionHandler(.becomeStream)
        }

        func urlSession(
            _ session: URLSession, dataTask: URLSessionDataTask, didBecome streamTask: URLSessionStreamTask
        ) {
            stream = streamTask
            log.note("became \(streamTask.state == .running) \(streamTask.taskIdentifier)")
        }

        func urlSession(
            _ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?
        ) {
            log.note("complete \(task.taskIdentifier) \((error as? URLError)?.errorCode ?? 0)")
        }
    }

    @Test func `US-47 a 101 becomes a stream task, whose first bytes are those after the head`() throws {
        let server = try TestServer { peer in
            let request = try peer.readRequest()
            #expect(request.value("Upgrade") == "lines")
            try peer.send("HTTP/1.1 101 Go on\r\nConnection: upgrade\r\nUpgrade: lines\r\n\r\nfirst\n")
            try peer.send(try peer.readLine() + "\n")
            peer.finish()
            peer.waitForEnd()
        }
        let (teller, log) = (Becoming(), EventLog())
        let session = URLSession(configuration: .default, delegate: teller, delegateQueue: nil)
        var request = URLRequest(url: server.url())
        request.setValue("lines", forHTTPHeaderField: "Upgrade")
        request.setValue("Upgrade", forHTTPHeaderField: "Connection")
        let task = session.dataTask(with: request)
        task.resume()
        try waitFor("the stream") { teller.log.entries.contains("became true 2") ? () : nil }
        let stream = try #require(teller.stream)
        teller.stream = nil
        stream.readData(ofMinLength: 6, maxLength: 6, timeout: 30) { log.note(readText($0, $1, $2)) }
        stream.write(Data("second\n".utf8), timeout: 30) { _ in }
        stream.readData(ofMinLength: 100, maxLength: 100, timeout: 30) { log.note(readText($0, $1, $2)) }
        stream.closeWrite()
        try waitFor("the end") { teller.log.entries.last == "complete 2 0" ? () : nil }
        #expect(log.entries == ["first\n", "second\n|"])
        #expect(task.state == .completed)
        #expect(teller.log.entries == ["response 101", "became true 2", "complete 2 0"])
        session.invalidateAndCancel()
    }

    @Test func `US-47 becomeStream for any other response than 101 cancels the task`() throws {
        let server = try echoServer()
        let teller = Becoming()
        let session = URLSession(configuration: .default, delegate: teller, delegateQueue: nil)
        session.dataTask(with: server.url()).resume()
        try waitFor("the end") { teller.log.entries.last == "complete 1 -999" ? () : nil }
        #expect(teller.log.entries == ["response 200", "complete 1 -999"])
        session.invalidateAndCancel()
    }

    @Test(arguments: [false, true])
    func `US-47 US-86 a 101 that becomes no stream fails with -1011 and says so`(isAsked: Bool) throws {
        let server = try TestServer { peer in
            _ = try peer.readRequest()
            try peer.send("HTTP/1.1 101 Go on\r\nConnection: upgrade\r\nUpgrade: lines\r\n\r\nfirst\n")
            peer.waitForEnd()
        }
        var request = URLRequest(url: server.url())
        request.setValue("lines", forHTTPHeaderField: "Upgrade")
        request.setValue("Upgrade", forHTTPHeaderField: "Connection")
        let notes = Notes()
        let session = URLSession(
            configuration: .ephemeral, delegate: isAsked ? notes : nil, delegateQueue: nil)
        let task = session.dataTask(with: request)
        task.resume()
        try waitFor("the end") { task.state == .completed ? () : nil }
        let error = try #require(task.error as? URLError)
        #expect(error.code == .badServerResponse)
        #expect(error.localizedDescription.contains("(101)"))
        #expect(error.localizedDescription.contains("becomeStream"))
        session.invalidateAndCancel()
    }

    /// Cancels the stream task when it is told of it, and keeps it.
    private final class Cancelling: NSObject, URLSessionDataDelegate, URLSessionStreamDelegate, Sendable {
        let log = EventLog()
        let stream = Box<URLSessionStreamTask?>(nil)

        func urlSession(
            _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
            completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
        ) { completionHandler(.becomeStream) }

        func urlSession(
            _ session: URLSession, dataTask: URLSessionDataTask, didBecome streamTask: URLSessionStreamTask
        ) {
            stream.value = streamTask
            streamTask.cancel()
        }

        func urlSession(
            _ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?
        ) {
            log.note("complete \(task.taskIdentifier) \((error as? URLError)?.errorCode ?? 0)")
        }
    }

    @Test(arguments: [false, true])
    func `US-88 a stream task that is cancelled as the data task becomes it leaves no connection open`(
        onLoop: Bool
    )
        throws
    {
        let ended = Latch()
        let server = try TestServer { peer in
            _ = try peer.readRequest()
            try peer.send("HTTP/1.1 101 Go on\r\nConnection: upgrade\r\nUpgrade: lines\r\n\r\n")
            peer.waitForEnd()
            ended.open()
        }
        let teller = Cancelling()
        try onLoopThread { loop in
            let session =
                onLoop
                ? URLSession(configuration: .default, delegate: teller, runLoop: loop)
                : URLSession(configuration: .default, delegate: teller, delegateQueue: nil)
            var request = URLRequest(url: server.url())
            request.setValue("lines", forHTTPHeaderField: "Upgrade")
            request.setValue("Upgrade", forHTTPHeaderField: "Connection")
            session.dataTask(with: request).resume()
            // The connection ends while the program still has the task.
            while teller.log.entries.isEmpty || !ended.isOpen { loop.runInVain(for: 0) }
            session.invalidateAndCancel()
            loop.runOut()
        }
        #expect(teller.log.entries == ["complete 2 -999"])
        #expect(teller.stream.value?.state == .completed)
        teller.stream.value = nil
    }
}
