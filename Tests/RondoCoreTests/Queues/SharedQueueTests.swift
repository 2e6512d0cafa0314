import RondoTestSupport
import RondoTesting
import Testing

@testable import RondoCore

/// The clients of a shared queue: when they are served and notified.
@Suite(.timeLimit(.minutes(5)), .leavesNothing) struct SharedQueueTests {
    private final class Client: RegisteredClient {
        let name: String
        let log: EventLog
        let onDelay: @Sendable () -> Void

        init(_ name: String, _ log: EventLog, onDelay: @escaping @Sendable () -> Void = {}) {
            self.name = name
            self.log = log
            self.onDelay = onDelay
        }

        func serve(by queue: SharedQueue) -> Bool {
            log.note("served \(name)")
            return true
        }

        func loopHasEnded() { log.note("\(name) is lost") }

        func shortDelayHasPassed() {
            log.note("delay of \(name)")
            onDelay()
        }
    }

    @Test func `the end of a short delay is notified once, to clients that have asked`() throws {
        let log = EventLog()
        try onLoopThread { loop in
            let clients = ["a", "b", "c"].map { Client($0, log, onDelay: { loop.stop() }) }
            let registrations = clients.map { SharedQueue.join(loop, .default, label: nil, as: $0) }
            registrations[0].notifyAfterShortDelay()
            _ = loop.run(in: .default, for: 60, returnAfterSourceHandled: false)
            registrations[1].notifyAfterShortDelay()
            // A client that has left is not notified any more.
            registrations[2].notifyAfterShortDelay()
            registrations[2].leave()
            _ = loop.run(in: .default, for: 60, returnAfterSourceHandled: false)
            registrations[0].leave()
            registrations[1].leave()
            #expect(loop.run(in: .default, for: 60, returnAfterSourceHandled: false) == .finished)
        }
        #expect(log.entries == ["delay of a", "delay of b"])
    }

    @Test func `a withdrawn client is not served, and others are`() throws {
        let log = EventLog()
        try onLoopThread { loop in
            let clients = ["a", "b", "c"].map { Client($0, log) }
            let registrations = clients.map { SharedQueue.join(loop, .default, label: nil, as: $0) }
            for (client, registration) in zip(clients, registrations) { registration.queue.enqueue(client) }
            registrations[0].queue.withdraw(clients[1])
            #expect(loop.run(in: .default, for: 0, returnAfterSourceHandled: false) == .timedOut)
            for (client, registration) in zip(clients, registrations) { registration.queue.enqueue(client) }
            for client in clients { registrations[0].queue.withdraw(client) }
            #expect(loop.run(in: .default, for: 0, returnAfterSourceHandled: true) == .timedOut)
            for registration in registrations { registration.leave() }
        }
        #expect(log.entries == ["served a", "served c"])
    }

    /// Runs the loop when it is served.
    private final class Nesting: SharedQueueClient {
        let loop: RunLoop
        let log: EventLog

        init(_ loop: RunLoop, _ log: EventLog) { (self.loop, self.log) = (loop, log) }

        func serve(by queue: SharedQueue) -> Bool {
            log.note("begins")
            _ = loop.run(in: .default, for: 0, returnAfterSourceHandled: false)
            log.note("ends")
            return true
        }
    }

    @Test func `RL-42 clients that wait behind one that runs the loop are served by that run`() throws {
        let log = EventLog()
        try onLoopThread { loop in
            let nesting = Nesting(loop, log)
            let client = Client("other", log)
            let registration = SharedQueue.join(loop, .default, label: nil, as: client)
            registration.queue.enqueue(nesting)
            registration.queue.enqueue(client)
            _ = loop.run(in: .default, for: 0, returnAfterSourceHandled: false)
            registration.leave()
        }
        #expect(log.entries == ["begins", "served other", "ends"])
    }

    // MARK: - Clients enqueued deferred

    /// A client with a number, which stops the loop if that is the last.
    private final class NumberedClient: SharedQueueClient {
        let number: Int
        let log: EventLog
        let loop: RunLoop
        let isLast: Bool

        init(_ number: Int, of count: Int = 1, _ log: EventLog, _ loop: RunLoop) {
            self.number = number
            self.log = log
            self.loop = loop
            isLast = number == count
        }

        func serve(by queue: SharedQueue) -> Bool {
            log.note("served \(number)")
            if isLast { loop.stop() }
            return false
        }
    }

    /// Runs a loop, whose clock stands still, in which `count` descriptors are ready; the callback of each
    /// enqueues a client deferred, and calls `action`. It is stopped when the last client was served.
    private func entries(
        count: Int,
        then action: @escaping @Sendable (SharedQueue, NumberedClient) -> Void = { _, _ in },
        run: @escaping @Sendable (RunLoop, EventLog, ManualClock) -> Void = { loop, _, _ in
            #expect(loop.run(in: .default, for: 60, returnAfterSourceHandled: false) == .stopped)
        }
    ) throws -> [String] {
        let log = EventLog()
        try onLoopThread { loop in
            let clock = ManualClock(advancesAutomatically: false)
            clock.attach(to: loop)
            let queue = SharedQueue.join(loop, .default)
            let pipes = (0..<count).map { _ in Pipe() }
            for pipe in pipes {
                pipe.fileHandleForWriting.write(Data([1]))
                let descriptor = pipe.fileHandleForReading.fileDescriptor
                let source = RunLoop.Source(fileDescriptor: descriptor, interest: .read) { source, _ in
                    source.invalidate()
                    let number = log.count(of: "call") + 1
                    let client = NumberedClient(number, of: count, log, loop)
                    log.note("call")
                    queue.enqueueDeferred(client)
                    action(queue, client)
                }
                loop.add(source, forMode: .default)
            }
            run(loop, log, clock)
            queue.leave()
        }
        return log.entries
    }

    private func served(_ numbers: ClosedRange<Int>) -> [String] { numbers.map { "served \($0)" } }
    private func calls(_ count: Int) -> [String] { Array(repeating: "call", count: count) }

    @Test func `clients enqueued deferred are served together, when all ready descriptors were served`()
        throws
    {
        #expect(try entries(count: 3) == calls(3) + served(1...3))
    }

    @Test func `a single client is served in the next pass`() throws {
        #expect(try entries(count: 1) == ["call", "served 1"])
    }

    @Test func `no more clients wait than pieces of work may be deferred`() throws {
        let most = DeferredWorkList.defaultMaximumCount
        #expect(
            try entries(count: most + 2) == calls(most) + served(1...most) + calls(2)
                + served(most + 1...most + 2))
    }

    @Test func `a client enqueued deferred can be withdrawn`() throws {
        let entries = try entries(count: 3) { queue, client in
            if client.number == 2 { queue.withdraw(client) }
        }
        #expect(entries == ["call", "call", "call", "served 1", "served 3"])
    }

    @Test func `a client enqueued deferred is served in the next run, if the loop is stopped`() throws {
        let entries = try entries(count: 3) { queue, client in
            if client.number == 2 { queue.loop.stop() }
        } run: { loop, log, _ in
            for _ in 1...2 {
                #expect(loop.run(in: .default, for: 60, returnAfterSourceHandled: false) == .stopped)
                log.note("returned")
            }
        }
        #expect(
            entries == ["call", "call", "returned"] + served(1...2) + ["call", "served 3", "returned"])
    }

    @Test func `a nested run that returns after a source serves clients that the outer run has deferred`()
        throws
    {
        let entries = try entries(count: 3) { queue, client in
            guard client.number == 2 else { return }
            let result = queue.loop.run(in: .default, for: 60, returnAfterSourceHandled: true)
            client.log.note("\(result)")
        }
        // The same run serves a ready descriptor too (rule RL-56).
        #expect(
            entries == ["call", "call", "served 1", "served 2", "call", "handledSource", "served 3"])
    }

    /// Runs that return after a source, until all clients were served.
    private func entriesOfSingleRuns(count: Int, pause: TimeInterval) throws -> [String] {
        try entries(count: count) { _, _ in
        } run: { loop, log, clock in
            while log.count(of: "served \(count)") == 0 {
                let result = loop.run(in: .default, for: 60, returnAfterSourceHandled: true)
                #expect(result == .handledSource)
                log.note("returned")
                clock.advance(by: pause)
            }
        }
    }

    /// The entries of those runs: each serves the client that the last one has enqueued, and a ready descriptor (rule
    /// RL-56).
    private func separate(_ numbers: ClosedRange<Int>) -> [String] {
        numbers.flatMap { ["served \($0)", "call", "returned"] }
    }

    @Test func `in a run that returns after a source no client waits for the next run`() throws {
        for pause in [0, 0.001] {
            let entries = try entriesOfSingleRuns(count: 40, pause: pause)
            #expect(entries == ["call", "returned"] + separate(1...39) + ["served 40", "returned"])
        }
    }

    @Test func `RL-31 a run of a single pass leaves no deferred client for later`() throws {
        for returnsAfterSource in [false, true] {
            let entries = try entries(count: 20) { _, _ in
            } run: { loop, log, _ in
                while log.count(of: "served 20") == 0 {
                    _ = loop.run(in: .default, for: 0, returnAfterSourceHandled: returnsAfterSource)
                }
            }
            let expected = ["call"] + (1...19).flatMap { ["served \($0)", "call"] } + ["served 20"]
            #expect(entries == expected)
        }
    }

    @Test func `with an observer no client is deferred, whenever the observer is added`() throws {
        let entries = try entries(count: 4) { queue, client in
            guard client.number == 2 else { return }
            queue.loop.add(RunLoop.Observer(activities: .exit) { _, _ in }, forMode: .tracking)
        }
        #expect(entries.prefix(5) == ["call", "call", "served 1", "served 2", "call"])
    }

    @Test func `SRC-6 a client enqueued deferred is served after a source that is signalled meanwhile`()
        throws
    {
        let entries = try entries(count: 3) { queue, client in
            guard client.number == 2 else { return }
            let source = RunLoop.Source(order: 1) { client.log.note("source") }
            queue.loop.add(source, forMode: .default)
            source.signal()
        }
        #expect(entries == ["call", "call", "source", "call"] + served(1...3))
    }

    @Test func `the loop sleeps when all deferred clients were withdrawn`() throws {
        let entries = try entries(count: 3) { queue, client in
            queue.withdraw(client)
        } run: { loop, log, _ in
            let elsewhere = LoopThread { _ in
                #expect(throws: Never.self) { try loop.waitUntilAsleep() }
                loop.stop()
            }
            #expect(loop.run(in: .default, for: 60, returnAfterSourceHandled: false) == .stopped)
            #expect(throws: Never.self) { try elsewhere.value() }
        }
        #expect(entries == calls(3))
    }

    @Test func `UC-16 the last member that leaves a mode wakes its loop`() throws {
        let result = try onLoopThread { loop in
            let queue = SharedQueue.join(loop, .default)
            loop.performWithoutWaking(inModes: [.default]) { queue.leave() }
            return loop.run(in: .default, for: 60, returnAfterSourceHandled: false)
        }
        #expect(result == .finished)
    }

    @Test func `a client that another thread enqueues wakes the loop`() throws {
        let log = EventLog()
        try onLoopThread { loop in
            let queue = SharedQueue.join(loop, .default)
            let elsewhere = LoopThread { _ in
                #expect(throws: Never.self) { try loop.waitUntilAsleep() }
                queue.enqueueDeferred(NumberedClient(1, log, loop))
            }
            #expect(loop.run(in: .default, for: 60, returnAfterSourceHandled: false) == .stopped)
            #expect(throws: Never.self) { try elsewhere.value() }
            queue.leave()
        }
        #expect(log.entries == ["served 1"])
    }

    /// A client that a thread waits for.
    private final class WaitingClient: SharedQueueClient {
        let served = DispatchSemaphore(value: 0)

        func serve(by queue: SharedQueue) -> Bool {
            served.signal()
            return true
        }
    }

    @Test(arguments: [false, true])
    func `no client that several threads enqueue at once is lost`(returnAfterSourceHandled: Bool) throws {
        let (begun, over) = (Latch(), Latch())
        let serving = LoopThread { loop in
            let source = RunLoop.Source {}
            loop.add(source, forMode: .default)
            begun.open()
            while !over.isOpen {
                _ = loop.run(
                    in: .default, for: .infinity, returnAfterSourceHandled: returnAfterSourceHandled)
            }
            source.invalidate()
        }
        let loop = try serving.loop
        try begun.wait()
        let queue = SharedQueue.join(loop, .default)
        let asking = (0..<3).map { _ in
            LoopThread { _ in
                let client = WaitingClient()
                for number in 0..<500 {
                    queue.enqueue(client)
                    guard client.served.wait(timeout: .now() + 30) == .success else { return number }
                }
                return 500
            }
        }
        let counts = try asking.map { try $0.value() }
        #expect(counts == [500, 500, 500])
        over.open()
        loop.performWithoutWaking(inModes: [.default]) { loop.stop() }
        queue.leave()
        loop.wakeUp()
        try serving.value()
    }

    @Test func `a registered client is notified that the thread has ended, with a queue of its own too`()
        throws
    {
        let log = EventLog()
        let registrations = try onLoopThread { loop in
            [nil, "named"].map { label in
                SharedQueue.join(
                    loop, .default, label: label, as: Client(label ?? "shared", log))
            }
        }
        #expect(Set(log.entries) == ["shared is lost", "named is lost"])
        #expect(registrations.allSatisfy { $0.queue.hasLoopEnded })
        for registration in registrations { registration.leave() }
    }
}
