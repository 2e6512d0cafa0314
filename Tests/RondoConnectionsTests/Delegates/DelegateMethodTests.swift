import Rondo
import RondoTestSupport
import Testing

/// Tests which methods of a delegate are called, and what takes the place of those that it does not have.
@Suite(.timeLimit(.minutes(5)), .leavesNoConnections) struct DelegateMethodTests {
    private static func server() throws -> TestServer {
        try TestServer { peer in
            while true {
                switch try peer.readRequest().target {
                case "/old": try peer.respond("307 Temporary Redirect", ["Location: /new"], body: "moved")
                case "/secret":
                    try peer.respond(
                        "401 Unauthorized", ["WWW-Authenticate: Basic realm=\"r\""], body: "who are you?")
                default: try peer.respond(body: "here")
                }
            }
        }
    }

    /// It conforms, and has nothing.
    private final class Silent: NSObject, URLConnectionDataDelegate, Sendable {}

    @Test(arguments: ["/", "/old", "/secret"])
    func `UC-74 a delegate without any method has every default`(path: String) throws {
        let server = try Self.server()
        var request = URLRequest(url: server.url(path))
        request.httpMethod = "POST"
        request.httpBodyStream = InputStream(data: Data("body".utf8))
        let silent = Silent()
        let ended = try onLoopThread { [request] loop -> RunLoop.RunResult in
            _ = URLConnection(request: request, delegate: silent)
            return loop.runOut()
        }
        #expect(ended == .finished)
        // A redirect is followed, with the body.
        #expect(server.requests.map(\.target) == (path == "/old" ? ["/old", "/new"] : [path]))
        #expect(server.requests.allSatisfy { $0.body == Data("body".utf8) })
    }

    @Test func `UC-74 a delegate may be an object of any class, or none`() throws {
        let server = try Self.server()
        for delegate in [nil, Unrelated(), "text", 5] as [(any Sendable)?] {
            let ended = try onLoopThread { loop -> RunLoop.RunResult in
                _ = URLConnection(request: URLRequest(url: server.url("/old")), delegate: delegate)
                return loop.runOut()
            }
            #expect(ended == .finished)
        }
        #expect(server.requests.count == 8)
    }

    private final class Unrelated: NSObject, Sendable {}

    /// `@unchecked Sendable` because it has a subclass; nothing in either changes but the box, which has a lock.
    private class Finishing: NSObject, URLConnectionDataDelegate, @unchecked Sendable {
        let count = Box(0)

        func connectionDidFinishLoading(_ connection: URLConnection) { count.mutate { $0 += 1 } }
    }

    private final class FinishingToo: Finishing, @unchecked Sendable {
        override func connectionDidFinishLoading(_ connection: URLConnection) { count.mutate { $0 += 10 } }
    }

    private final class Downloading: NSObject, URLConnectionDownloadDelegate, Sendable {
        let count = Box(0)

        func connectionDidFinishDownloading(_ connection: URLConnection, destinationURL: URL) {
            count.mutate { $0 += 1 }
        }
    }

    // What is known of a class is used for the next delegate of the class.
    @Test func `UC-74 a delegate is found in whatever it is handed over in`() throws {
        let server = try Self.server()
        let (first, second, third) = (Finishing(), FinishingToo(), Downloading())
        let delegates: [@Sendable () -> Any] = [
            { first }, { second }, { first }, { Optional(first) as Any }, { AnyHashable(second) }, { third },
            { Optional(third) as Any }, { Optional(Optional(first)) as Any },
        ]
        for delegate in delegates {
            try onLoopThread { loop in
                _ = URLConnection(request: URLRequest(url: server.url()), delegate: delegate())
                #expect(loop.runOut() == .finished)
            }
        }
        #expect(first.count.value == 4)
        #expect(second.count.value == 20)
        #expect(third.count.value == 2)
    }

    /// Hands on what it is told of metrics.
    private final class Forwarding: NSObject, URLConnectionDataDelegate, Sendable {
        let other: any URLConnectionDelegate & Sendable

        init(to other: any URLConnectionDelegate & Sendable) { self.other = other }

        func connection(_ connection: URLConnection, didCollect metrics: URLConnection.Metrics) {
            other.connection(connection, didCollect: metrics)
        }
    }

    private final class Counting: NSObject, URLConnectionDataDelegate, Sendable {
        let count = Box(0)

        func connection(_ connection: URLConnection, didCollect metrics: URLConnection.Metrics) {
            count.mutate { $0 += metrics.transfers.count }
        }
    }

    @Test func `UC-74 a default that a delegate forwards to is not taken for its own`() throws {
        let server = try Self.server()
        let counting = Counting()
        for other in [Silent(), counting, Silent(), counting] as [any URLConnectionDelegate & Sendable] {
            let delegate = Forwarding(to: other)
            try onLoopThread { loop in
                _ = URLConnection(request: URLRequest(url: server.url()), delegate: delegate)
                loop.runOut()
            }
        }
        #expect(counting.count.value == 2)
    }

    /// As programs of 2015 wrote it.
    private final class Old: NSObject, URLConnectionDataDelegate, Sendable {
        let log = EventLog()

        func connection(
            _ connection: URLConnection, willSendRequest request: URLRequest,
            redirectResponse response: URLResponse?
        ) -> URLRequest? {
            log.note("willSendRequest \((response as? HTTPURLResponse)?.statusCode ?? 0)")
            return request
        }

        func connection(_ connection: URLConnection, didReceiveResponse response: URLResponse) {
            log.note("didReceiveResponse")
        }

        func connection(_ connection: URLConnection, didReceiveData data: Data) {
            log.note("didReceiveData")
        }

        func connection(_ connection: URLConnection, didFailWithError error: NSError) {
            log.note("didFail \(error.domain) \(error.code)")
        }
    }

    @Test func `UC-74 the spellings of 2015 are called`() throws {
        let server = try Self.server()
        let old = Old()
        try onLoopThread { loop in
            _ = URLConnection(request: URLRequest(url: server.url("/old")), delegate: old)
            loop.runOut()
        }
        #expect(old.log.entries == ["willSendRequest 307", "didReceiveResponse", "didReceiveData"])
        server.stop()
        try onLoopThread { loop in
            _ = URLConnection(request: URLRequest(url: url("http://127.0.0.1:1/")), delegate: old)
            loop.runOut()
        }
        #expect(old.log.entries.last == "didFail NSURLErrorDomain -1004")
    }

    @Test func `UC-59 the error is a URLError and an NSError, however it is caught`() throws {
        let request = URLRequest(url: url("http://127.0.0.1:1/"))
        try onLoopThread { _ in
            do {
                _ = try URLConnection.sendSynchronousRequest(request, returning: nil)
                Issue.record("it must fail")
            } catch let error as NSError {
                #expect(error.domain == NSURLErrorDomain)
                #expect(error.code == -1004)
                #expect(error.userInfo[NSUnderlyingErrorKey] != nil)
            }
            do {
                _ = try URLConnection.sendSynchronousRequest(request, returning: nil)
            } catch let error as URLError {
                #expect(error.code == .cannotConnectToHost)
            } catch {
                Issue.record("no URLError: \(error)")
            }
        }
        let error: any Error = NSError(domain: NSURLErrorDomain, code: -1001)
        #expect((error as? URLError)?.code == .timedOut)
        let other: any Error = NSError(domain: NSPOSIXErrorDomain, code: 2)
        #expect(other as? URLError == nil)
    }

    /// Notes the credential storage question among the others.
    private final class Storing: NSObject, URLConnectionDataDelegate, Sendable {
        let log = EventLog()

        func connectionShouldUseCredentialStorage(_ connection: URLConnection) -> Bool {
            log.note("storage?")
            return true
        }

        func connection(
            _ connection: URLConnection, willSend request: URLRequest, redirectResponse response: URLResponse?
        ) -> URLRequest? {
            log.note("willSend")
            return request
        }

        func connection(_ connection: URLConnection, didReceive response: URLResponse) {
            log.note("response")
        }

        func connectionDidFinishLoading(_ connection: URLConnection) { log.note("finish") }
    }

    @Test(arguments: [true, false])
    func `UC-43 the credential storage is asked about once, before anything is sent`(byQueue: Bool) throws {
        let server = try Self.server()
        let delegate = Storing()
        try onLoopThread { loop in
            let connection = URLConnection(
                request: URLRequest(url: server.url("/old")), delegate: delegate)
            if byQueue { connection?.setDelegateQueue(OperationQueue()) }
            #expect(byQueue || delegate.log.entries == [])
            loop.runOut()
        }
        #expect(delegate.log.entries == ["storage?", "willSend", "response", "finish"])
    }

    @Test func `UC-11 a queue that is taken away in the middle does not let calls overtake each other`()
        throws
    {
        let go = Latch()
        let server = try TestServer.sending(
            "HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\none,", until: go, then: "two.")
        let held = Latch()
        let recorder = Recorder { call, connection in
            guard call == .data, !go.isOpen else { return }
            // What comes next comes while this call is still being made, and has no queue any more.
            connection.setDelegateQueue(nil)
            go.open()
            held.waitOrRecord()
        }
        try onLoopThread { loop in
            let connection = URLConnection(request: URLRequest(url: server.url()), delegate: recorder)
            connection?.setDelegateQueue(OperationQueue())
            #expect(loop.run { go.isOpen })
            loop.runInVain()
            #expect(recorder.text == "one,")
            held.open()
            loop.runOut()
        }
        #expect(recorder.calls == ["response 200", "data", "finish"])
        #expect(recorder.text == "one,two.")
    }
}
