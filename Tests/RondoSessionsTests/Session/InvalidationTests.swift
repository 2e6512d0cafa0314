import Rondo
import RondoTestSupport
import Testing

import class Rondo.URLSession
import class Rondo.URLSessionConfiguration
import protocol Rondo.URLSessionDataDelegate
import class Rondo.URLSessionTask

@testable import RondoSessions

@Suite(.timeLimit(.minutes(2)), .leavesNoConnections) struct InvalidationTests {
    @Test
    func `US-73 resumed tasks finish, those never resumed are cancelled, then didBecomeInvalid is called`()
        throws
    {
        let mayAnswer = Latch()
        let server = try TestServer { peer in
            _ = try peer.readRequest()
            try mayAnswer.wait()
            try peer.respond(body: "done")
        }
        let notes = Notes()
        let session = URLSession(configuration: .default, delegate: notes, delegateQueue: nil)
        session.dataTask(with: server.url()).resume()
        let idle = session.dataTask(with: server.url())
        try waitFor("the request") { server.requests.count == 1 ? () : nil }
        session.finishTasksAndInvalidate()
        try waitFor("the end of the task that never ran") { notes.completed == 1 ? () : nil }
        idle.resume()
        mayAnswer.open()
        try waitFor("the session's end") { notes.calls.last == "invalid" ? () : nil }
        #expect(notes.calls == ["complete -999", "response 200", "data", "complete", "invalid"])
        #expect(server.requests.count == 1)
    }

    @Test
    func `US-73 a session does not become invalid before all tasks that were never resumed are cancelled`()
        throws
    {
        let session = URLSession(configuration: .ephemeral)
        let task = session.dataTask(with: URL(fileURLWithPath: "/"))
        #expect(session.table.invalidate().created == [task])
        #expect(!session.table.takeEnd())
        task.cancel()
        try waitFor("the end") { task.state == .completed ? () : nil }
    }

    @Test func `US-73 handlers of flush and lists are called before didBecomeInvalid`() throws {
        let notes = Notes()
        let session = URLSession(configuration: .ephemeral, delegate: notes, delegateQueue: nil)
        let log = EventLog()
        session.flush { log.note("flushed \(notes.calls)") }
        session.getAllTasks { log.note("listed \($0.count) \(notes.calls)") }
        session.finishTasksAndInvalidate()
        try waitFor("the session's end") { notes.calls.last == "invalid" ? () : nil }
        #expect(log.entries == ["flushed []", "listed 0 []"])
    }

    /// The first handler has the queue run what comes behind it before it returns.
    @Test func `US-19 US-80 on a concurrent queue handlers come one at a time, and before didBecomeInvalid`()
        throws
    {
        let queue = OperationQueue()
        queue.maxConcurrentOperationCount = 4
        let (log, allWait) = (EventLog(), Latch())
        let notes = Notes { call, _ in log.note(call) }
        let session = URLSession(configuration: .ephemeral, delegate: notes, delegateQueue: queue)
        session.getAllTasks { _ in
            log.note("begin")
            #expect(throws: Never.self) {
                try allWait.wait()
                for _ in 0..<3 {
                    let passed = Latch()
                    queue.addOperation { passed.open() }
                    try passed.wait()
                }
            }
            log.note("end")
        }
        session.getTasksWithCompletionHandler { _, _, _ in log.note("listed") }
        session.finishTasksAndInvalidate()
        allWait.open()
        try waitFor("the session's end") { log.entries.count == 4 ? () : nil }
        #expect(log.entries == ["begin", "end", "listed", "invalid"])
    }

    @Test func `US-75 a task of an invalidated session is completed from the start`() throws {
        let session = URLSession(configuration: .default)
        session.invalidateAndCancel()
        let (found, done) = (Box<URLError.Code?>(nil), Latch())
        let task = session.dataTask(with: URL(fileURLWithPath: "/")) { _, _, error in
            found.value = (error as? URLError)?.code
            done.open()
        }
        #expect(task.state == .completed)
        task.resume()
        try done.wait()
        #expect(found.value == .cancelled)
    }

    @Test
    func `US-76 a session that was never invalidated is released with its delegate and its connections`()
        throws
    {
        let server = try echoServer()
        final class Delegate: NSObject, URLSessionDataDelegate, Sendable {
            let done: Latch
            init(_ done: Latch) { self.done = done }
            func urlSession(
                _ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?
            ) {
                done.open()
            }
        }
        let done = Latch()
        weak var held: Delegate?
        do {
            let delegate = Delegate(done)
            held = delegate
            URLSession(configuration: .default, delegate: delegate, delegateQueue: nil)
                .dataTask(with: server.url()).resume()
        }
        try done.wait()
        try waitFor("the delegate to go") { held == nil ? () : nil }
        try waitFor("the connection to close") { server.served == 0 ? () : nil }
    }

    @Test func `US-79 lists have the tasks that were resumed and have not ended`() throws {
        let server = try TestServer { peer in
            _ = try peer.readRequest()
            peer.waitForEnd()
        }
        let session = URLSession(configuration: .default)
        let tasks = (0..<3).map { _ in session.dataTask(with: server.url()) }
        tasks[0].resume()
        tasks[1].resume()
        tasks[1].suspend()
        let list = Box<[Int]?>(nil)
        session.getAllTasks { list.value = $0.map(\.taskIdentifier) }
        #expect(try waitFor("the list") { list.value } == [1, 2])
        session.invalidateAndCancel()
        list.value = nil
        session.getAllTasks { list.value = $0.map(\.taskIdentifier) }
        #expect(try waitFor("the list") { list.value } == [])
        try waitFor("the ends") { tasks.allSatisfy { $0.state == .completed } ? () : nil }
    }

    @Test func `US-79 the lists by kind have each task once, and the async forms the same tasks`()
        async throws
    {
        let server = try TestServer { peer in
            _ = try peer.readRequest()
            peer.waitForEnd()
        }
        let session = URLSession(configuration: .default)
        let request = URLRequest(url: server.url())
        // The last one is not resumed, and in no list.
        let tasks: [URLSessionTask] = [
            session.dataTask(with: request), session.uploadTask(with: request, from: Data("x".utf8)),
            session.downloadTask(with: request), session.dataTask(with: request),
        ]
        for task in tasks.dropLast() { task.resume() }
        let identifiers = { @Sendable (tasks: [URLSessionTask]) in tasks.map(\.taskIdentifier) }
        let lists = await withCheckedContinuation { continuation in
            session.getTasksWithCompletionHandler { data, uploads, downloads in
                continuation.resume(returning: [data, uploads, downloads].map(identifiers))
            }
        }
        #expect(lists == [[1], [2], [3]])
        let (data, uploads, downloads) = await session.tasks
        #expect([data, uploads, downloads].map(identifiers) == lists)
        let all = await session.allTasks
        #expect(identifiers(all) == [1, 2, 3])
        session.invalidateAndCancel()
    }

    @Test func `US-71 a session has at most as many connections to a host as its configuration says`() throws
    {
        let mayAnswer = Latch()
        let server = try TestServer { peer in
            while true {
                _ = try peer.readRequest()
                try mayAnswer.wait()
                try peer.respond(body: "done")
            }
        }
        let configuration = URLSessionConfiguration.default
        configuration.httpMaximumConnectionsPerHost = 2
        let notes = Notes()
        let session = URLSession(configuration: configuration, delegate: notes, delegateQueue: nil)
        for _ in 0..<5 { session.dataTask(with: server.url()).resume() }
        try waitFor("two requests") { server.requests.count == 2 ? () : nil }
        let other = URLSession(configuration: .default, delegate: notes, delegateQueue: nil)
        other.dataTask(with: server.url()).resume()
        try waitFor("that of another session") { server.requests.count == 3 ? () : nil }
        #expect(server.accepted == 3)
        mayAnswer.open()
        try waitFor("the ends") { notes.completed == 6 ? () : nil }
        #expect(server.accepted == 3)
    }

    @Test func `US-74 a task whose place another one is taking is cancelled, too`() throws {
        let server = try TestServer { peer in
            _ = try peer.readRequest()
            peer.waitForEnd()
        }
        let notes = Notes()
        let session = URLSession(configuration: .ephemeral, delegate: notes, delegateQueue: nil)
        let task = session.dataTask(with: server.url())
        task.resume()
        try waitFor("the request") { server.requests.isEmpty ? nil : () }
        // The first step of becoming a download task, which has not replaced this one in the table yet.
        #expect(task.work.pass(to: session.table.nextIdentifier()))
        session.invalidateAndCancel()
        try waitFor("the end") { notes.calls.last == "invalid" ? () : nil }
        #expect(notes.calls == ["complete -999", "invalid"])
    }
}
