import Rondo
import RondoTestSupport
import Testing

/// Rules of tasks: what they show of themselves, which delegate is asked, redirects.
@Suite(.timeLimit(.minutes(2)), .serialized, .leavesNoConnections) struct TaskRuleTests {
    @Test
    func `US-28 a task is made suspended, does nothing before resume, and its states have Apple's numbers`()
        throws
    {
        let server = try echoServer()
        let notes = Notes()
        let session = URLSession(configuration: .default, delegate: notes, delegateQueue: nil)
        let (idle, running) = (
            session.dataTask(with: server.url("/idle")), session.dataTask(with: server.url("/running"))
        )
        #expect(idle.state.rawValue == 1)
        let during = Box(-1)
        notes.answerResponses { task, answer in
            during.value = task.state.rawValue
            answer(.allow)
        }
        running.resume()
        try waitFor("the end") { notes.completed == 1 ? () : nil }
        #expect(during.value == 0)
        #expect(running.state.rawValue == 3)
        // Whatever was sent before the answer to the other task would have come before it.
        #expect(server.requests.map(\.target) == ["/running"])
        #expect(idle.state == .suspended)
        session.invalidateAndCancel()
        #expect(idle.state == .canceling || idle.state == .completed)
        #expect(URLSessionTask.State.canceling.rawValue == 2)
        try waitFor("the session's end") { notes.calls.last == "invalid" ? () : nil }
    }

    @Test func `US-36 currentRequest follows configuration and redirects, and originalRequest stays`() throws
    {
        let server = try TestServer.redirecting("/old", to: "/new") { _ in "new" }
        let seen = EventLog()
        let notes = Notes { call, task in
            let status = (task?.response as? HTTPURLResponse)?.statusCode ?? 0
            seen.note("\(call) \(status) \(task?.currentRequest?.url?.path ?? "-")")
        }
        let configuration = URLSessionConfiguration.default
        configuration.httpAdditionalHeaders = ["X-Mine": "yes"]
        let session = URLSession(configuration: configuration, delegate: notes, delegateQueue: nil)
        let task = session.dataTask(with: server.url("/old"))
        #expect(task.currentRequest?.value(forHTTPHeaderField: "X-Mine") == "yes")
        task.resume()
        try waitFor("the end") { notes.completed == 1 ? () : nil }
        #expect(
            Array(seen.entries.prefix(2)) == ["redirect 302 0 /old", "response 200 200 /new"])
        #expect(task.originalRequest == URLRequest(url: server.url("/old")))
        #expect(task.currentRequest?.url == server.url("/new"))
        session.invalidateAndCancel()
    }

    @Test func `US-37 byte counts are of transferred bytes, and expected counts are the announced lengths`()
        throws
    {
        let server = try TestServer { peer in
            while true {
                let request = try peer.readRequest()
                if request.target == "/chunks" {
                    try peer.send(
                        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n")
                } else {
                    try peer.respond(body: "12345678")
                }
            }
        }
        let notes = Notes()
        let session = URLSession(configuration: .default, delegate: notes, delegateQueue: nil)
        var post = URLRequest(url: server.url("/post"))
        post.httpMethod = "POST"
        post.httpBody = Data("body!".utf8)
        let tasks = [session.dataTask(with: post), session.dataTask(with: server.url("/chunks"))]
        #expect(tasks[0].countOfBytesExpectedToSend == 5)
        for (number, task) in tasks.enumerated() {
            task.resume()
            try waitFor("the end") { notes.completed == number + 1 ? () : nil }
        }
        #expect(tasks.map(\.countOfBytesSent) == [5, 0])
        #expect(tasks.map(\.countOfBytesExpectedToSend) == [5, 0])
        #expect(tasks.map(\.countOfBytesReceived) == [8, 3])
        #expect(tasks.map(\.countOfBytesExpectedToReceive) == [8, -1])
        session.invalidateAndCancel()
    }

    /// Has two of the methods.
    private final class Own: NSObject, URLSessionDataDelegate {
        let log: EventLog
        init(_ log: EventLog) { self.log = log }

        func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
            log.note("own data")
        }

        func urlSession(
            _ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?
        ) {
            log.note("own complete")
        }
    }

    @Test
    func `US-40 the task's delegate takes precedence for each method, and is released with the last call`()
        throws
    {
        let server = try echoServer()
        let log = EventLog()
        let notes = Notes()
        let session = URLSession(configuration: .default, delegate: notes, delegateQueue: nil)
        weak var gone: Own?
        let task = session.dataTask(with: server.url())
        do {
            let own = Own(log)
            gone = own
            task.delegate = own
        }
        #expect(gone != nil)
        #expect(task.delegate === gone)
        task.resume()
        // Too late.
        task.delegate = nil
        try waitFor("the end") { log.entries.last == "own complete" ? () : nil }
        #expect(log.entries == ["own data", "own complete"])
        #expect(notes.calls == ["response 200"])
        try waitFor("the delegate to go") { gone == nil ? () : nil }
        #expect(task.delegate == nil)
        session.invalidateAndCancel()
    }

    @Test(arguments: [300, 301, 302, 303, 304, 305, 306, 307, 308])
    func `US-51 a redirect's status decides the method and whether the body goes along`(_ status: Int) throws
    {
        let server = try TestServer { peer in
            while true {
                let request = try peer.readRequest()
                if request.target == "/old" {
                    let fields = ["Location: new", "Connection: keep-alive"]
                    if status == 304 {
                        try peer.send("HTTP/1.1 304 Not Modified\r\nLocation: new\r\n\r\n")
                    } else {
                        try peer.respond("\(status) Redirect", fields)
                    }
                } else if request.method == "HEAD" {
                    try peer.send("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n")
                } else {
                    try peer.respond(body: "end")
                }
            }
        }
        let session = URLSession(configuration: .ephemeral)
        for method in ["GET", "HEAD", "POST", "PUT"] {
            let before = server.requests.count
            var request = URLRequest(url: server.url("/old"))
            request.httpMethod = method
            if method.hasPrefix("P") { request.httpBody = Data("body".utf8) }
            let done = Box<Int?>(nil)
            session.dataTask(with: request) { _, response, error in
                done.value =
                    (response as? HTTPURLResponse)?.statusCode ?? (error as? URLError)?.errorCode ?? 0
            }.resume()
            let outcome = try waitFor("the end") { done.value }
            let sent = server.requests.dropFirst(before).map {
                "\($0.method) \($0.target) \(String(decoding: $0.body, as: UTF8.self))"
            }
            let body = method.hasPrefix("P") ? "body" : ""
            let first = "\(method) /old \(body)"
            switch status {
            case 300, 304, 305, 306:
                #expect(outcome == status, "\(method)")
                #expect(sent == [first])
            case 303:
                #expect(outcome == 200)
                #expect(sent == [first, "\(method == "HEAD" ? "HEAD" : "GET") /new "])
            case 301, 302:
                #expect(outcome == 200)
                #expect(
                    sent == [first, method == "POST" ? "GET /new " : "\(method) /new \(body)"], "\(method)")
            default:
                #expect(outcome == 200)
                #expect(sent == [first, "\(method) /new \(body)"])
            }
        }
        session.finishTasksAndInvalidate()
    }

    @Test(arguments: ["", "ftp://127.0.0.1/"])
    func `US-51 a redirect without a usable Location fails with -1010, one to another scheme with -1002`(
        _ location: String
    )
        throws
    {
        let server = try TestServer { peer in
            _ = try peer.readRequest()
            try peer.respond("302 Found", location.isEmpty ? [] : ["Location: \(location)"])
        }
        let session = URLSession(configuration: .default)
        let code = Box<Int?>(nil)
        session.dataTask(with: server.url()) { _, _, error in
            code.value = (error as? URLError)?.errorCode ?? 0
        }
        .resume()
        #expect(try waitFor("the end") { code.value } == (location.isEmpty ? -1010 : -1002))
        session.finishTasksAndInvalidate()
    }

    @Test func `US-52 sixteen redirects are followed, one more fails with -1007`() throws {
        let server = try TestServer { peer in
            while true {
                let request = try peer.readRequest()
                let left = Int(request.target.dropFirst()) ?? 0
                if left > 0 {
                    try peer.respond("302 Found", ["Location: /\(left - 1)"])
                } else {
                    try peer.respond(body: "end")
                }
            }
        }
        let session = URLSession(configuration: .default)
        for (count, expected) in [(16, 200), (17, -1007)] {
            let done = Box<Int?>(nil)
            session.dataTask(with: server.url("/\(count)")) { _, response, error in
                done.value =
                    (error as? URLError)?.errorCode ?? (response as? HTTPURLResponse)?.statusCode ?? 0
            }.resume()
            #expect(try waitFor("the end") { done.value } == expected)
        }
        session.finishTasksAndInvalidate()
    }

    @Test func `US-53 currentRequest shows a canonical request, and no call is made for it`() throws {
        let server = try echoServer()
        let notes = Notes()
        let session = URLSession(configuration: .default, delegate: notes, delegateQueue: nil)
        let url = try #require(URL(string: "HTTP://127.0.0.1:\(server.port)"))
        let task = session.dataTask(with: url)
        task.resume()
        try waitFor("the end") { notes.completed == 1 ? () : nil }
        #expect(notes.calls == ["response 200", "data", "complete"])
        #expect(task.originalRequest?.url == url)
        #expect(task.currentRequest?.url == server.url("/"))
        session.invalidateAndCancel()
    }
}
