import Rondo
import RondoTestSupport
import Testing

import class Rondo.URLSession
import protocol Rondo.URLSessionDataDelegate
import class Rondo.URLSessionDataTask
import class Rondo.URLSessionTask

@testable import RondoConnections

/// A program may suspend the queue that it gave a session, cancel its operations and add others.
@Suite(.timeLimit(.minutes(2)), .leavesNoConnections) struct DelegateQueueTests {
    @Test
    func `US-80 a call that is submitted after the program has read the queue waits behind earlier calls`()
        throws
    {
        let (queue, go, done) = (DelegateQueue(), Latch(), Latch())
        let order = Box<[String]>([])
        queue.submit {
            go.waitOrRecord()
            order.mutate { $0.append("first") }
            _ = queue.exposedQueue
            queue.submit {
                order.mutate { $0.append("last") }
                done.open()
            }
        }
        for name in ["second", "third"] { queue.submit { order.mutate { $0.append(name) } } }
        go.open()
        try done.wait()
        #expect(order.value == ["first", "second", "third", "last"])
    }

    private func serialQueue(suspended: Bool = false) -> OperationQueue {
        let queue = OperationQueue()
        queue.maxConcurrentOperationCount = 1
        queue.isSuspended = suspended
        return queue
    }

    @Test
    func `US-17 handlers of a suspended queue wait, and are called in the order in which their tasks ended`()
        throws
    {
        let server = try echoServer()
        let queue = serialQueue(suspended: true)
        let session = URLSession(configuration: .default, delegate: nil, delegateQueue: queue)
        let (seen, done) = (Box<[String]>([]), Latch())
        let tasks = (0..<3).map { number in
            session.dataTask(with: server.url("/\(number)")) { data, _, _ in
                #expect(OperationQueue.current === queue)
                seen.value.append(String(decoding: data ?? Data(), as: UTF8.self))
                if seen.value.count == 3 { done.open() }
            }
        }
        for task in tasks {
            task.resume()
            try waitFor("the end") { task.state == .completed ? () : nil }
        }
        #expect(seen.value.isEmpty)
        queue.isSuspended = false
        try done.wait()
        #expect(seen.value == ["GET /0 0", "GET /1 0", "GET /2 0"])
        session.invalidateAndCancel()
    }

    @Test func `US-90 a task and a session whose completion handler waits for a queue say so`() throws {
        let server = try echoServer()
        let queue = serialQueue(suspended: true)
        queue.name = "handlers"
        let session = URLSession(configuration: .default, delegate: nil, delegateQueue: queue)
        let done = Latch()
        let task = session.dataTask(with: server.url()) { _, _, _ in done.open() }
        task.resume()
        let suspended = "its calls are made on the queue “handlers”, which is suspended"
        try waitFor("the handler that waits") {
            task.state == .completed && task.whyNotDelivering.reason == .suspended ? () : nil
        }
        #expect(task.whyNotDelivering.description == suspended)
        try waitFor("the session without tasks") {
            session.whyNotDelivering.description == "a completion handler has not been called: \(suspended)"
                ? () : nil
        }
        queue.isSuspended = false
        try done.wait()
        #expect(task.whyNotDelivering.reason == .invalid)
        #expect(session.whyNotDelivering.description == "no task was resumed that has not ended")
        session.invalidateAndCancel()
    }

    @Test func `US-90 a task of an invalidated session whose handler waits for a queue says so`() throws {
        let queue = serialQueue(suspended: true)
        let session = URLSession(configuration: .default, delegate: nil, delegateQueue: queue)
        session.invalidateAndCancel()
        let done = Latch()
        let task = session.dataTask(with: try #require(URL(string: "http://127.0.0.1:1/"))) { _, _, _ in
            done.open()
        }
        task.resume()
        #expect(task.whyNotDelivering.reason == .suspended)
        queue.isSuspended = false
        try done.wait()
        #expect(task.whyNotDelivering.reason == .invalid)
    }

    @Test(arguments: [false, true])
    func `US-90 a task whose call waits behind another one names the queue`(isOfDispatch: Bool) throws {
        let server = try echoServer()
        let (serial, go) = (DispatchQueue(label: "serial"), Latch())
        let queue = serialQueue()
        if isOfDispatch { queue.underlyingQueue = serial }
        queue.addOperation { go.waitOrRecord() }
        defer { go.open() }
        let notes = Notes()
        let session = URLSession(configuration: .default, delegate: notes, delegateQueue: queue)
        let task = session.dataTask(with: server.url())
        task.resume()
        let reason =
            isOfDispatch
            ? "its call waits for the dispatch queue “serial”, which is suspended or busy"
            : "its call waits for its queue, behind an operation that has not ended"
        try waitFor("the call that waits") { task.whyNotDelivering.description == reason ? () : nil }
        go.open()
        try waitFor("the end") { notes.completed == 1 ? () : nil }
        session.invalidateAndCancel()
    }

    @Test func `US-17 after a handler that suspends the queue no other is called until the queue is resumed`()
        throws
    {
        let server = try echoServer()
        let queue = serialQueue(suspended: true)
        let session = URLSession(configuration: .default, delegate: nil, delegateQueue: queue)
        let (seen, first, last) = (Box(0), Latch(), Latch())
        for number in 1...3 {
            let task = session.dataTask(with: server.url("/\(number)")) { _, _, _ in
                seen.value += 1
                if seen.value == 1 {
                    queue.isSuspended = true
                    first.open()
                }
                if seen.value == 3 { last.open() }
            }
            task.resume()
            try waitFor("the end") { task.state == .completed ? () : nil }
        }
        queue.isSuspended = false
        try first.wait()
        // What could still come would be called by the operation that runs now.
        try waitFor("the operation's end") { queue.operations.allSatisfy { !$0.isExecuting } ? () : nil }
        #expect(seen.value == 1)
        queue.isSuspended = false
        try last.wait()
        #expect(seen.value == 3)
        session.invalidateAndCancel()
    }

    @Test
    func
        `US-17 after a handler that suspends the session's own queue no other is called until it is resumed`()
        throws
    {
        let server = try echoServer()
        let session = URLSession(configuration: .default)
        let (seen, entered, mayGoOn, first, last) = (Box(0), Latch(), Latch(), Latch(), Latch())
        let tasks = (0..<3).map { _ in
            session.dataTask(with: server.url()) { _, _, _ in
                seen.value += 1
                if seen.value == 1 {
                    entered.open()
                    do { try mayGoOn.wait() } catch { Issue.record(error) }
                    session.delegateQueue.isSuspended = true
                    first.open()
                }
                if seen.value == 3 { last.open() }
            }
        }
        tasks[0].resume()
        try entered.wait()
        for task in tasks[1...] {
            task.resume()
            try waitFor("the end") { task.state == .completed ? () : nil }
        }
        // The handlers wait for the queue by now: the loop that has handed them in is done with them.
        try RunLoop.loader.waitUntilAsleep()
        mayGoOn.open()
        try first.wait()
        try waitFor("the operation's end") {
            session.delegateQueue.operations.allSatisfy { !$0.isExecuting } ? () : nil
        }
        #expect(seen.value == 1)
        session.delegateQueue.isSuspended = false
        try last.wait()
        session.invalidateAndCancel()
    }

    @Test func `US-17 cancelAllOperations loses no call`() throws {
        let server = try echoServer()
        let queue = serialQueue(suspended: true)
        let notes = Notes()
        let session = URLSession(configuration: .default, delegate: notes, delegateQueue: queue)
        session.dataTask(with: server.url("/a")).resume()
        try waitFor("a call that waits") { queue.operationCount > 0 ? () : nil }
        queue.cancelAllOperations()
        queue.isSuspended = false
        try waitFor("the end") { notes.completed == 1 ? () : nil }
        #expect(notes.calls == ["response 200", "data", "complete"])
        session.invalidateAndCancel()
    }

    @Test func `US-17 an operation of the program runs before calls that are submitted after it`() throws {
        let server = try echoServer()
        let queue = serialQueue()
        let session = URLSession(configuration: .default, delegate: nil, delegateQueue: queue)
        let (log, entered, mayLeave, done) = (EventLog(), Latch(), Latch(), Latch())
        session.dataTask(with: server.url("/1")) { _, _, _ in
            log.note("first")
            entered.open()
            do { try mayLeave.wait() } catch { Issue.record(error) }
        }.resume()
        try entered.wait()
        queue.addOperation { log.note("program's") }
        let second = session.dataTask(with: server.url("/2")) { _, _, _ in
            log.note("second")
            done.open()
        }
        second.resume()
        try waitFor("the end") { second.state == .completed ? () : nil }
        // The handler waits for the queue by now: the loop that has handed it in is done with it.
        try RunLoop.loader.waitUntilAsleep()
        mayLeave.open()
        try done.wait()
        #expect(log.entries == ["first", "program's", "second"])
        session.invalidateAndCancel()
    }

    @Test
    func
        `US-17 an operation that a call adds to its queue, or to the underlying queue, runs before the next call`()
        throws
    {
        let server = try echoServer()
        let serial = DispatchQueue(label: "under")
        let given = serialQueue()
        given.underlyingQueue = serial
        for queue in [given, nil] {
            let log = EventLog()
            let delegate = AddingDelegate(log, queue == nil ? nil : serial)
            let session = URLSession(configuration: .default, delegate: delegate, delegateQueue: queue)
            session.dataTask(with: server.url()).resume()
            try waitFor("the end") { log.entries.count == 5 ? () : nil }
            #expect(log.entries == ["response", "added", "data", "added", "complete"])
            session.invalidateAndCancel()
        }
    }

    /// Adds something after each call but the last.
    private final class AddingDelegate: NSObject, URLSessionDataDelegate, Sendable {
        private let log: EventLog
        private let serial: DispatchQueue?

        /// - Parameter serial: Nil: an operation is added to the session's queue.
        init(_ log: EventLog, _ serial: DispatchQueue?) {
            self.log = log
            self.serial = serial
        }

        private func note(_ call: String, _ session: URLSession) {
            log.note(call)
            let added: @Sendable () -> Void = { [log] in log.note("added") }
            if let serial { serial.async(execute: added) } else { session.delegateQueue.addOperation(added) }
        }

        func urlSession(
            _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
            completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
        ) {
            note("response", session)
            completionHandler(.allow)
        }
        func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
            note("data", session)
        }
        func urlSession(
            _ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?
        ) {
            log.note("complete")
        }
    }

    @Test func `US-17 an operation that a call adds gets its turn among endless calls`() throws {
        let calls = DelegateQueue()
        let (count, last) = (Box(0), Latch())
        let most = 100_000
        // Each call hands in the next one, so that one always waits.
        @Sendable func call() {
            count.mutate { $0 += 1 }
            if count.value == 10 { OperationQueue.current?.addOperation { last.open() } }
            if count.value < most, !last.isOpen { calls.submit { call() } }
        }
        calls.submit { call() }
        try last.wait()
        try waitFor("the calls' end") { calls.exposedQueue.operationCount == 0 ? () : nil }
        #expect(count.value < most)
    }

    /// The handler is not put off behind the callbacks of other descriptors that are ready: it would never come.
    @Test func `US-24 a callback of a loop may wait for the handler that it has asked a session for`() throws
    {
        let session = URLSession(configuration: .ephemeral)
        let called = try onLoopThread { loop -> Int in
            let (called, pipes) = (Box(0), (0..<2).map { _ in Pipe() })
            for pipe in pipes {
                pipe.fileHandleForWriting.write(Data([1]))
                let descriptor = pipe.fileHandleForReading.fileDescriptor
                let source = RunLoop.Source(fileDescriptor: descriptor, interest: .read) { source, _ in
                    source.invalidate()
                    let done = Latch()
                    session.getAllTasks { _ in done.open() }
                    do {
                        try done.wait()
                        called.mutate { $0 += 1 }
                    } catch { Issue.record(error) }
                }
                loop.add(source, forMode: .default)
            }
            loop.runOut()
            withExtendedLifetime(pipes) {}
            return called.value
        }
        #expect(called == 2)
        session.invalidateAndCancel()
    }
}
