import Rondo
import RondoTestSupport
import Testing

@Suite(.timeLimit(.minutes(2)), .leavesNoConnections) struct TimeoutTests {
    private static func silentServer() throws -> TestServer {
        try TestServer { peer in
            _ = try peer.readRequest()
            peer.waitForEnd()
        }
    }

    /// Loads with a configuration, and returns the error.
    private static func end(
        of request: URLRequest, _ configure: (URLSessionConfiguration) -> Void
    ) throws -> URLError? {
        let configuration = URLSessionConfiguration.default
        configure(configuration)
        let session = URLSession(configuration: configuration)
        defer { session.invalidateAndCancel() }
        return try session.load(request).error
    }

    @Test func `US-12 a request's timeout takes precedence over the configuration's, unless it is 60 s`()
        throws
    {
        let server = try Self.silentServer()
        var request = URLRequest(url: server.url())
        request.timeoutInterval = 0.05
        var error = try Self.end(of: request) { $0.timeoutIntervalForRequest = 3600 }
        #expect(error?.code == .timedOut)
        #expect(error?.localizedDescription.contains("0.05 s") == true)
        request.timeoutInterval = 60
        error = try Self.end(of: request) { $0.timeoutIntervalForRequest = 0.06 }
        #expect(error?.code == .timedOut)
        #expect(error?.localizedDescription.contains("0.06 s") == true)
    }

    /// A server that announces a body of so many bytes, and sends one for each signal.
    private static func drippingServer(_ count: Int) throws -> (TestServer, DispatchSemaphore) {
        let more = DispatchSemaphore(value: 0)
        let server = try TestServer { peer in
            _ = try peer.readRequest()
            try peer.send("HTTP/1.1 200 OK\r\nContent-Length: \(count)\r\n\r\n")
            for _ in 0..<count {
                more.wait()
                try peer.send("x")
            }
        }
        return (server, more)
    }

    /// Loads 20 bytes, of which one comes every 9 s, with a request timeout of 10 s.
    private static func loadSlowly(resourceTimeout: TimeInterval? = nil) throws -> Notes {
        let count = 20
        let (server, more) = try drippingServer(count)
        let (url, notes) = (server.url(), Notes())
        try onHeldLoop { loop, clock in
            let configuration = URLSessionConfiguration.ephemeral
            configuration.timeoutIntervalForRequest = 10
            if let resourceTimeout { configuration.timeoutIntervalForResource = resourceTimeout }
            let session = URLSession(configuration: configuration, delegate: notes, runLoop: loop)
            session.dataTask(with: url).resume()
            for number in 1...count {
                more.signal()
                loop.run { notes.body.count == number || notes.completed > 0 }
                if notes.completed > 0 { break }
                loop.pass(9, by: clock)
            }
            loop.runOut()
        }
        for _ in 0..<count { more.signal() }
        return notes
    }

    @Test func `US-68 any progress restarts the request timeout`() throws {
        let notes = try Self.loadSlowly()
        #expect(notes.calls == ["response 200", "data", "complete"])
    }

    @Test func `US-68 UC-58 a timeout of less than ten seconds is no later for the short delay`() throws {
        let server = try Self.silentServer()
        let calls = try onHeldLoop { loop, clock -> [[String]] in
            let configuration = URLSessionConfiguration.ephemeral
            configuration.timeoutIntervalForRequest = 9
            let notes = Notes(on: loop)
            let session = URLSession(configuration: configuration, delegate: notes, runLoop: loop)
            session.dataTask(with: server.url()).resume()
            loop.passUntil { !server.requests.isEmpty }
            let calls = [0.6, 8.3, 0.2].map { seconds in
                loop.pass(seconds, by: clock)
                for _ in 1...3 { loop.runInVain(for: 0) }
                return notes.calls
            }
            session.invalidateAndCancel()
            loop.runOut()
            return calls
        }
        #expect(calls == [[], [], ["complete -1001"]])
    }

    @Test func `US-68 a task that was suspended when the clock was to be looked at first times out`() throws {
        let server = try Self.silentServer()
        let calls = try onHeldLoop { loop, clock -> [String] in
            let configuration = URLSessionConfiguration.ephemeral
            configuration.timeoutIntervalForRequest = 10
            // No limit, and so nothing else looks at the clock.
            configuration.timeoutIntervalForResource = .infinity
            let notes = Notes(on: loop)
            let session = URLSession(configuration: configuration, delegate: notes, runLoop: loop)
            let task = session.dataTask(with: server.url())
            task.resume()
            loop.passUntil { !server.requests.isEmpty }
            task.suspend()
            loop.pass(1, by: clock)
            task.resume()
            for _ in 0..<3 { loop.pass(11, by: clock) }
            let calls = notes.calls
            session.invalidateAndCancel()
            loop.runOut()
            return calls
        }
        #expect(calls == ["complete -1001"])
    }

    @Test func `US-68 a timeout that bytes have prevented at the last moment is set again`() throws {
        let (mayGoOn, sent) = (Latch(), Latch())
        let server = try TestServer { peer in
            _ = try peer.readRequest()
            try mayGoOn.wait()
            try peer.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n1")
            sent.open()
            peer.waitForEnd()
        }
        let calls = try onHeldLoop { loop, clock -> [[String]] in
            let configuration = URLSessionConfiguration.ephemeral
            configuration.timeoutIntervalForRequest = 10
            let notes = Notes(on: loop)
            let session = URLSession(configuration: configuration, delegate: notes, runLoop: loop)
            let task = session.dataTask(with: server.url())
            task.resume()
            loop.passUntil { !server.requests.isEmpty }
            // The clock is looked at with nothing noted since, and finds the time over. Before the pass of the load come other
            // sources, and bytes.
            let other = RunLoop.Source(order: -1, perform: {})
            let last = RunLoop.Source(
                order: -1,
                perform: {
                    mayGoOn.open()
                    do { try sent.wait() } catch { Issue.record(error) }
                })
            loop.add(other, forMode: .default)
            loop.add(last, forMode: .default)
            loop.add(Timer(timeInterval: 0.01, repeats: false) { _ in last.signal() }, forMode: .default)
            loop.perform {
                task.suspend()
                task.resume()
                clock.advance(by: 11)
                other.signal()
            }
            for _ in 0..<8 { _ = loop.run(in: .default, for: 0, returnAfterSourceHandled: true) }
            last.invalidate()
            other.invalidate()
            let before = notes.calls
            for _ in 0..<3 { loop.pass(11, by: clock) }
            let calls = notes.calls
            session.invalidateAndCancel()
            loop.runOut()
            return [before, calls]
        }
        #expect(calls == [["response 200", "data"], ["response 200", "data", "complete -1001"]])
    }

    @Test func `US-68 time that waits for a connection does not count`() throws {
        let count = 5
        let more = DispatchSemaphore(value: 0)
        let server = try TestServer { peer in
            while true {
                let request = try peer.readRequest()
                guard request.target == "/first" else {
                    try peer.respond(body: "done")
                    continue
                }
                try peer.send("HTTP/1.1 200 OK\r\nContent-Length: \(count)\r\n\r\n")
                for _ in 0..<count {
                    more.wait()
                    try peer.send("x")
                }
            }
        }
        let (first, second, notes) = (server.url("/first"), server.url("/second"), Notes())
        let meanwhile = try onHeldLoop { loop, clock -> [String] in
            let configuration = URLSessionConfiguration.default
            configuration.httpMaximumConnectionsPerHost = 1
            configuration.timeoutIntervalForRequest = 10
            let session = URLSession(configuration: configuration, delegate: notes, runLoop: loop)
            session.dataTask(with: first).resume()
            loop.run { notes.calls.count == 1 }
            session.dataTask(with: second).resume()
            // The first makes progress, and the second waits for longer than its timeout.
            for number in 1..<count {
                more.signal()
                loop.run { notes.body.count == number || notes.completed > 0 }
                loop.pass(9, by: clock)
            }
            let meanwhile = notes.calls
            more.signal()
            loop.run { notes.completed == 2 }
            session.invalidateAndCancel()
            loop.runOut()
            return meanwhile
        }
        #expect(meanwhile == ["response 200", "data"])
        #expect(notes.errors.isEmpty)
        #expect(notes.text == "xxxxxdone")
    }

    /// A byte more may come before the task is told that its time is over.
    @Test(arguments: [(30.0, 4...5), (50.0, 6...7)])
    func `US-69 the resource timeout limits the whole task, however much arrives`(
        seconds: Double, bytes: ClosedRange<Int>
    ) throws {
        let notes = try Self.loadSlowly(resourceTimeout: seconds)
        #expect(notes.calls == ["response 200", "data", "complete -1001"])
        #expect(notes.errors.first?.localizedDescription.contains("timeoutIntervalForResource") == true)
        #expect(bytes.contains(notes.body.count))
    }

    @Test func `US-69 time that no mode runs counts`() throws {
        let server = try Self.silentServer()
        let (url, notes) = (server.url(), Notes())
        let before = try onHeldLoop { loop, clock -> [String] in
            let configuration = URLSessionConfiguration.default
            // Time that no mode runs does not count for a request.
            configuration.timeoutIntervalForRequest = 10
            configuration.timeoutIntervalForResource = 50
            let session = URLSession(
                configuration: configuration, delegate: notes, runLoop: loop, modes: [.work])
            session.dataTask(with: url).resume()
            loop.perform(inModes: [.other]) { clock.advance(by: 100) }
            loop.runInVain(.other, for: 0)
            let before = notes.calls
            loop.runOut(.work)
            return before
        }
        #expect(before.isEmpty)
        #expect(notes.calls == ["complete -1001"])
        #expect(notes.errors.first?.localizedDescription.contains("timeoutIntervalForResource") == true)
    }

    /// The loop was blocked, and then finds the whole answer and the end of the time. Whether timers or descriptors come first
    /// depends on which were served last.
    @Test(arguments: [false, true])
    func `US-69 a task whose answer is there when its time is found over has succeeded`(
        servesDescriptor: Bool
    ) throws {
        let (mayAnswer, hasAnswered) = (Latch(), Latch())
        let server = try TestServer { peer in
            _ = try peer.readRequest()
            try mayAnswer.wait()
            try peer.respond(body: "all")
            hasAnswered.open()
            peer.waitForEnd()
        }
        let calls = try onHeldLoop { loop, clock -> [String] in
            let configuration = URLSessionConfiguration.ephemeral
            configuration.timeoutIntervalForRequest = .infinity
            configuration.timeoutIntervalForResource = 10
            let notes = Notes(on: loop)
            let session = URLSession(configuration: configuration, delegate: notes, runLoop: loop)
            session.dataTask(with: server.url()).resume()
            loop.passUntil { !server.requests.isEmpty }
            loop.pass(1, by: clock)
            if servesDescriptor {
                let pipe = Pipe()
                pipe.fileHandleForWriting.write(Data([1]))
                let descriptor = pipe.fileHandleForReading.fileDescriptor
                let source = RunLoop.Source(fileDescriptor: descriptor, interest: .read) { source, _ in
                    source.invalidate()
                }
                loop.add(source, forMode: .default)
                loop.passUntil { !source.isValid }
            }
            loop.perform {
                mayAnswer.open()
                do { try hasAnswered.wait() } catch { Issue.record(error) }
                clock.advance(by: 20)
            }
            loop.passUntil { notes.completed > 0 }
            session.invalidateAndCancel()
            loop.runOut()
            return notes.calls
        }
        #expect(calls.prefix(3) == ["response 200", "data", "complete"])
    }

    /// A limit of 10 s, of which 4 are over when the task is suspended.
    ///
    /// - Parameter seconds: The time for which the server is silent after the task was resumed.
    @Test(arguments: [true, false], [5.0, 7.0])
    func `US-69 US-30 suspended time does not count, and the time before and after it does`(
        isOfResource: Bool, seconds: Double
    ) throws {
        let (server, more) = try Self.drippingServer(2)
        let (url, notes) = (server.url(), Notes())
        let meanwhile = try onHeldLoop { loop, clock -> [String] in
            let configuration = URLSessionConfiguration.default
            configuration.timeoutIntervalForRequest = isOfResource ? .infinity : 10
            configuration.timeoutIntervalForResource = isOfResource ? 10 : .infinity
            let session = URLSession(configuration: configuration, delegate: notes, runLoop: loop)
            let task = session.dataTask(with: url)
            task.resume()
            loop.run { notes.calls == ["response 200"] }
            // The idle time is measured from the first look at it on, which comes after a short delay.
            loop.pass(0.6, by: clock)
            more.signal()
            loop.run { notes.body.count == 1 }
            loop.pass(3.4, by: clock)
            task.suspend()
            loop.pass(100, by: clock)
            loop.runInVain(for: 0)
            let meanwhile = notes.calls
            task.resume()
            // The time goes on in the next pass.
            loop.runInVain(for: 0)
            loop.pass(seconds, by: clock)
            // A time that is over has been found so, before more comes.
            for _ in 1...3 { loop.runInVain(for: 0) }
            if seconds < 6 { more.signal() }
            loop.run { notes.completed > 0 }
            loop.runOut()
            return meanwhile
        }
        more.signal()
        #expect(meanwhile == ["response 200", "data"])
        #expect(notes.calls == meanwhile + [seconds < 6 ? "complete" : "complete -1001"])
        if let error = notes.errors.first {
            #expect(error.localizedDescription.contains("timeoutIntervalForResource") == isOfResource)
        }
    }

    @Test func `US-30 the time for connecting stands still while the task is suspended`() throws {
        let server = try TestServer { peer in peer.waitForEnd() }
        let url = try #require(URL(string: "https://127.0.0.1:\(server.port)/"))
        let counts = try onHeldLoop { loop, clock -> [Int] in
            let configuration = URLSessionConfiguration.ephemeral
            configuration.connection.connect.timeout = 5
            let notes = Notes(on: loop)
            let session = URLSession(configuration: configuration, delegate: notes, runLoop: loop)
            let task = session.dataTask(with: url)
            task.resume()
            loop.passUntil { server.accepted == 1 }
            loop.pass(2, by: clock)
            task.suspend()
            loop.pass(100, by: clock)
            task.resume()
            for _ in 1...3 { loop.runInVain(for: 0) }
            var counts = [notes.completed]
            for _ in 1...2 {
                loop.pass(2, by: clock)
                for _ in 1...3 { loop.runInVain(for: 0) }
                counts.append(notes.completed)
            }
            session.invalidateAndCancel()
            loop.runOut()
            return counts
        }
        #expect(counts == [0, 0, 1])
    }

    @Test func `US-27 time in which an answer is owed counts for the resource timeout only`() throws {
        let server = try echoServer()
        let (calls, error) = try onHeldLoop { loop, clock -> ([String], URLError?) in
            let notes = Notes(on: loop)
            let kept = Box<[@Sendable (URLSession.ResponseDisposition) -> Void]>([])
            notes.answerResponses { _, handler in kept.value.append(handler) }
            let configuration = URLSessionConfiguration.default
            configuration.timeoutIntervalForRequest = 5
            configuration.timeoutIntervalForResource = 20
            let session = URLSession(configuration: configuration, delegate: notes, runLoop: loop)
            session.dataTask(with: server.url()).resume()
            loop.passUntil { !notes.calls.isEmpty }
            for seconds in [15.0, 10] {
                #expect(notes.calls == ["response 200"])
                loop.pass(seconds, by: clock)
                for _ in 1...3 { loop.runInVain(for: 0) }
            }
            kept.value = []
            let found = (notes.calls, notes.errors.first)
            session.invalidateAndCancel()
            loop.runOut()
            return found
        }
        #expect(calls == ["response 200", "complete -1001"])
        #expect(error?.localizedDescription.contains("timeoutIntervalForResource") == true)
    }
}
