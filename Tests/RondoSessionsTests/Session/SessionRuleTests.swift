import Rondo
import RondoMutex
import RondoTestSupport
import Testing

/// Rules of sessions: types that stay Foundation's, the place and order of calls, what is left at the end.
@Suite(.timeLimit(.minutes(2)), .serialized, .leavesNoConnections) struct SessionRuleTests {
    @Test func `US-2 requests, responses, errors and storages stay Foundation's own`() {
        for type in [
            URLRequest.self, URLResponse.self, HTTPURLResponse.self, URLError.self, URLCache.self,
            CachedURLResponse.self, HTTPCookie.self, HTTPCookieStorage.self, URLCredential.self,
            URLCredentialStorage.self, URLProtectionSpace.self, URLAuthenticationChallenge.self,
            URLProtocol.self, Progress.self, OperationQueue.self,
        ] as [Any.Type] {
            #expect(String(reflecting: type).hasPrefix("Foundation"), "\(type)")
        }
    }

    @Test
    func
        `US-19 on a concurrent queue the calls of a task do not overlap, and didBecomeInvalid is the last call`()
        throws
    {
        let server = try echoServer()
        let queue = OperationQueue()
        queue.maxConcurrentOperationCount = 8
        struct State {
            var inside: [Int: Int] = [:]
            var overlaps = 0
            var calls: [Int: [String]] = [:]
            var inAll = 0
            var insideAtEnd: Int?
        }
        let state = Box(State())
        let notes = Notes { call, task in
            guard let number = task?.taskIdentifier else {
                state.value.insideAtEnd = state.value.inAll
                return
            }
            state.mutate { state in
                state.inside[number, default: 0] += 1
                state.inAll += 1
                if state.inside[number] != 1 { state.overlaps += 1 }
                state.calls[number, default: []].append(call)
            }
            // Another thread may come in meanwhile.
            sched_yield()
            state.mutate { state in
                state.inside[number, default: 0] -= 1
                state.inAll -= 1
            }
        }
        let session = URLSession(configuration: .default, delegate: notes, delegateQueue: queue)
        for number in 0..<50 { session.dataTask(with: server.url("/\(number)")).resume() }
        session.finishTasksAndInvalidate()
        try waitFor("the session's end") { notes.calls.last == "invalid" ? () : nil }
        let seen = state.value
        #expect(seen.overlaps == 0)
        #expect(seen.insideAtEnd == 0)
        #expect(seen.calls.count == 50)
        for calls in seen.calls.values {
            #expect(calls.first == "response 200" && calls.last == "complete" && calls.count >= 3)
        }
    }

    @Test func `US-25 in a call tasks are made, cancelled and resumed, and a nested run serves the others`()
        throws
    {
        let server = try echoServer()
        let calls = try onLoopThread { loop -> [String] in
            let session = Box<URLSession?>(nil)
            let nested = Box<[String]>([])
            let notes = Notes(on: loop) { call, task in
                guard call.hasPrefix("response"), task?.taskIdentifier == 1, let session = session.value
                else {
                    return
                }
                let inner = session.dataTask(with: server.url("/inner")) { data, _, _ in
                    nested.value.append(String(decoding: data ?? Data(), as: UTF8.self))
                }
                let dropped = session.dataTask(with: server.url("/dropped")) { _, _, error in
                    nested.value.append("\((error as? URLError)?.errorCode ?? 0)")
                }
                dropped.resume()
                dropped.cancel()
                inner.resume()
                loop.run(.work) { nested.value.count == 2 }
                session.finishTasksAndInvalidate()
            }
            session.value = URLSession(
                configuration: .default, delegate: notes, runLoop: loop, modes: [.work])
            session.value?.dataTask(with: server.url("/outer")).resume()
            loop.runOut(.work)
            session.value = nil
            return nested.value.sorted() + notes.calls
        }
        #expect(calls.first == "-999")
        #expect(calls.dropFirst().first?.hasPrefix("GET /inner") ?? false)
        #expect(calls.dropFirst(2) == ["response 200", "data", "complete", "invalid"])
    }

    @Test
    func `US-74 invalidateAndCancel ends every task, then the session, without waiting for the network`()
        throws
    {
        let end = Latch()
        let server = try TestServer { peer in
            _ = try peer.readRequest()
            try end.wait()
        }
        let notes = Notes()
        let session = URLSession(configuration: .default, delegate: notes, delegateQueue: nil)
        for _ in 0..<3 { session.dataTask(with: server.url()).resume() }
        _ = session.dataTask(with: server.url())
        let unresumed = session.dataTask(with: server.url())
        try waitFor("the requests") { server.requests.count == 3 ? () : nil }
        session.invalidateAndCancel()
        try waitFor("the session's end") { notes.calls.last == "invalid" ? () : nil }
        #expect(notes.calls == Array(repeating: "complete -999", count: 4) + ["invalid"])
        #expect(unresumed.state == .completed)
        #expect(session.delegate == nil)
        end.open()
    }

    /// Goes with what holds it.
    private final class Held: Sendable {}

    @Test
    func `US-77 the last call releases delegate, handlers and session, even if the program keeps its tasks`()
        throws
    {
        let server = try echoServer()
        weak var held: Held?
        weak var delegate: Notes?
        weak var session: URLSession?
        var tasks: [URLSessionTask] = []
        do {
            let (object, notes) = (Held(), Notes())
            let made = URLSession(configuration: .default, delegate: notes, delegateQueue: nil)
            (held, delegate, session) = (object, notes, made)
            tasks.append(made.dataTask(with: server.url()) { _, _, _ in withExtendedLifetime(object) {} })
            tasks.append(made.dataTask(with: server.url()))
            for task in tasks { task.resume() }
            made.finishTasksAndInvalidate()
        }
        try waitFor("all to go") { held == nil && delegate == nil && session == nil ? () : nil }
        #expect(tasks.allSatisfy { $0.state == .completed && $0.error == nil })
    }

    @Test
    func `US-80 the handlers of lists, reset and flush are called like the session's other calls, in order`()
        throws
    {
        let places = try onLoopThread { loop -> [String] in
            let session = URLSession(
                configuration: .ephemeral, delegate: nil, runLoop: loop, modes: [.work])
            let log = EventLog()
            let note = { @Sendable (what: String) in
                log.note("\(what) \(loop.isCurrent) \(loop.currentMode == .work)")
            }
            session.getAllTasks { _ in note("all") }
            session.reset { note("reset") }
            session.getTasksWithCompletionHandler { _, _, _ in note("kinds") }
            session.flush { note("flush") }
            #expect(log.entries.isEmpty, "a call inside the call")
            loop.runInVain(.other)
            #expect(log.entries.isEmpty)
            loop.runOut(.work)
            session.finishTasksAndInvalidate()
            loop.runOut(.work)
            return log.entries
        }
        #expect(places == ["all true true", "reset true true", "kinds true true", "flush true true"])
        let session = URLSession(configuration: .ephemeral)
        let queues = Box<[Bool]>([])
        let note = { @Sendable in queues.value.append(OperationQueue.current === session.delegateQueue) }
        session.getAllTasks { _ in note() }
        session.reset { note() }
        session.flush { note() }
        try waitFor("the handlers") { queues.value.count == 3 ? () : nil }
        #expect(queues.value == [true, true, true])
        session.finishTasksAndInvalidate()
    }

    @Test func `US-80 handlers that wait behind a flush are called in order`() throws {
        let numbers = try onLoopThread { loop -> [Int] in
            let session = URLSession(
                configuration: .ephemeral, delegate: nil, runLoop: loop, modes: [.work])
            let called = Box<[Int]>([])
            session.flush { called.mutate { $0.append(0) } }
            for number in 1...1_000 {
                session.getAllTasks { _ in called.mutate { $0.append(number) } }
            }
            loop.runOut(.work)
            session.finishTasksAndInvalidate()
            loop.runOut(.work)
            return called.value
        }
        #expect(numbers == Array(0...1_000))
    }

    /// The names of delegates' calls, by the label of their object.
    private final class Watcher: RunLoop.Instrument {
        private let kept = Mutex<[String]>([])
        var calls: [String] { kept.withLock { $0 } }

        func runLoop(_ loop: RunLoop, did event: RunLoopEvent) {
            guard case .callOut(.delegate(let name), let label, _) = event.detail, label == "watched" else {
                return
            }
            kept.withLock { $0.append("\(name) \(loop === RunLoop.loader)") }
        }
    }

    @Test func `US-20 traces show the calls of a session with a queue as events of the loop that drives it`()
        throws
    {
        let server = try echoServer()
        let calls = try InstrumentTurn.take { () -> [String] in
            let watcher = Watcher()
            RunLoop.instrument = watcher
            defer { RunLoop.instrument = nil }
            let notes = Notes()
            let session = URLSession(configuration: .default, delegate: notes, delegateQueue: nil)
            let task = session.dataTask(with: server.url())
            task.taskDescription = "watched"
            task.resume()
            // The event of a call is made when it has returned.
            try waitFor("the last call") { watcher.calls.last == "didCompleteWithError true" ? () : nil }
            session.invalidateAndCancel()
            // A question of older delegates, which sessions answer themselves.
            return watcher.calls.filter { !$0.hasPrefix("shouldUse") }
        }
        #expect(
            calls == ["didReceive response true", "didReceive data true", "didCompleteWithError true"])
    }
}
