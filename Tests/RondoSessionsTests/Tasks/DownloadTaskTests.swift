import Rondo
import RondoTestSupport
import Testing

@Suite(.timeLimit(.minutes(2)), .leavesNoConnections) struct DownloadTaskTests {
    @Test func `US-62 the file exists until the call returns, and is deleted afterwards`() throws {
        let server = try RangeServer(.continues)
        let before = downloadFiles()
        let notes = TransferNotes()
        let session = URLSession(configuration: .default, delegate: notes, delegateQueue: nil)
        let task = session.downloadTask(with: server.url)
        task.resume()
        try notes.waitForEnds()
        #expect(notes.calls == ["wrote", "file", "complete"])
        #expect(notes.content == RangeServer.body)
        #expect(notes.file.map { FileManager.default.fileExists(atPath: $0.path) } == false)
        #expect(downloadFiles() == before)
        #expect(task.countOfBytesReceived == 300_000)
        #expect(task.countOfBytesExpectedToReceive == 300_000)
        #expect((task.response as? HTTPURLResponse)?.statusCode == 200)
    }

    @Test func `US-62 a file that was moved in the call stays`() throws {
        let folder = try Folder()
        let server = try RangeServer(.continues)
        let notes = TransferNotes(movingTo: folder.url.appendingPathComponent("kept"))
        let session = URLSession(configuration: .default, delegate: notes, delegateQueue: nil)
        session.downloadTask(with: URLRequest(url: server.url)).resume()
        try notes.waitForEnds()
        #expect(notes.calls == ["wrote", "file", "complete"])
        #expect(try Data(contentsOf: folder.url.appendingPathComponent("kept")) == RangeServer.body)
    }

    @Test func `US-62 a completion handler gets the file, which is deleted when the handler has returned`()
        throws
    {
        let server = try RangeServer(.continues)
        let before = downloadFiles()
        let notes = TransferNotes()
        let session = URLSession(configuration: .default, delegate: notes, delegateQueue: nil)
        let found = Box<(URL?, Data?, Int)>((nil, nil, 0))
        let task = session.downloadTask(with: server.url) { file, response, error in
            let content = file.flatMap { try? Data(contentsOf: $0) }
            found.value = (file, content, error == nil ? (response as? HTTPURLResponse)?.statusCode ?? 0 : -1)
        }
        task.resume()
        try waitFor("the file") { found.value.0 }
        #expect(found.value.1 == RangeServer.body)
        #expect(found.value.2 == 200)
        try waitFor("the file's end") { downloadFiles() == before ? () : nil }
        #expect(notes.calls == [])
    }

    @Test func `US-62 on a run loop a download stands still in other modes`() throws {
        let server = try RangeServer(.continues)
        let calls = try onLoopThread { loop -> [[String]] in
            let notes = TransferNotes()
            let session = URLSession(
                configuration: .default, delegate: notes, runLoop: loop, modes: [.work])
            session.downloadTask(with: server.url).resume()
            loop.runInVain(.other)
            let before = notes.calls
            loop.runOut(.work)
            return [before, notes.calls]
        }
        #expect(calls == [[], ["wrote", "file", "complete"]])
    }

    @Test func `US-42 a download saves the body of a response with an error status`() throws {
        let server = try TestServer { peer in
            _ = try peer.readRequest()
            try peer.respond("404 Not Found", body: "nothing here")
        }
        let notes = TransferNotes()
        let session = URLSession(configuration: .default, delegate: notes, delegateQueue: nil)
        session.downloadTask(with: server.url()).resume()
        try notes.waitForEnds()
        #expect(notes.calls == ["wrote", "file", "complete"])
        #expect(notes.content == Data("nothing here".utf8))
    }

    @Test func `US-65 didWriteData gives the bytes of the piece, so far, and in all`() throws {
        let server = try TestServer { peer in
            let request = try peer.readRequest()
            if request.target == "/chunks" {
                try peer.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n")
            } else {
                try peer.respond(body: "abcde")
            }
        }
        for (target, expected) in [("/", [5, 5, 5]), ("/chunks", [3, 3, -1])] as [(String, [Int64])] {
            let notes = TransferNotes()
            let session = URLSession(configuration: .default, delegate: notes, delegateQueue: nil)
            session.downloadTask(with: server.url(target)).resume()
            try notes.waitForEnds()
            #expect(notes.written == expected)
        }
    }

    @Test func `US-46 a data task becomes a download task, which gets all further calls`() throws {
        let server = try RangeServer(.continues)
        let before = downloadFiles()
        let notes = TransferNotes()
        let session = URLSession(configuration: .default, delegate: notes, delegateQueue: nil)
        let task = session.dataTask(with: server.url)
        task.taskDescription = "becomes a download"
        task.resume()
        try notes.waitForEnds()
        #expect(notes.calls == ["response 200", "became 2 0", "wrote", "file", "complete"])
        #expect(notes.content == RangeServer.body)
        #expect(notes.written == [300_000, 300_000, 300_000])
        #expect(notes.tasks.map(\.taskIdentifier) == [1, 2])
        #expect(notes.tasks.last is URLSessionDownloadTask)
        #expect(task.state == .completed)
        #expect(downloadFiles() == before)
    }

    @Test func `US-46 after becoming a download only the new task can be cancelled and resumed`() throws {
        let server = try RangeServer(.stops(at: 100_000))
        let answers = Box<[Data?]>([])
        let notes = TransferNotes()
        let session = URLSession(configuration: .default, delegate: notes, delegateQueue: nil)
        let task = session.dataTask(with: server.url)
        task.taskDescription = "becomes a download"
        task.resume()
        try waitFor("the bytes") { notes.written[1] == 100_000 ? () : nil }
        let download = try waitFor("the download task") { notes.tasks.last as? URLSessionDownloadTask }
        task.cancel()
        #expect(download.state == .running)
        download.cancel(byProducingResumeData: { answers.value.append($0) })
        try notes.waitForEnds()
        let data = try #require(answers.value.first ?? nil)
        server.mode.value = .continues
        session.downloadTask(withResumeData: data).resume()
        try notes.waitForEnds(2)
        #expect(
            notes.calls == [
                "response 200", "became 2 0", "wrote", "complete -999", "resumed 100000/300000", "wrote",
                "file",
                "complete",
            ])
        #expect(notes.content == RangeServer.body)
    }

    @Test func `US-38 the progress of a task is complete when the task has succeeded`() throws {
        let server = try RangeServer(.stops(at: 100_000))
        let notes = TransferNotes()
        let session = URLSession(configuration: .default, delegate: notes, delegateQueue: nil)
        let task = session.downloadTask(with: server.url)
        let progress = task.progress
        #expect(progress === task.progress)
        #expect(progress.totalUnitCount == -1 && progress.completedUnitCount == 0)
        task.resume()
        try waitFor("the bytes") { notes.written[1] == 100_000 ? () : nil }
        #expect(progress.totalUnitCount == 300_000 && progress.completedUnitCount == 100_000)
        #expect(!progress.isFinished)
        progress.pause()
        // Foundation calls the handlers on a thread of its own.
        try waitFor("suspension") { task.state == .suspended ? () : nil }
        progress.resume()
        try waitFor("its end") { task.state == .running ? () : nil }
        progress.cancel()
        try notes.waitForEnds()
        #expect(notes.calls == ["wrote", "complete -999"])
        #expect(!progress.isFinished)

        server.mode.value = .continues
        let other = session.downloadTask(with: server.url)
        let whole = other.progress
        other.resume()
        try notes.waitForEnds(2)
        #expect(whole.isFinished && whole.totalUnitCount == 300_000)
    }

    @Test
    func `US-38 the progress of an upload counts both directions, and is complete with unknown lengths too`()
        throws
    {
        let server = try TestServer { peer in
            let request = try peer.readRequest()
            try peer.send("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n\(request.body.count)")
        }
        let session = URLSession(configuration: .default)
        let task = session.uploadTask(with: URLRequest(url: server.url()), from: Data(count: 10))
        let progress = task.progress
        task.resume()
        try waitFor("the end") { progress.isFinished ? () : nil }
        #expect(progress.totalUnitCount == 12 && progress.completedUnitCount == 12)
    }

    @Test func `US-38 no length that a server announces is too great for the progress of an upload`() throws {
        let server = try TestServer { peer in
            _ = try peer.readRequest()
            try peer.send("HTTP/1.1 200 OK\r\nContent-Length: 9223372036854775807\r\n\r\nok")
        }
        let notes = TransferNotes()
        let session = URLSession(configuration: .default, delegate: notes, delegateQueue: nil)
        let task = session.uploadTask(with: URLRequest(url: server.url()), from: Data(count: 10))
        let progress = task.progress
        task.resume()
        try notes.waitForEnds()
        #expect(progress.totalUnitCount == .max && !progress.isFinished)
        #expect(notes.errors.map(\.code) == [.networkConnectionLost])
    }

    /// Foundation calls a handler for each pausing and resuming, on threads of its own, and so in any order.
    @Test func `US-38 a task is suspended as long as its progress is paused, however often it was`() throws {
        let server = try TestServer { $0.waitForEnd() }
        let session = URLSession(configuration: .ephemeral)
        let task = session.dataTask(with: server.url())
        let progress = task.progress
        task.resume()
        progress.isPaused = true
        progress.pausingHandler?()
        progress.pausingHandler?()
        #expect(task.state == .suspended)
        progress.isPaused = false
        progress.resumingHandler?()
        #expect(task.state == .running)
        progress.pausingHandler?()
        #expect(task.state == .running, "the handler of an earlier pausing")
        // Other suspensions are not ended.
        task.suspend()
        progress.resumingHandler?()
        #expect(task.state == .suspended)
        session.invalidateAndCancel()
    }

    /// A `Progress` of Foundation's traps if its total becomes 0 or changes often.
    @Test(arguments: [[5, 0], (0..<8).map { 50_000 + 1_009 * $0 }])
    func `US-38 the lengths of a body's parts are none of its progress, nor of its length`(_ lengths: [Int])
        throws
    {
        let parts = lengths.map {
            "--b\r\nContent-Length: \($0)\r\n\r\n" + String(repeating: "x", count: $0) + "\r\n"
        }
        let body = parts.joined() + "--b--\r\n"
        let server = try TestServer { peer in
            _ = try peer.readRequest()
            try peer.respond("200 OK", ["Content-Type: multipart/x-mixed-replace; boundary=b"], body: body)
        }
        let notes = Notes()
        let session = URLSession(configuration: .default, delegate: notes, delegateQueue: nil)
        let task = session.dataTask(with: server.url())
        let progress = task.progress
        task.resume()
        try waitFor("the end") { notes.completed == 1 ? () : nil }
        #expect(notes.calls.count { $0 == "response 200" } == lengths.count + 1)
        #expect(notes.body.count == lengths.reduce(0, +))
        #expect(progress.isFinished && progress.totalUnitCount == body.utf8.count)
        #expect(task.countOfBytesExpectedToReceive == body.utf8.count)
    }
}
