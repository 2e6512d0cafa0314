import Rondo
import RondoTestSupport
import Testing

@Suite(.timeLimit(.minutes(2)), .leavesNoConnections) struct DataTaskTests {
    @Test func `US-17 a handler is called once, on the session's own serial queue`() throws {
        let server = try echoServer()
        let session = URLSession(configuration: .default)
        let (seen, done) = (Box<[String]>([]), Latch())
        let task = session.dataTask(with: server.url("/a")) { data, response, error in
            let queue = OperationQueue.current
            seen.value.append(
                "\(String(decoding: data ?? Data(), as: UTF8.self)) "
                    + "\((response as? HTTPURLResponse)?.statusCode ?? 0) \(error == nil) \(queue === session.delegateQueue)"
            )
            done.open()
        }
        #expect(task.state == .suspended)
        task.resume()
        try done.wait()
        #expect(seen.value == ["GET /a 0 200 true true"])
        #expect(session.delegateQueue.maxConcurrentOperationCount == 1)
        #expect(task.state == .completed)
        #expect(task.error == nil)
        #expect((task.response as? HTTPURLResponse)?.statusCode == 200)
        #expect(task.countOfBytesReceived == 8)
    }

    @Test func `US-41 the calls of a data task come in order, and the last call once`() throws {
        let server = try echoServer()
        let notes = Notes()
        let session = URLSession(configuration: .default, delegate: notes, delegateQueue: nil)
        session.dataTask(with: server.url("/x")).resume()
        try waitFor("the end") { notes.completed == 1 ? () : nil }
        session.finishTasksAndInvalidate()
        try waitFor("the session's end") { notes.calls.last == "invalid" ? () : nil }
        #expect(notes.calls == ["response 200", "data", "complete", "invalid"])
        #expect(notes.text == "GET /x 0")
        #expect(session.delegate == nil)
    }

    @Test func `US-21 on a run loop every call is made on its thread in its mode`() throws {
        let server = try echoServer()
        let calls = try onLoopThread { loop -> [String] in
            let notes = Notes(on: loop)
            let session = URLSession(
                configuration: .default, delegate: notes, runLoop: loop, modes: [.work])
            session.dataTask(with: server.url("/loop")).resume()
            let handled = Box("")
            session.dataTask(with: server.url("/handler")) { data, _, _ in
                handled.value =
                    "\(String(decoding: data ?? Data(), as: UTF8.self)) \(loop.isCurrent) \(loop.currentMode == .work)"
            }.resume()
            #expect(notes.calls.isEmpty, "a call inside resume()")
            let result = loop.runOut(.work)
            #expect(result == .finished)
            session.finishTasksAndInvalidate()
            loop.runOut(.work)
            return notes.calls + Array(notes.places) + [handled.value, "\(session.runLoop === loop)"]
        }
        #expect(
            calls == [
                "response 200", "data", "complete", "invalid", "work", "GET /handler 1 true true", "true",
            ])
    }

    @Test func `US-22 while the loop runs in other modes, the tasks stand still and lose nothing`() throws {
        let server = try echoServer()
        let calls = try onLoopThread { loop -> [[String]] in
            let notes = Notes(on: loop)
            let session = URLSession(
                configuration: .default, delegate: notes, runLoop: loop, modes: [.work])
            session.dataTask(with: server.url("/")).resume()
            loop.runInVain(.other)
            let before = notes.calls
            loop.runOut(.work)
            return [before, notes.calls]
        }
        #expect(calls == [[], ["response 200", "data", "complete"]])
        #expect(server.requests.count == 1)
    }

    @Test func `US-23 a task that was never resumed keeps no mode alive`() throws {
        let result = try onLoopThread { loop -> RunLoop.RunResult in
            let session = URLSession(configuration: .default, delegate: nil, runLoop: loop)
            let task = session.dataTask(with: URL(fileURLWithPath: "/"))
            defer { withExtendedLifetime(task) {} }
            return loop.runOut()
        }
        #expect(result == .finished)
    }

    @Test func `US-24 no call is made inside cancel or invalidation`() throws {
        let calls = try onLoopThread { loop -> [String] in
            let notes = Notes(on: loop)
            let session = URLSession(configuration: .default, delegate: notes, runLoop: loop)
            let task = session.dataTask(with: URL(fileURLWithPath: "/"))
            task.cancel()
            session.invalidateAndCancel()
            #expect(notes.calls.isEmpty)
            loop.runOut()
            return notes.calls
        }
        #expect(calls == ["complete -999", "invalid"])
    }

    @Test func `US-24 no call is made inside resume, suspend or cancel, although data waits for one`() throws
    {
        let server = try echoServer()
        let found = try onLoopThread { loop -> [[String]] in
            let notes = Notes(on: loop) { call, task in if call == "response 200" { task?.suspend() } }
            let session = URLSession(configuration: .ephemeral, delegate: notes, runLoop: loop)
            let task = session.dataTask(with: server.url())
            task.resume()
            var found = [notes.calls]
            loop.run { task.state == .suspended }
            loop.runInVain(for: 0)
            for function in [task.resume, task.suspend, task.resume, task.cancel] {
                function()
                found.append(notes.calls)
            }
            loop.runOut()
            return found + [notes.calls]
        }
        #expect(
            found == [[]] + Array(repeating: ["response 200"], count: 4) + [
                ["response 200", "complete -999"]
            ])
    }

    @Test func `US-35 identifiers count from one, and copy gives the task itself`() {
        let session = URLSession(configuration: .default)
        let tasks = (0..<3).map { _ in session.dataTask(with: URL(fileURLWithPath: "/")) }
        #expect(tasks.map(\.taskIdentifier) == [1, 2, 3])
        #expect(tasks[0].isEqual(tasks[0].copy()))
    }

    @Test func `US-43 the handler gets the error of an unsupported or missing URL`() throws {
        let session = URLSession(configuration: .default)
        var nothing = URLRequest(url: URL(fileURLWithPath: "/"))
        nothing.url = nil
        let impossible = try #require(URL(string: "http://127.0.0.0:999999/"))
        let other = try #require(URL(string: "foobar://127.0.0.1/"))
        for (request, code) in [
            (nothing, URLError.Code.unsupportedURL), (URLRequest(url: other), .unsupportedURL),
            (URLRequest(url: impossible), .badURL),
        ] {
            let (found, done) = (Box<(Bool, URLError.Code?)>((false, nil)), Latch())
            let task = session.dataTask(with: request) { data, response, error in
                found.value = (data == nil && response == nil, (error as? URLError)?.code)
                done.open()
            }
            task.resume()
            try done.wait()
            #expect(found.value.0)
            #expect(found.value.1 == code)
            #expect((task.error as? URLError)?.code == code)
        }
    }

    @Test func `US-45 no data comes before the answer to the response`() throws {
        let server = try echoServer()
        let notes = Notes()
        let answer = Box<(@Sendable (URLSession.ResponseDisposition) -> Void)?>(nil)
        notes.answerResponses { _, handler in answer.value = handler }
        let session = URLSession(configuration: .default, delegate: notes, delegateQueue: nil)
        session.dataTask(with: server.url("/later")).resume()
        let handler = try waitFor("the response") { answer.value }
        #expect(notes.calls == ["response 200"])
        handler(.allow)
        try waitFor("the end") { notes.completed == 1 ? () : nil }
        #expect(notes.calls == ["response 200", "data", "complete"])
        answer.value = nil
    }

    @Test func `US-45 the answer cancel ends the task as cancel() does`() throws {
        let server = try echoServer()
        let notes = Notes()
        notes.answerResponses { _, handler in handler(.cancel) }
        let session = URLSession(configuration: .default, delegate: notes, delegateQueue: nil)
        session.dataTask(with: server.url("/")).resume()
        try waitFor("the end") { notes.completed == 1 ? () : nil }
        #expect(notes.calls == ["response 200", "complete -999"])
    }

    @Test func `US-26 a handler that is released without a call counts as if the method were missing`() throws
    {
        let server = try TestServer.redirecting("/", to: "/there") { _ in "there" }
        let notes = Notes()
        notes.answerResponses { _, _ in }
        notes.answerRedirects { _, _ in }
        let session = URLSession(configuration: .default, delegate: notes, delegateQueue: nil)
        session.dataTask(with: server.url("/")).resume()
        try waitFor("the end") { notes.completed == 1 ? () : nil }
        #expect(notes.calls == ["redirect 302", "response 200", "data", "complete"])
        #expect(notes.text == "there")
    }

    @Test func `US-50 a redirect is followed, changed or refused by the answer`() throws {
        let server = try TestServer.redirecting("/", to: "/there", moved: "moved") { $0.target }
        let elsewhere = server.url("/elsewhere")
        for (answer, calls, text) in [
            (nil, ["redirect 302", "response 302", "data", "complete"], "moved"),
            (URLRequest(url: elsewhere), ["redirect 302", "response 200", "data", "complete"], "/elsewhere"),
        ] as [(URLRequest?, [String], String)] {
            let notes = Notes()
            notes.answerRedirects { _, handler in handler(answer) }
            let session = URLSession(configuration: .default, delegate: notes, delegateQueue: nil)
            session.dataTask(with: server.url("/")).resume()
            try waitFor("the end") { notes.completed == 1 ? () : nil }
            #expect(notes.calls == calls)
            #expect(notes.text == text)
        }
    }

    // MARK: - US-44

    @Test func `US-44 a response that announces more than can be collected fails at once`() throws {
        let server = try TestServer { peer in
            while true {
                let request = try peer.readRequest()
                try peer.send("HTTP/1.1 200 OK\r\nContent-Length: \(1 << 30 | 1)\r\n\r\n")
                if request.method == "HEAD" { continue }
                try peer.send("x")
                return peer.waitForEnd()
            }
        }
        let session = URLSession(configuration: .default)
        let (codes, done) = (Box<[Int]>([]), Latch())
        let note: @Sendable (Data?, URLResponse?, (any Error)?) -> Void = { data, response, error in
            #expect((data == nil) == (error != nil))
            #expect((response as? HTTPURLResponse)?.statusCode == 200)
            codes.value.append((error as? URLError)?.errorCode ?? 0)
            if codes.value.count == 2 { done.open() }
        }
        var request = URLRequest(url: server.url())
        request.httpMethod = "HEAD"
        // It has no body, and so none that is too long.
        session.dataTask(with: request, completionHandler: note).resume()
        try waitFor("the first") { codes.value.count == 1 ? () : nil }
        session.dataTask(with: server.url(), completionHandler: note).resume()
        try done.wait()
        #expect(codes.value == [0, -1103])
        session.invalidateAndCancel()
    }
}
