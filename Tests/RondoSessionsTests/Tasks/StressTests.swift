import Rondo
import RondoMutex
import RondoProbeSupport
import RondoTestSupport
import Testing

import struct Synchronization.Atomic

@testable import RondoCore

/// Tasks that are resumed, suspended and cancelled at random by several threads.
@Suite(.timeLimit(.minutes(10)), .serialized, .leavesNoConnections) struct StressTests {
    /// The number of tasks, unless RONDO_STRESS_TASKS names another.
    private static let count =
        ProcessInfo.processInfo.environment["RONDO_STRESS_TASKS"].flatMap { Int($0) } ?? 400

    /// Counts the last calls of each task.
    private final class Counting: NSObject, URLSessionDataDelegate, Sendable {
        let ends = Mutex<[Int: Int]>([:])
        let late = Atomic(0)
        let invalid = Atomic(0)

        private func note(_ task: URLSessionTask) {
            if ends.withLock({ $0[task.taskIdentifier] != nil }) { late.add(1, ordering: .relaxed) }
        }

        func urlSession(
            _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
            completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
        ) {
            note(dataTask)
            completionHandler(.allow)
        }

        func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
            note(dataTask)
        }

        func urlSession(
            _ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?
        ) {
            note(task)
            ends.withLock { $0[task.taskIdentifier, default: 0] += 1 }
        }

        func urlSession(_ session: URLSession, didBecomeInvalidWithError error: (any Error)?) {
            invalid.add(1, ordering: .relaxed)
        }
    }

    private static func server() throws -> TestServer {
        try TestServer { peer in
            while true {
                _ = try peer.readRequest()
                try peer.send("HTTP/1.1 200 OK\r\nContent-Length: 40000\r\n\r\n")
                try peer.send([UInt8](repeating: 1, count: 40_000))
            }
        }
    }

    /// Has each task used by two of the threads.
    private static func shake(_ tasks: [URLSessionTask]) throws {
        let threads = (0..<4).map { number in
            LoopThread { _ in
                var random = Random(seed: UInt64(number) &* 7919 &+ 1)
                for (index, task) in tasks.enumerated() where index % 2 == number % 2 {
                    task.resume()
                    for _ in 0..<random.number(below: 6) {
                        switch random.number(below: 8) {
                        case 0...2: task.suspend()
                        case 3...6: task.resume()
                        default: if random.number(below: 3) == 0 { task.cancel() }
                        }
                        if random.number(below: 16) == 0 {
                            task.priority = Float(random.number(below: 5)) / 4
                        }
                    }
                }
            }
        }
        for thread in threads { try thread.value() }
        // All suspensions are undone: no task has more.
        for _ in 0..<12 { for task in tasks { task.resume() } }
    }

    @Test(arguments: [false, true])
    func `US-88 US-33 each task of a queue completes exactly once, whatever several threads do`(
        isConcurrent: Bool
    ) throws {
        let before = LiveObject.census?[.sessionTask] ?? 0
        let server = try Self.server()
        let counting = Counting()
        try {
            let queue = OperationQueue()
            queue.maxConcurrentOperationCount = isConcurrent ? 4 : 1
            let session = URLSession(configuration: .ephemeral, delegate: counting, delegateQueue: queue)
            let tasks = (0..<Self.count).map { session.dataTask(with: server.url("/\($0)")) }
            try Self.shake(tasks)
            session.finishTasksAndInvalidate()
            do {
                try waitFor("the session's end") { counting.invalid.load(ordering: .relaxed) == 1 ? () : nil }
            } catch {
                // What hangs says why.
                for task in tasks where task.state != .completed {
                    Issue.record("task \(task.taskIdentifier): \(task.state), \(task.whyNotDelivering)")
                }
                throw error
            }
            #expect(tasks.allSatisfy { $0.state == .completed })
        }()
        #expect(counting.ends.withLock { $0.count } == Self.count)
        #expect(counting.ends.withLock { $0.values.allSatisfy { $0 == 1 } })
        #expect(counting.late.load(ordering: .relaxed) == 0)
        try waitFor("the tasks to go") {
            LiveObject.census?[.sessionTask] ?? 0 <= before ? () : nil
        }
    }

    @Test func `US-88 each task of a run loop completes exactly once, whatever other threads do`() throws {
        let server = try Self.server()
        let counting = Counting()
        let (made, done) = (Box<[URLSessionTask]>([]), Latch())
        let thread = LoopThread { loop in
            let session = URLSession(configuration: .ephemeral, delegate: counting, runLoop: loop)
            made.value = (0..<Self.count).map { session.dataTask(with: server.url("/\($0)")) }
            loop.run { done.isOpen }
            session.finishTasksAndInvalidate()
            loop.run { counting.invalid.load(ordering: .relaxed) == 1 }
        }
        let tasks = try waitFor("the tasks") { made.value.isEmpty ? nil : made.value }
        try Self.shake(tasks)
        done.open()
        try thread.value()
        made.value = []
        #expect(counting.ends.withLock { $0.count } == Self.count)
        #expect(counting.ends.withLock { $0.values.allSatisfy { $0 == 1 } })
        #expect(counting.late.load(ordering: .relaxed) == 0)
    }

    @Test func `US-88 nothing is left of a session and its tasks, no thread and no descriptor either`() throws
    {
        try BuiltFiles.play("stress", ["\(Self.count)"], of: "RondoTaskProbe")
    }

    @Test func `US-88 invalidation at any moment ends every task once`() throws {
        let server = try Self.server()
        for round in 0..<20 {
            let counting = Counting()
            let session = URLSession(configuration: .ephemeral, delegate: counting, delegateQueue: nil)
            let tasks = (0..<20).map { session.dataTask(with: server.url("/\($0)")) }
            let threads = [
                LoopThread { _ in for task in tasks { task.resume() } },
                LoopThread { _ in
                    for _ in 0..<(round * 50) { sched_yield() }
                    session.invalidateAndCancel()
                },
            ]
            for thread in threads { try thread.value() }
            try waitFor("the session's end") { counting.invalid.load(ordering: .relaxed) == 1 ? () : nil }
            #expect(counting.ends.withLock { $0.count } == 20)
            #expect(counting.ends.withLock { $0.values.allSatisfy { $0 == 1 } })
            #expect(counting.late.load(ordering: .relaxed) == 0)
        }
    }
}
