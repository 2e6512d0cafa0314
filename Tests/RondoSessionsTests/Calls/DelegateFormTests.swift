import Rondo
import RondoMutex
import RondoTestSupport
import Testing

/// Methods by completion handler and those that wait, and calls that tell of interim responses, caching and body streams.
@Suite(.timeLimit(.minutes(2)), .leavesNoConnections) struct DelegateFormTests {
    /// It conforms to nothing: what a subclass adds would not be called then.
    private class Log: NSObject, @unchecked Sendable {
        // `@unchecked Sendable` because the class is open: nothing in it changes.
        let log = EventLog()

        func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
            log.note("data \(String(decoding: data, as: UTF8.self))")
        }

        func urlSession(
            _ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?
        ) {
            log.note("complete \((error as? URLError)?.errorCode ?? 0)")
        }
    }

    private static func run(_ delegate: any Log & URLSessionDataDelegate, _ request: URLRequest) throws
        -> [String]
    {
        let session = URLSession(configuration: .ephemeral, delegate: delegate, delegateQueue: nil)
        session.dataTask(with: request).resume()
        return try end(delegate, session)
    }

    private static func end(_ delegate: Log, _ session: URLSession) throws -> [String] {
        try waitFor("the end") { delegate.log.entries.last?.hasPrefix("complete") ?? false ? () : nil }
        session.invalidateAndCancel()
        return delegate.log.entries
    }

    // MARK: - Forms that wait (rule US-5)

    private final class Waiting: NSObject, URLSessionDataDelegate, Sendable {
        let log = EventLog()
        let isOnQueue = Box<[Bool]>([])

        private func note(_ call: String, _ session: URLSession) {
            log.note(call)
            isOnQueue.value.append(
                session.runLoop.map(\.isCurrent) ?? (OperationQueue.current === session.delegateQueue))
        }

        func urlSession(
            _ session: URLSession, task: URLSessionTask,
            willPerformHTTPRedirection response: HTTPURLResponse, newRequest request: URLRequest
        ) async -> URLRequest? {
            note("redirect", session)
            await Task.yield()
            note("redirect goes on", session)
            return request
        }

        func urlSession(
            _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge
        ) async -> (URLSession.AuthChallengeDisposition, URLCredential?) {
            note("challenge", session)
            return (.useCredential, URLCredential(user: "user", password: "pass", persistence: .none))
        }

        func urlSession(
            _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse
        ) async -> URLSession.ResponseDisposition {
            note("response", session)
            return .allow
        }

        func urlSession(
            _ session: URLSession, dataTask: URLSessionDataTask,
            willCacheResponse proposedResponse: CachedURLResponse
        ) async -> CachedURLResponse? {
            note("willCache", session)
            return nil
        }

        func urlSession(
            _ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?
        ) {
            note("complete \((error as? URLError)?.errorCode ?? 0)", session)
        }
    }

    private static func formServer() throws -> TestServer {
        try TestServer { peer in
            while true {
                let request = try peer.readRequest()
                if request.target == "/" {
                    try peer.respond("302 Found", ["Location: /there"])
                } else if request.value("Authorization") == nil {
                    try peer.respond("401 No", ["WWW-Authenticate: Basic realm=\"r\""])
                } else {
                    try peer.respond("200 OK", ["Cache-Control: max-age=100"], body: "ok")
                }
            }
        }
    }

    private static let waitingCalls = [
        "redirect", "redirect goes on", "challenge", "response", "willCache", "complete 0",
    ]

    @Test func `US-5 async delegate methods are called on the queue, and their answers count`() throws {
        let server = try Self.formServer()
        let configuration = URLSessionConfiguration.ephemeral
        let delegate = Waiting()
        let session = URLSession(configuration: configuration, delegate: delegate, delegateQueue: nil)
        session.dataTask(with: server.url()).resume()
        try waitFor("the end") { delegate.log.entries.last?.hasPrefix("complete") ?? false ? () : nil }
        #expect(delegate.log.entries == Self.waitingCalls)
        #expect(delegate.isOnQueue.value.allSatisfy { $0 })
        #expect(
            configuration.urlCache?.cachedResponse(for: URLRequest(url: server.url("/there"))) == nil)
        session.invalidateAndCancel()
    }

    @Test(arguments: [true, false])
    func `US-30 US-33 an async method is not called after cancel(), nor while the task is suspended`(
        isCancelled: Bool
    ) throws {
        let server = try TestServer { peer in
            _ = try peer.readRequest()
            try peer.respond("200 OK", ["Cache-Control: no-store", "Connection: close"], body: "ok")
        }
        let calls = try onLoopThread { loop -> [[String]] in
            let delegate = Waiting()
            let session = URLSession(
                configuration: .ephemeral, delegate: delegate, runLoop: loop, modes: [.work])
            let task = session.dataTask(with: server.url())
            let isStopped = Box(false)
            // In the pass in which the method would be called.
            let observer = RunLoop.Observer(activities: .beforeTimers) { _, _ in
                guard task.response != nil, !isStopped.value else { return }
                isStopped.value = true
                if isCancelled { task.cancel() } else { task.suspend() }
            }
            loop.add(observer, forMode: .work)
            task.resume()
            loop.run(.work) { isStopped.value }
            loop.runInVain(.work)
            let before = delegate.log.entries
            task.resume()
            loop.runOut(.work)
            loop.remove(observer, forMode: .work)
            session.invalidateAndCancel()
            return [before, delegate.log.entries]
        }
        #expect(
            calls
                == (isCancelled
                    ? [["complete -999"], ["complete -999"]] : [[], ["response", "complete 0"]]))
    }

    @Test func `US-5 async delegate methods are called on the run loop`() throws {
        let server = try Self.formServer()
        let delegate = Waiting()
        try onLoopThread { loop in
            let session = URLSession(
                configuration: .ephemeral, delegate: delegate, runLoop: loop, modes: [.work])
            session.dataTask(with: server.url()).resume()
            loop.run(.work) { delegate.log.entries.last?.hasPrefix("complete") ?? false }
        }
        #expect(delegate.log.entries == Self.waitingCalls)
        #expect(delegate.isOnQueue.value.allSatisfy { $0 })
    }

    // MARK: - Interim responses

    private final class Interim: Log, URLSessionDataDelegate, @unchecked Sendable {}

    private final class Hinted: NSObject, URLSessionDataDelegate, Sendable {
        let log = EventLog()

        func urlSession(
            _ session: URLSession, task: URLSessionTask,
            didReceiveInformationalResponse response: HTTPURLResponse
        ) {
            log.note("\(response.statusCode) \(response.value(forHTTPHeaderField: "Link") ?? "-")")
            #expect(task.response == nil)
        }

        func urlSession(
            _ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?
        ) {
            log.note("complete \((error as? URLError)?.errorCode ?? 0)")
        }
    }

    @Test func `US-48 informational responses other than 100 reach the delegate`() throws {
        let server = try TestServer { peer in
            while true {
                _ = try peer.readRequest()
                try peer.send("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n")
                try peer.send("HTTP/1.1 102 Processing\r\n\r\n")
                try peer.respond(body: "ok")
            }
        }
        let delegate = Hinted()
        let session = URLSession(configuration: .ephemeral, delegate: delegate, delegateQueue: nil)
        session.dataTask(with: server.url()).resume()
        try waitFor("the end") { delegate.log.entries.last?.hasPrefix("complete") ?? false ? () : nil }
        #expect(delegate.log.entries == ["103 </a>", "102 -", "complete 0"])
        session.invalidateAndCancel()
        // A delegate without the method hears of none, and the load goes on.
        #expect(try Self.run(Interim(), URLRequest(url: server.url())) == ["data ok", "complete 0"])
    }

    // MARK: - Caching

    private final class Caching: Log, URLSessionDataDelegate, @unchecked Sendable {
        let answer: @Sendable (CachedURLResponse) -> CachedURLResponse?

        init(_ answer: @escaping @Sendable (CachedURLResponse) -> CachedURLResponse?) { self.answer = answer }

        func urlSession(
            _ session: URLSession, dataTask: URLSessionDataTask,
            willCacheResponse proposedResponse: CachedURLResponse,
            completionHandler: @escaping @Sendable (CachedURLResponse?) -> Void
        ) {
            log.note("willCache \(String(decoding: proposedResponse.data, as: UTF8.self))")
            completionHandler(answer(proposedResponse))
        }
    }

    @Test func `US-49 the answer to willCacheResponse is stored, and nil stores nothing`() throws {
        let server = try TestServer { peer in
            while true {
                _ = try peer.readRequest()
                try peer.respond("200 OK", ["Cache-Control: max-age=100"], body: "theirs")
            }
        }
        for stores in [true, false] {
            let configuration = URLSessionConfiguration.ephemeral
            let delegate = Caching { proposed in
                stores ? CachedURLResponse(response: proposed.response, data: Data("ours".utf8)) : nil
            }
            let session = URLSession(configuration: configuration, delegate: delegate, delegateQueue: nil)
            session.dataTask(with: server.url("/\(stores)")).resume()
            _ = try waitFor("the end") { delegate.log.entries.count == 3 ? () : nil }
            session.dataTask(with: server.url("/\(stores)")).resume()
            try waitFor("the end") { delegate.log.entries.count { $0 == "complete 0" } == 2 ? () : nil }
            session.invalidateAndCancel()
            #expect(
                delegate.log.entries
                    == ["data theirs", "willCache theirs", "complete 0"]
                    + (stores
                        ? ["data ours", "complete 0"] : ["data theirs", "willCache theirs", "complete 0"]))
        }
    }

    private final class Keeping: Log, URLSessionDataDelegate, @unchecked Sendable {
        let agree = Box<(@Sendable () -> Void)?>(nil)

        func urlSession(
            _ session: URLSession, dataTask: URLSessionDataTask,
            willCacheResponse proposedResponse: CachedURLResponse,
            completionHandler: @escaping @Sendable (CachedURLResponse?) -> Void
        ) {
            log.note("willCache")
            agree.value = { completionHandler(proposedResponse) }
        }
    }

    @Test(arguments: [false, true])
    func `US-27 US-69 a task whose answer about caching is owed when its time is over has succeeded`(
        answersJustThen: Bool
    ) throws {
        let server = try TestServer { peer in
            _ = try peer.readRequest()
            try peer.respond("200 OK", ["Cache-Control: max-age=100"], body: "theirs")
            peer.waitForEnd()
        }
        let (url, delegate) = (server.url(), Keeping())
        let isStored = try onHeldLoop { loop, clock -> Bool in
            let configuration = URLSessionConfiguration.ephemeral
            configuration.timeoutIntervalForRequest = 5
            configuration.timeoutIntervalForResource = 10
            let session = URLSession(configuration: configuration, delegate: delegate, runLoop: loop)
            session.dataTask(with: url).resume()
            loop.passUntil { delegate.agree.value != nil }
            // Time in which an answer is owed is none of the request's.
            loop.pass(6, by: clock)
            #expect(delegate.log.entries == ["data theirs", "willCache"])
            if answersJustThen {
                // It fires together with the timer that finds the task's time over.
                let answer = Timer(timeInterval: 4.5, repeats: false) { _ in delegate.agree.value?() }
                loop.add(answer, forMode: .default)
            }
            loop.pass(5, by: clock)
            for _ in 1...10 { loop.runInVain(for: 0) }
            session.invalidateAndCancel()
            loop.runOut()
            return configuration.urlCache?.cachedResponse(for: URLRequest(url: url)) != nil
        }
        #expect(delegate.log.entries == ["data theirs", "willCache", "complete 0"])
        #expect(isStored == answersJustThen)
        delegate.agree.value = nil
    }

    // MARK: - Body streams

    private final class Streaming: Log, URLSessionDataDelegate, @unchecked Sendable {
        func urlSession(
            _ session: URLSession, task: URLSessionTask,
            needNewBodyStream completionHandler: @escaping @Sendable (InputStream?) -> Void
        ) {
            log.note("stream")
            completionHandler(InputStream(data: Data("again".utf8)))
        }
    }

    @Test func `US-60 the delegate is asked for a new body stream if the old one was read`() throws {
        let server = try TestServer.redirecting("/", to: "/there", "307 Temporary Redirect") {
            String(decoding: $0.body, as: UTF8.self)
        }
        var request = URLRequest(url: server.url())
        request.httpMethod = "POST"
        request.httpBodyStream = InputStream(data: Data("once".utf8))
        let calls = try Self.run(Streaming(), request)
        #expect(server.requests.map { String(decoding: $0.body, as: UTF8.self) } == ["once", "again"])
        #expect(calls == ["stream", "data again", "complete 0"])
    }

    // MARK: - Errors

    @Test func `US-86 failures have the codes of the table, with domain, URL and a sentence`() throws {
        let refused = try RefusedPort()
        let server = try TestServer { peer in
            while true {
                let request = try peer.readRequest()
                switch request.target {
                case "/closed": return
                case "/short": return try peer.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nx")
                case "/garbled": return try peer.send("what is this\r\n\r\n")
                case "/loop": try peer.respond("302 Found", ["Location: /loop"])
                case "/lost": try peer.respond("302 Found")
                case "/scheme": try peer.respond("302 Found", ["Location: ftp://127.0.0.1/"])
                case "/coding":
                    try peer.respond("200 OK", ["Content-Encoding: gzip"], body: "no gzip at all, is it?")
                case "/silent": return peer.waitForEnd()
                default: try peer.respond("500 Error", body: "error")
                }
            }
        }
        let others: [(String, Int)] = [
            ("http://127.0.0.1:\(refused.port)/", -1004), ("foo://bar/", -1002),
            ("http://127.0.0.1:99999/", -1000), ("file:///no/such/file", -1100),
        ]
        let cases: [(URL, Int)] =
            [
                ("/closed", -1005), ("/short", -1005), ("/garbled", -1017), ("/loop", -1007),
                ("/lost", -1010), ("/scheme", -1002), ("/coding", -1015), ("/silent", -1001), ("/500", 0),
            ].map { (server.url($0), $1) }
            + others.compactMap { text, code in URL(string: text).map { ($0, code) } }
        for (url, code) in cases {
            var request = URLRequest(url: url)
            request.timeoutInterval = url.path == "/silent" ? 0.1 : 60
            let session = URLSession(configuration: .ephemeral)
            let error = try session.load(request).error
            session.invalidateAndCancel()
            #expect(error?.errorCode ?? 0 == code, "\(url)")
            guard code != 0 else { continue }
            #expect(error?.failingURL != nil, "\(url)")
            #expect(error?.localizedDescription.isEmpty == false)
            #expect((error as NSError?)?.domain == NSURLErrorDomain)
        }
    }
}
