import Rondo
import RondoTestSupport
import Testing

@Suite(.timeLimit(.minutes(2)), .leavesNoConnections) struct UploadTaskTests {
    /// Answers each request with its body; one without a credential by 401, if it is told to.
    private func bodyServer(asksForCredential: Bool = false) throws -> TestServer {
        try TestServer { peer in
            while true {
                let request = try peer.readRequest()
                if asksForCredential, request.value("Authorization") == nil {
                    try peer.respond(
                        "401 Unauthorized", ["WWW-Authenticate: Basic realm=\"r\""], body: "who?")
                } else {
                    try peer.respond(body: String(decoding: request.body, as: UTF8.self))
                }
            }
        }
    }

    private func post(_ server: TestServer) -> URLRequest {
        var request = URLRequest(url: server.url("/upload"))
        request.httpMethod = "POST"
        return request
    }

    /// Resumes the task of `make`, and returns what its handler gets: content, status and code of the error.
    private func result(
        _ make: (@escaping @Sendable (Data?, URLResponse?, (any Error)?) -> Void) -> URLSessionUploadTask
    ) throws -> (String, Int, URLError.Code?, URLSessionUploadTask) {
        let (found, done) = (Box<(String, Int, URLError.Code?)>(("", 0, nil)), Latch())
        let task = make { data, response, error in
            found.value = (
                String(decoding: data ?? Data(), as: UTF8.self),
                (response as? HTTPURLResponse)?.statusCode ?? 0, (error as? URLError)?.code
            )
            done.open()
        }
        task.resume()
        try done.wait()
        return (found.value.0, found.value.1, found.value.2, task)
    }

    @Test func `US-59 data replaces the request's body, and is sent with its length`() throws {
        let server = try bodyServer()
        let session = URLSession(configuration: .default)
        var request = post(server)
        request.httpBody = Data("not this".utf8)
        let (text, status, error, task) = try result {
            session.uploadTask(with: request, from: Data("this".utf8), completionHandler: $0)
        }
        #expect(text == "this" && status == 200 && error == nil)
        #expect(server.requests.map { $0.value("Content-Length") } == ["4"])
        #expect(task.countOfBytesSent == 4)
        #expect(task.countOfBytesExpectedToSend == 4)
        #expect(task.countOfBytesReceived == 4)
        #expect(task.originalRequest?.httpBody == Data("not this".utf8))
        let nothing = try result { session.uploadTask(with: request, from: nil, completionHandler: $0) }
        #expect(nothing.0 == "" && nothing.1 == 200 && nothing.3.countOfBytesExpectedToSend == 0)
    }

    @Test func `US-59 a file is sent as it is read, with its length, and progress is reported`() throws {
        let folder = try Folder()
        let content = Data((0..<700_000).map { UInt8(ascii: "a") + UInt8($0 % 26) })
        let file = try folder.file(content)
        let server = try bodyServer()
        let notes = TransferNotes()
        let session = URLSession(configuration: .default, delegate: notes, delegateQueue: nil)
        let (text, _, error, task) = try result {
            session.uploadTask(with: post(server), fromFile: file, completionHandler: $0)
        }
        #expect(error == nil)
        #expect(Data(text.utf8) == content)
        #expect(server.requests.first?.value("Content-Length") == "700000")
        #expect(server.requests.first?.value("Transfer-Encoding") == nil)
        #expect(notes.calls == ["sent"])
        #expect(notes.sent == [700_000, 700_000, 700_000])
        #expect(task.countOfBytesSent == 700_000)
        #expect(task.countOfBytesExpectedToSend == 700_000)
        session.uploadTask(with: post(server), fromFile: file).resume()
        try notes.waitForEnds()
        #expect(notes.calls == ["sent", "response 200", "data", "complete"])
    }

    @Test func `US-59 a file that must be sent again is read from its start`() throws {
        let folder = try Folder()
        let content = Data(repeating: UInt8(ascii: "x"), count: 400_000)
        let file = try folder.file(content)
        let server = try bodyServer(asksForCredential: true)
        let notes = TransferNotes()
        let session = URLSession(configuration: .default, delegate: notes, delegateQueue: nil)
        let (text, status, error, _) = try result {
            session.uploadTask(with: post(server), fromFile: file, completionHandler: $0)
        }
        #expect(error == nil && status == 200)
        #expect(text.utf8.count == 400_000)
        #expect(server.requests.map(\.body.count) == [400_000, 400_000])
        // No stream is asked for.
        #expect(notes.calls == ["sent"])
    }

    @Test func `US-59 a file that cannot be read fails with its own code`() throws {
        let folder = try Folder()
        let server = try bodyServer()
        let session = URLSession(configuration: .default)
        var cases = [
            (folder.url.appendingPathComponent("missing"), URLError.Code.fileDoesNotExist),
            (folder.url, .fileIsDirectory),
        ]
        // Nothing is unreadable for root.
        if geteuid() != 0 {
            let file = try folder.file(Data("x".utf8))
            chmod(file.path, 0)
            cases.append((file, .noPermissionsToReadFile))
        }
        for (file, code) in cases {
            let (_, status, error, task) = try result {
                session.uploadTask(with: post(server), fromFile: file, completionHandler: $0)
            }
            #expect(status == 0 && error == code)
            #expect((task.error as? URLError)?.code == code)
        }
        #expect(server.accepted == 0)
    }

    @Test func `US-59 a file that has shrunk fails with -1021, and bytes that are appended are not sent`()
        throws
    {
        let folder = try Folder()
        let file = try folder.file(Data())
        let changes = Box<@Sendable () -> Void>({})
        let server = try TestServer { peer in
            let head = try peer.readHead()
            changes.value()
            var left = Int(head.value("Content-Length") ?? "") ?? 0
            while left > 0 { left -= try peer.readBytes(min(left, 65_536)).count }
            try peer.respond(body: "all")
        }
        let session = URLSession(configuration: .default)
        // More than the sockets take before the server has read the head.
        truncate(file.path, 64 << 20)
        changes.value = { truncate(file.path, 63 << 20) }
        let shrunk = try result {
            session.uploadTask(with: post(server), fromFile: file, completionHandler: $0)
        }
        #expect(shrunk.2 == .requestBodyStreamExhausted)
        truncate(file.path, 32 << 20)
        changes.value = { truncate(file.path, 33 << 20) }
        let grown = try result {
            session.uploadTask(with: post(server), fromFile: file, completionHandler: $0)
        }
        #expect(grown.0 == "all" && grown.2 == nil)
        #expect(grown.3.countOfBytesSent == 32 << 20)
    }

    @Test func `US-59 a file of any size takes little memory`() throws {
        let folder = try Folder()
        let file = try folder.file(Data())
        truncate(file.path, 256 << 20)
        let most = Box(0)
        let server = try TestServer { peer in
            let head = try peer.readHead()
            var left = Int(head.value("Content-Length") ?? "") ?? 0
            var next = left
            while left > 0 {
                left -= try peer.readBytes(min(left, 65_536)).count
                guard left < next else { continue }
                most.value = max(most.value, try memoryInUse())
                next -= 16 << 20
            }
            try peer.respond(body: "all")
        }
        let session = URLSession(configuration: .default)
        let before = try memoryInUse()
        let (text, _, error, _) = try result {
            session.uploadTask(with: post(server), fromFile: file, completionHandler: $0)
        }
        #expect(text == "all" && error == nil)
        #expect(most.value > 0 && most.value - before < 30 << 20)
    }

    @Test func `US-60 the delegate is asked for a stream before each sending, and the request's is not used`()
        throws
    {
        let server = try bodyServer(asksForCredential: true)
        let notes = TransferNotes(stream: { InputStream(data: Data("given".utf8)) })
        let session = URLSession(configuration: .default, delegate: notes, delegateQueue: nil)
        var request = post(server)
        request.httpBodyStream = InputStream(data: Data("not this".utf8))
        let task = session.uploadTask(withStreamedRequest: request)
        task.resume()
        try notes.waitForEnds()
        #expect(
            notes.calls == ["stream", "sent", "stream", "sent", "response 200", "data", "complete"])
        #expect(server.requests.map { String(decoding: $0.body, as: UTF8.self) } == ["given", "given"])
        #expect(server.requests.first?.value("Transfer-Encoding") == "chunked")
        #expect(task.countOfBytesExpectedToSend == -1)
        #expect(task.countOfBytesSent == 5)
    }

    @Test func `US-60 a Content-Length of the request is sent as the length of the stream`() throws {
        let server = try bodyServer()
        let notes = TransferNotes(stream: { InputStream(data: Data("given".utf8)) })
        let session = URLSession(configuration: .default, delegate: notes, delegateQueue: nil)
        var request = post(server)
        request.setValue("5", forHTTPHeaderField: "Content-Length")
        let task = session.uploadTask(withStreamedRequest: request)
        #expect(task.countOfBytesExpectedToSend == 5)
        task.resume()
        try notes.waitForEnds()
        #expect(notes.calls == ["stream", "sent", "response 200", "data", "complete"])
        #expect(server.requests.first?.value("Content-Length") == "5")
    }

    @Test func `US-60 no stream, or no method to ask, fails with -1021`() throws {
        let server = try bodyServer()
        let (notes, others) = (TransferNotes(), Notes())
        let session = URLSession(configuration: .default, delegate: notes, delegateQueue: nil)
        session.uploadTask(withStreamedRequest: post(server)).resume()
        try notes.waitForEnds()
        #expect(notes.calls == ["stream", "complete -1021"])
        let other = URLSession(configuration: .default, delegate: others, delegateQueue: nil)
        other.uploadTask(withStreamedRequest: post(server)).resume()
        try waitFor("the end") { others.completed == 1 ? () : nil }
        #expect(others.calls == ["complete -1021"])
        #expect(server.requests.isEmpty)
    }

    @Test func `US-61 an upload gives no resume data, and a task made from resume data fails`() throws {
        let server = try TestServer { peer in
            _ = try peer.readRequest()
            peer.waitForEnd()
        }
        let session = URLSession(configuration: .default)
        let failed = try result {
            session.uploadTask(withResumeData: Data("data".utf8), completionHandler: $0)
        }
        #expect(failed.2 == .unsupportedURL)
        let answers = Box<[Data?]>([])
        let task = session.uploadTask(with: post(server), from: Data("x".utf8))
        task.resume()
        try waitFor("the request") { server.requests.isEmpty ? nil : () }
        task.cancel(byProducingResumeData: { answers.value.append($0) })
        try waitFor("the answer") { answers.value.isEmpty ? nil : () }
        #expect(answers.value == [nil])
        try waitFor("the end") { task.state == .completed ? () : nil }
        #expect((task.error as? URLError)?.code == .cancelled)
    }

    @Test func `US-54 a file is sent again if a redirect keeps the body, and not otherwise`() throws {
        let folder = try Folder()
        let file = try folder.file(Data("content".utf8))
        let server = try TestServer { peer in
            while true {
                let request = try peer.readRequest()
                switch request.target {
                case "/keeps": try peer.respond("307 Temporary Redirect", ["Location: /there"])
                case "/drops": try peer.respond("303 See Other", ["Location: /there"])
                default:
                    try peer.respond(
                        body: "\(request.method) " + String(decoding: request.body, as: UTF8.self))
                }
            }
        }
        let session = URLSession(configuration: .default)
        for (target, answer) in [("/keeps", "POST content"), ("/drops", "GET ")] {
            var request = URLRequest(url: server.url(target))
            request.httpMethod = "POST"
            let (text, _, error, _) = try result {
                session.uploadTask(with: request, fromFile: file, completionHandler: $0)
            }
            #expect(text == answer && error == nil)
        }
    }
}
