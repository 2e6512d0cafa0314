import Rondo
import RondoTestSupport
import Testing

@Suite(.timeLimit(.minutes(2)), .leavesNoConnections) struct ResumedDownloadTests {
    private let notes = TransferNotes()
    private var session: URLSession {
        URLSession(configuration: .default, delegate: notes, delegateQueue: nil)
    }

    /// The resume data of a download that was cancelled after 100,000 bytes.
    private func cancelled(_ server: RangeServer, _ session: URLSession) throws -> Data? {
        server.mode.value = .stops(at: 100_000)
        let (answers, ends) = (Box<[Data?]>([]), notes.calls.count { $0.hasPrefix("complete") })
        let written = notes.written[0]
        var request = URLRequest(url: server.url)
        request.setValue("mine", forHTTPHeaderField: "X-Field")
        let task = session.downloadTask(with: request)
        task.resume()
        try waitFor("the bytes") { notes.written[0] == written + 100_000 ? () : nil }
        task.cancel(byProducingResumeData: { answers.value.append($0) })
        try notes.waitForEnds(ends + 1)
        try #require(answers.value.count == 1)
        #expect((task.error as? URLError)?.code == .cancelled)
        #expect((task.error as? URLError)?.downloadTaskResumeData == answers.value[0])
        return answers.value[0]
    }

    @Test func `US-64 a cancelled download continues where it has stopped`() throws {
        let server = try RangeServer(.continues)
        let before = downloadFiles()
        let session = self.session
        let data = try #require(try cancelled(server, session))
        #expect(downloadFiles().subtracting(before).count == 1)
        server.mode.value = .continues
        let task = session.downloadTask(withResumeData: data)
        task.resume()
        try notes.waitForEnds(2)
        #expect(
            notes.calls == ["wrote", "complete -999", "resumed 100000/300000", "wrote", "file", "complete"])
        #expect(notes.content == RangeServer.body)
        #expect(notes.written == [300_000, 300_000, 300_000])
        #expect(server.requests.map { $0.value("Range") } == [nil, "bytes=100000-"])
        #expect(server.requests.last?.value("If-Range") == "\"a\"")
        #expect(server.requests.last?.value("X-Field") == "mine")
        #expect(task.originalRequest?.url == server.url)
        #expect(downloadFiles() == before)
    }

    @Test func `US-64 data of earlier versions, with the fields beside the resumption, are read`() throws {
        let server = try RangeServer(.continues)
        let data = try #require(try cancelled(server, session))
        let decoded = try PropertyListSerialization.propertyList(from: data, format: nil)
        var list = try #require(decoded as? [String: Any])
        var resumption = try #require(list["resumption"] as? [String: Any])
        list["fields"] = resumption.removeValue(forKey: "fields")
        #expect(list["fields"] != nil)
        list["resumption"] = resumption
        let earlier = try PropertyListSerialization.data(fromPropertyList: list, format: .binary, options: 0)
        server.mode.value = .continues
        session.downloadTask(withResumeData: earlier).resume()
        try notes.waitForEnds(2)
        #expect(notes.content == RangeServer.body)
        #expect(server.requests.last?.value("Range") == "bytes=100000-")
        #expect(server.requests.last?.value("X-Field") == "mine")
    }

    @Test func `US-64 a resumed download continues by itself if its connection is lost`() throws {
        let server = try RangeServer(.continues)
        let session = self.session
        let data = try #require(try cancelled(server, session))
        server.mode.value = .breaksOnce(at: 200_000)
        session.downloadTask(withResumeData: data).resume()
        try notes.waitForEnds(2)
        #expect(
            notes.calls == ["wrote", "complete -999", "resumed 100000/300000", "wrote", "file", "complete"])
        #expect(notes.content == RangeServer.body)
        #expect(
            server.requests.map { $0.value("Range") } == [nil, "bytes=100000-", "bytes=200000-"])
    }

    @Test
    func `US-63 a download that has failed is resumed if it is cancelled before it has told of its end`()
        throws
    {
        let hasEnded = Latch()
        let server = try TestServer { peer in
            guard try peer.readRequest().value("Range") != nil else {
                try peer.send("HTTP/1.1 200 OK\r\nContent-Length: 300000\r\nETag: \"a\"\r\n\r\n")
                return try peer.send(Array(RangeServer.body[..<100_000]))
            }
            if peer.number == 1 {
                // The load fails at this, and closes the connection.
                try peer.send("HTTP/1.1 503 Busy\r\nContent-Length: 1\r\n\r\n")
                peer.waitForEnd()
                return hasEnded.open()
            }
            try peer.send(
                "HTTP/1.1 206 Rest\r\nContent-Range: bytes 100000-299999/300000\r\nETag: \"a\"\r\n"
                    + "Content-Length: 200000\r\n\r\n")
            try peer.send(Array(RangeServer.body[100_000...]))
            peer.waitForEnd()
        }
        let (before, queue, answers) = (downloadFiles(), OperationQueue(), Box<[Data?]>([]))
        queue.maxConcurrentOperationCount = 1
        queue.isSuspended = true
        let session = URLSession(configuration: .default, delegate: notes, delegateQueue: queue)
        let task = session.downloadTask(with: server.url())
        task.resume()
        try hasEnded.wait()
        try RunLoop.loader.waitUntilAsleep()
        task.cancel(byProducingResumeData: { answers.value.append($0) })
        queue.isSuspended = false
        try notes.waitForEnds()
        #expect(notes.calls == ["complete -999"])
        #expect(answers.value.count == 1)
        let data = try #require(answers.value.first.flatMap { $0 })
        #expect((task.error as? URLError)?.downloadTaskResumeData == data)
        session.downloadTask(withResumeData: data).resume()
        try notes.waitForEnds(2)
        #expect(notes.content == RangeServer.body)
        #expect(downloadFiles() == before)
    }

    @Test func `US-63 a download with a Range of the program's own is not resumed`() throws {
        let server = try RangeServer(.stops(at: 100_000))
        let before = downloadFiles()
        var request = URLRequest(url: server.url)
        request.setValue("bytes=50-", forHTTPHeaderField: "Range")
        let task = session.downloadTask(with: request)
        task.resume()
        try waitFor("the bytes") { notes.written[1] == 100_000 ? () : nil }
        let answers = Box<[Data?]>([])
        task.cancel(byProducingResumeData: { answers.value.append($0) })
        try notes.waitForEnds()
        #expect(answers.value == [nil])
        #expect(downloadFiles() == before)
    }

    @Test
    func `US-64 UC-33 what is meant for the first origin is not sent to the one that redirects have led to`()
        throws
    {
        let server = try RangeServer(.stops(at: 100_000))
        let target = server.url.absoluteString
        let first = try TestServer { peer in
            _ = try peer.readRequest()
            try peer.respond("302 Found", ["Location: \(target)", "Connection: close"])
        }
        let configuration = URLSessionConfiguration.default
        configuration.httpAdditionalHeaders = ["Authorization": "Bearer secret", "X-Own": "1"]
        let session = URLSession(configuration: configuration, delegate: notes, delegateQueue: nil)
        let answers = Box<[Data?]>([])
        func interrupt(_ task: URLSessionDownloadTask, ends: Int) throws -> Data {
            let written = notes.written[0]
            task.resume()
            try waitFor("the bytes") { notes.written[0] == written + 100_000 ? () : nil }
            task.cancel(byProducingResumeData: { answers.value.append($0) })
            try notes.waitForEnds(ends)
            return try #require(answers.value.last ?? nil)
        }
        let before = downloadFiles()
        var data = try interrupt(session.downloadTask(with: first.url("/")), ends: 1)
        // The next download has to begin anew, at the other origin, and is interrupted as well.
        for file in downloadFiles().subtracting(before) { unlink(NSTemporaryDirectory() + "/" + file) }
        data = try interrupt(session.downloadTask(withResumeData: data), ends: 2)
        server.mode.value = .continues
        session.downloadTask(withResumeData: data).resume()
        try notes.waitForEnds(3)
        #expect(notes.content == RangeServer.body)
        #expect(first.requests.map { $0.value("Authorization") } == ["Bearer secret"])
        #expect(server.requests.map { $0.value("Authorization") } == [nil, nil, nil])
        #expect(server.requests.map { $0.value("X-Own") } == ["1", "1", "1"])
        #expect(server.requests.map { $0.value("Range") } == [nil, nil, "bytes=100000-"])
        session.invalidateAndCancel()
    }

    @Test func `US-12 US-64 a request without cookies has none when its download is resumed`() throws {
        let server = try RangeServer(.stops(at: 100_000))
        let configuration = URLSessionConfiguration.ephemeral
        let cookie = try #require(
            HTTPCookie(properties: [.name: "name", .value: "1", .domain: "127.0.0.1", .path: "/"]))
        configuration.httpCookieStorage?.setCookie(cookie)
        let session = URLSession(configuration: configuration, delegate: notes, delegateQueue: nil)
        var request = URLRequest(url: server.url)
        request.httpShouldHandleCookies = false
        let task = session.downloadTask(with: request)
        task.resume()
        try waitFor("the bytes") { notes.written[0] == 100_000 ? () : nil }
        let answers = Box<[Data?]>([])
        task.cancel(byProducingResumeData: { answers.value.append($0) })
        try notes.waitForEnds(1)
        let data = try #require(answers.value.first ?? nil)
        server.mode.value = .continues
        session.downloadTask(withResumeData: data).resume()
        try notes.waitForEnds(2)
        #expect(notes.content == RangeServer.body)
        #expect(server.requests.map { $0.value("Range") } == [nil, "bytes=100000-"])
        #expect(server.requests.map { $0.value("Cookie") } == [nil, nil])
        session.invalidateAndCancel()
    }

    @Test func `US-64 the session that resumes adds the fields of its own configuration`() throws {
        let server = try RangeServer(.continues)
        func session(_ token: String) -> URLSession {
            let configuration = URLSessionConfiguration.default
            configuration.httpAdditionalHeaders = ["Authorization": token]
            return URLSession(configuration: configuration, delegate: notes, delegateQueue: nil)
        }
        let data = try #require(try cancelled(server, session("old")))
        server.mode.value = .continues
        session("new").downloadTask(withResumeData: data).resume()
        try notes.waitForEnds(2)
        #expect(notes.content == RangeServer.body)
        #expect(server.requests.map { $0.value("Authorization") } == ["old", "new"])
        #expect(server.requests.last?.value("X-Field") == "mine")
    }

    @Test func `US-64 a rest whose head says nothing of the file can be interrupted and resumed, too`() throws
    {
        let date = "Last-Modified: Mon, 01 Jan 2024 00:00:00 GMT"
        let server = try TestServer { peer in
            let request = try peer.readRequest()
            let first = request.value("Range").flatMap { Int($0.dropFirst(6).dropLast()) }
            let head =
                first.map { ["206 Partial Content", "Content-Range: bytes \($0)-299/300"] }
                ?? ["200 OK", "Date: Tue, 02 Jan 2024 00:00:00 GMT", date]
            let length = "Content-Length: \(300 - (first ?? 0))"
            try peer.send("HTTP/1.1 \((head + [length]).joined(separator: "\r\n"))\r\n\r\n")
            try peer.send(Array(RangeServer.body[(first ?? 0)..<min((first ?? 0) + 100, 300)]))
            peer.waitForEnd()
        }
        let session = self.session
        var data: Data?
        for end in [100, 200] as [Int64] {
            let task =
                data.map { session.downloadTask(withResumeData: $0) }
                ?? session.downloadTask(with: server.url("/"))
            task.resume()
            try waitFor("the bytes") { notes.written[1] == end ? () : nil }
            let answers = Box<[Data?]>([])
            task.cancel(byProducingResumeData: { answers.value.append($0) })
            try notes.waitForEnds(Int(end / 100))
            data = try #require(answers.value.first ?? nil)
        }
        session.downloadTask(withResumeData: try #require(data)).resume()
        try notes.waitForEnds(3)
        #expect(notes.content == RangeServer.body.prefix(300))
        #expect(server.requests.map { $0.value("Range") } == [nil, "bytes=100-", "bytes=200-"])
        #expect(server.requests.last?.value("If-Range") == String(date.dropFirst("Last-Modified: ".count)))
    }

    @Test func `US-63 the async form returns the resume data too`() async throws {
        let session = URLSession(configuration: .default)
        let task = session.downloadTask(with: URL(fileURLWithPath: "/"))
        #expect(await task.cancelByProducingResumeData() == nil)
        let upload = session.uploadTask(with: URLRequest(url: URL(fileURLWithPath: "/")), from: Data())
        #expect(await upload.cancelByProducingResumeData() == nil)
    }

    @Test func `US-64 a completion handler gets the whole of a resumed download`() throws {
        let before = downloadFiles()
        let server = try RangeServer(.continues)
        let data = try #require(try cancelled(server, session))
        server.mode.value = .continues
        let found = Box<Data?>(nil)
        URLSession(configuration: .default).downloadTask(withResumeData: data) { file, _, _ in
            found.value = file.flatMap { try? Data(contentsOf: $0) }
        }.resume()
        #expect(try waitFor("the file") { found.value } == RangeServer.body)
        try waitFor("the file to go, when the handler has returned") { downloadFiles() == before ? () : nil }
    }

    @Test func `US-64 a download starts again if the file has changed or the rest cannot be had`() throws {
        let server = try RangeServer(.continues)
        let before = downloadFiles()
        for mode in [RangeServer.Mode.continues, .refuses, .sendsWrongPart] {
            server.fields.value = ["ETag: \"a\""]
            let notes = TransferNotes()
            let data = try #require(try cancelled(server, session))
            server.mode.value = mode
            if case .continues = mode { server.fields.value = ["ETag: \"b\""] }
            let session = URLSession(configuration: .default, delegate: notes, delegateQueue: nil)
            session.downloadTask(withResumeData: data).resume()
            try notes.waitForEnds()
            #expect(notes.calls == ["wrote", "file", "complete"])
            #expect(notes.content == RangeServer.body)
            #expect(notes.written == [300_000, 300_000, 300_000])
        }
        #expect(downloadFiles() == before)
        #expect(
            server.requests.map { $0.value("Range") == nil } == [
                true, false, true, false, true, true, false, true,
            ])
    }

    @Test func `US-64 the same data resume a download again after the server has answered with an error`()
        throws
    {
        let server = try RangeServer(.continues)
        let before = downloadFiles()
        let session = self.session
        let data = try #require(try cancelled(server, session))
        server.mode.value = .breaks(at: 0)
        let task = session.downloadTask(withResumeData: data)
        task.resume()
        try notes.waitForEnds(2)
        #expect((task.response as? HTTPURLResponse)?.statusCode == 503)
        #expect(task.error == nil)
        server.mode.value = .continues
        session.downloadTask(withResumeData: data).resume()
        try notes.waitForEnds(3)
        #expect(notes.calls.suffix(4) == ["resumed 100000/300000", "wrote", "file", "complete"])
        #expect(notes.content == RangeServer.body)
        #expect(downloadFiles() == before)
    }

    /// Cancels a download once it has `count` bytes, and returns what resumes it.
    private func resumeData(after count: Int64, of server: TestServer, in session: URLSession) throws -> Data
    {
        let data = Box<Data?>(nil)
        let task = session.downloadTask(with: server.url())
        task.resume()
        try waitFor("the bytes") { notes.written[0] == count ? () : nil }
        task.cancel(byProducingResumeData: { data.value = $0 })
        try notes.waitForEnds()
        return try #require(data.value)
    }

    @Test func `US-64 a rest that is announced as longer than its range is not taken`() throws {
        let isWhole = Box(false)
        let server = try TestServer { peer in
            while true {
                let request = try peer.readRequest()
                if request.value("Range") != nil {
                    return try peer.send(
                        "HTTP/1.1 206 Part\r\nETag: \"a\"\r\nContent-Range: bytes 5-9/*\r\n"
                            + "Content-Length: 9223372036854775807, 9223372036854775807\r\n\r\nfghij")
                }
                if isWhole.value {
                    try peer.respond("200 OK", ["ETag: \"a\""], body: "abcdefghij")
                } else {
                    // Without an announced length, which the rest could contradict.
                    try peer.send(
                        "HTTP/1.1 200 OK\r\nETag: \"a\"\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabcde\r\n")
                    return peer.waitForEnd()
                }
            }
        }
        let session = session
        let data = try resumeData(after: 5, of: server, in: session)
        isWhole.value = true
        session.downloadTask(withResumeData: data).resume()
        try notes.waitForEnds(2)
        #expect(notes.calls == ["wrote", "complete -999", "wrote", "file", "complete"])
        #expect(notes.content == Data("abcdefghij".utf8))
        #expect(server.requests.map { $0.value("Range") } == [nil, "bytes=5-", nil])
    }

    @Test func `US-64 a rest that ends before the length that it names fails, and is resumed`() throws {
        let server = try TestServer { peer in
            let chunked = "ETag: \"a\"\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
            switch try peer.readRequest().value("Range") {
            case nil: try peer.send("HTTP/1.1 200 OK\r\n\(chunked)5\r\nabcde\r\n")
            case "bytes=5-":
                try peer.send(
                    "HTTP/1.1 206 Part\r\nContent-Range: bytes 5-9/10\r\n\(chunked)2\r\nfg\r\n0\r\n\r\n")
            default: try peer.respond("206 Part", ["Content-Range: bytes 7-9/10"], body: "hij")
            }
            peer.waitForEnd()
        }
        let session = session
        let data = try resumeData(after: 5, of: server, in: session)
        let next = session.downloadTask(withResumeData: data)
        next.resume()
        try notes.waitForEnds(2)
        #expect(notes.calls == ["wrote", "complete -999", "resumed 5/10", "wrote", "complete -1005"])
        let rest = try #require((next.error as? URLError)?.downloadTaskResumeData)
        session.downloadTask(withResumeData: rest).resume()
        try notes.waitForEnds(3)
        #expect(notes.content == Data("abcdefghij".utf8))
        #expect(server.requests.map { $0.value("Range") } == [nil, "bytes=5-", "bytes=7-"])
    }

    @Test func `US-63 there are no resume data without a usable validator`() throws {
        let before = downloadFiles()
        let date = ["Last-Modified: Tue, 01 Jul 2025 10:00:00 GMT", "Date: Tue, 01 Jul 2025 11:00:00 GMT"]
        let unsound = [
            [], ["ETag: W/\"a\""], ["ETag: \"a\"", "Accept-Ranges: none"], ["ETag: W/\"a\""] + date,
            // Resume data hold characters of ASCII alone.
            ["ETag: \"\u{E9}\""], ["ETag: \"a\tb\""],
            ["ETag: W/a"], ["ETag:"], ["ETag: Tue, 01 Jul 2025 10:00:00 GMT"], [date[0]],
            [date[0], "Date: Tue, 01 Jul 2025 10:00:00 GMT"],
        ]
        for fields in unsound {
            let server = try RangeServer(.continues, fields: fields)
            #expect(try cancelled(server, session) == nil, "\(fields)")
        }
        #expect(downloadFiles() == before)
        let server = try RangeServer(.continues, fields: date)
        let data = try #require(try cancelled(server, session))
        server.mode.value = .continues
        let ends = notes.calls.count { $0.hasPrefix("complete") }
        session.downloadTask(withResumeData: data).resume()
        try notes.waitForEnds(ends + 1)
        #expect(server.requests.last?.value("If-Range") == "Tue, 01 Jul 2025 10:00:00 GMT")
        #expect(notes.content == RangeServer.body)
    }

    @Test(arguments: ["abc", "\"abc", "a-1_2:3", "5f9=="])
    func `US-63 an ETag without quotes is sent as received, and the response must repeat it`(
        _ tag: String
    ) throws {
        let before = downloadFiles()
        let server = try RangeServer(.continues, fields: ["ETag: \(tag)", "Last-Modified: today"])
        let data = try #require(try cancelled(server, session))
        server.mode.value = .continues
        var ends = notes.calls.count { $0.hasPrefix("complete") }
        session.downloadTask(withResumeData: data).resume()
        ends += 1
        try notes.waitForEnds(ends)
        #expect(server.requests.last?.value("If-Range") == tag)
        #expect(notes.calls.contains { $0.hasPrefix("resumed") })
        #expect(notes.content == RangeServer.body)
        // Another file by now: the server sends the whole, which is told of as such.
        let next = try #require(try cancelled(server, session))
        server.mode.value = .continues
        server.fields.value = ["ETag: other"]
        let resumed = notes.calls.count { $0.hasPrefix("resumed") }
        ends = notes.calls.count { $0.hasPrefix("complete") }
        session.downloadTask(withResumeData: next).resume()
        try notes.waitForEnds(ends + 1)
        #expect(notes.calls.count { $0.hasPrefix("resumed") } == resumed)
        #expect(notes.content == RangeServer.body)
        #expect(downloadFiles() == before)
    }

    @Test func `US-63 the handler gets nil, once, if no byte or every byte has arrived`() throws {
        let server = try RangeServer(.continues)
        let (answers, session) = (Box<[Data?]>([]), self.session)
        let never = session.downloadTask(with: server.url)
        never.cancel(byProducingResumeData: { answers.value.append($0) })
        never.cancel(byProducingResumeData: { answers.value.append($0) })
        try waitFor("the answers") { answers.value.count == 2 ? () : nil }
        try notes.waitForEnds()
        #expect(answers.value == [nil, nil])
        let whole = session.downloadTask(with: server.url)
        whole.resume()
        try notes.waitForEnds(2)
        whole.cancel(byProducingResumeData: { answers.value.append($0) })
        try waitFor("the answer") { answers.value.count == 3 ? () : nil }
        #expect(answers.value == [nil, nil, nil])
        #expect(notes.calls == ["complete -999", "wrote", "file", "complete"])
    }

    @Test func `US-63 cancel() removes the partial file`() throws {
        let server = try RangeServer(.stops(at: 100_000))
        let before = downloadFiles()
        let task = session.downloadTask(with: server.url)
        task.resume()
        try waitFor("the bytes") { notes.written[1] == 100_000 ? () : nil }
        task.cancel()
        try notes.waitForEnds()
        #expect(notes.errors.map { $0.downloadTaskResumeData } == [nil])
        try waitFor("the file's end") { downloadFiles() == before ? () : nil }
    }

    @Test func `US-63 a failed download has resume data in its error, until it succeeds`() throws {
        let server = try RangeServer(.breaks(at: 100_000))
        let before = downloadFiles()
        let session = self.session
        session.downloadTask(with: server.url).resume()
        try notes.waitForEnds()
        let error = try #require(notes.errors.first)
        #expect(error.code == .networkConnectionLost)
        #expect(error.failingURL == server.url)
        let first = try #require(error.userInfo[NSURLSessionDownloadTaskResumeData] as? Data)
        #expect(error.downloadTaskResumeData == first)
        // Not even a response.
        server.mode.value = .isMute
        session.downloadTask(withResumeData: first).resume()
        try notes.waitForEnds(2)
        let second = try #require(notes.errors.last?.downloadTaskResumeData)
        #expect(downloadFiles().subtracting(before).count == 1)
        server.mode.value = .continues
        session.downloadTask(withResumeData: second).resume()
        try notes.waitForEnds(3)
        #expect(
            notes.calls == [
                "wrote", "complete -1005", "complete -1005", "resumed 100000/300000", "wrote", "file",
                "complete",
            ])
        #expect(notes.content == RangeServer.body)
        #expect(downloadFiles() == before)
    }

    @Test func `US-63 a completion handler gets the resume data in its error`() throws {
        let server = try RangeServer(.breaks(at: 100_000))
        let found = Box<Data?>(nil)
        let session = self.session
        session.downloadTask(with: server.url) { _, _, error in
            found.value = (error as? URLError)?.downloadTaskResumeData
        }.resume()
        let data = try waitFor("the data") { found.value }
        server.mode.value = .continues
        session.downloadTask(withResumeData: data).resume()
        try notes.waitForEnds()
        #expect(notes.calls == ["resumed 100000/300000", "wrote", "file", "complete"])
    }

    @Test func `US-64 unusable resume data fail the task when it is resumed`() throws {
        let session = self.session
        let task = session.downloadTask(withResumeData: Data("no such data".utf8))
        #expect(task.state == .suspended)
        #expect(task.originalRequest == nil)
        task.resume()
        try notes.waitForEnds()
        #expect(notes.calls == ["complete -1002"])
        let found = Box<URLError?>(nil)
        session.downloadTask(withResumeData: Data()) { _, _, error in found.value = error as? URLError }
            .resume()
        #expect(try waitFor("the end") { found.value }.code == .unsupportedURL)
    }

    @Test
    func `US-64 a download starts again without its partial file, and two from the same data do not mix`()
        throws
    {
        let server = try RangeServer(.continues)
        let before = downloadFiles()
        let session = self.session
        let data = try #require(try cancelled(server, session))
        server.mode.value = .continues
        let tasks = (0..<2).map { _ in session.downloadTask(withResumeData: data) }
        for task in tasks { task.resume() }
        try notes.waitForEnds(3)
        #expect(notes.errors.map(\.code) == [.cancelled])
        #expect(tasks.allSatisfy { $0.error == nil })
        #expect(notes.content == RangeServer.body)
        #expect(downloadFiles() == before)
        // It is gone by now.
        session.downloadTask(withResumeData: data).resume()
        try notes.waitForEnds(4)
        #expect(notes.content == RangeServer.body)
        #expect(server.requests.last?.value("Range") == nil)
    }
}
