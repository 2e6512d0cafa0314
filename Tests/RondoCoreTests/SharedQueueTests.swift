import RondoTestSupport
import RondoTesting
import Testing

@testable import RondoCore

/// Clients of a shared queue: which are served and told, when, and until when.
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
            log.note("turn of \(name)")
            return true
        }

        func loopHasEnded() { log.note("\(name) is lost") }

        func shortDelayHasPassed() {
            log.note("delay of \(name)")
            onDelay()
        }
    }

    @Test func `a short delay is told once, to clients that have asked`() throws {
        let log = EventLog()
        try onLoopThread { loop in
            let clients = ["a", "b", "c"].map { Client($0, log, onDelay: { loop.stop() }) }
            let registrations = clients.map { SharedQueue.join(loop, .default, label: nil, as: $0) }
            registrations[0].notifyAfterShortDelay()
            _ = loop.run(in: .default, for: 60, returnAfterSourceHandled: false)
            registrations[1].notifyAfterShortDelay()
            // Whoever has left is told no more.
            registrations[2].notifyAfterShortDelay()
            registrations[2].leave()
            _ = loop.run(in: .default, for: 60, returnAfterSourceHandled: false)
            registrations[0].leave()
            registrations[1].leave()
            #expect(loop.run(in: .default, for: 60, returnAfterSourceHandled: false) == .finished)
        }
        #expect(log.entries == ["delay of a", "delay of b"])
    }

    @Test func `a turn that is withdrawn does not come, and those of others do`() throws {
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
        #expect(log.entries == ["turn of a", "turn of c"])
    }

    /// Runs the loop in its turn.
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

    @Test func `RL-42 those who wait behind a turn are served by a run in it`() throws {
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
        #expect(log.entries == ["begins", "turn of other", "ends"])
    }

    // MARK: - Turns that may wait

    /// Has a number, and stops the loop where that is the last.
    private final class Beginner: SharedQueueClient {
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
            log.note("turn \(number)")
            if isLast { loop.stop() }
            return false
        }
    }

    /// Runs a loop, whose clock stands still, in which `count` descriptors are ready; the callback of each asks for a turn
    /// that may wait, and calls `action`. It is stopped when the last has begun.
    private func entries(
        count: Int,
        then action: @escaping @Sendable (SharedQueue, Beginner) -> Void = { _, _ in },
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
                    let beginner = Beginner(number, of: count, log, loop)
                    log.note("call")
                    queue.enqueueDeferred(beginner)
                    action(queue, beginner)
                }
                loop.add(source, forMode: .default)
            }
            run(loop, log, clock)
            queue.leave()
        }
        return log.entries
    }

    private func turns(_ numbers: ClosedRange<Int>) -> [String] { numbers.map { "turn \($0)" } }
    private func calls(_ count: Int) -> [String] { Array(repeating: "call", count: count) }

    @Test func `turns that may wait come together, when all that is ready has been served`() throws {
        #expect(try entries(count: 3) == calls(3) + turns(1...3))
    }

    @Test func `one alone has its turn in the next pass`() throws {
        #expect(try entries(count: 1) == ["call", "turn 1"])
    }

    @Test func `no more turns wait than are deferred at most`() throws {
        let most = DeferredWorkList.defaultMaximumCount
        #expect(
            try entries(count: most + 2) == calls(most) + turns(1...most) + calls(2)
                + turns(most + 1...most + 2))
    }

    @Test func `a deferred turn is withdrawn with the others`() throws {
        let entries = try entries(count: 3) { queue, beginner in
            if beginner.number == 2 { queue.withdraw(beginner) }
        }
        #expect(entries == ["call", "call", "call", "turn 1", "turn 3"])
    }

    @Test func `a deferred turn comes in the next run, if the loop is stopped`() throws {
        let entries = try entries(count: 3) { queue, beginner in
            if beginner.number == 2 { queue.loop.stop() }
        } run: { loop, log, _ in
            for _ in 1...2 {
                #expect(loop.run(in: .default, for: 60, returnAfterSourceHandled: false) == .stopped)
                log.note("returned")
            }
        }
        #expect(
            entries == ["call", "call", "returned"] + turns(1...2) + ["call", "turn 3", "returned"])
    }

    @Test func `a nested run that returns after a source has the turns that wait further out`() throws {
        let entries = try entries(count: 3) { queue, beginner in
            guard beginner.number == 2 else { return }
            let result = queue.loop.run(in: .default, for: 60, returnAfterSourceHandled: true)
            beginner.log.note("\(result)")
        }
        // In the same run what is ready as well (rule RL-56).
        #expect(
            entries == ["call", "call", "turn 1", "turn 2", "call", "handledSource", "turn 3"])
    }

    /// Runs that return after a source, until all have begun.
    private func entriesOfSingleRuns(count: Int, pause: TimeInterval) throws -> [String] {
        try entries(count: count) { _, _ in
        } run: { loop, log, clock in
            while log.count(of: "turn \(count)") == 0 {
                let result = loop.run(in: .default, for: 60, returnAfterSourceHandled: true)
                #expect(result == .handledSource)
                log.note("returned")
                clock.advance(by: pause)
            }
        }
    }

    /// What each of them serves: the turn that the last one has asked for, and what is ready (rule RL-56).
    private func separate(_ numbers: ClosedRange<Int>) -> [String] {
        numbers.flatMap { ["turn \($0)", "call", "returned"] }
    }

    @Test func `where the run returns after a source no turn waits for the next run`() throws {
        for pause in [0, 0.001] {
            let entries = try entriesOfSingleRuns(count: 40, pause: pause)
            #expect(entries == ["call", "returned"] + separate(1...39) + ["turn 40", "returned"])
        }
    }

    @Test func `RL-31 a run that makes one pass leaves no turn for later`() throws {
        for returnsAfterSource in [false, true] {
            let entries = try entries(count: 20) { _, _ in
            } run: { loop, log, _ in
                while log.count(of: "turn 20") == 0 {
                    _ = loop.run(in: .default, for: 0, returnAfterSourceHandled: returnsAfterSource)
                }
            }
            let expected = ["call"] + (1...19).flatMap { ["turn \($0)", "call"] } + ["turn 20"]
            #expect(entries == expected)
        }
    }

    @Test func `where an observer is registered no turn waits, whenever it comes`() throws {
        let entries = try entries(count: 4) { queue, beginner in
            guard beginner.number == 2 else { return }
            queue.loop.add(RunLoop.Observer(activities: .exit) { _, _ in }, forMode: .tracking)
        }
        #expect(entries.prefix(5) == ["call", "call", "turn 1", "turn 2", "call"])
    }

    @Test func `SRC-6 a deferred turn comes after a source that is signalled meanwhile`() throws {
        let entries = try entries(count: 3) { queue, beginner in
            guard beginner.number == 2 else { return }
            let source = RunLoop.Source(order: 1) { beginner.log.note("source") }
            queue.loop.add(source, forMode: .default)
            source.signal()
        }
        #expect(entries == ["call", "call", "source", "call"] + turns(1...3))
    }

    @Test func `the loop sleeps when all turns that waited were withdrawn`() throws {
        let entries = try entries(count: 3) { queue, beginner in
            queue.withdraw(beginner)
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

    @Test func `UC-16 who leaves a mode last wakes its loop`() throws {
        let result = try onLoopThread { loop in
            let queue = SharedQueue.join(loop, .default)
            loop.performWithoutWaking(inModes: [.default]) { queue.leave() }
            return loop.run(in: .default, for: 60, returnAfterSourceHandled: false)
        }
        #expect(result == .finished)
    }

    @Test func `what another thread asks for wakes the loop`() throws {
        let log = EventLog()
        try onLoopThread { loop in
            let queue = SharedQueue.join(loop, .default)
            let elsewhere = LoopThread { _ in
                #expect(throws: Never.self) { try loop.waitUntilAsleep() }
                queue.enqueueDeferred(Beginner(1, log, loop))
            }
            #expect(loop.run(in: .default, for: 60, returnAfterSourceHandled: false) == .stopped)
            #expect(throws: Never.self) { try elsewhere.value() }
            queue.leave()
        }
        #expect(log.entries == ["turn 1"])
    }

    /// Lets whoever has asked for its turn go on.
    private final class Asker: SharedQueueClient {
        let turn = DispatchSemaphore(value: 0)

        func serve(by queue: SharedQueue) -> Bool {
            turn.signal()
            return true
        }
    }

    @Test(arguments: [false, true])
    func `what several threads ask for at once is never lost`(returnAfterSourceHandled: Bool) throws {
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
                let asker = Asker()
                for number in 0..<500 {
                    queue.enqueue(asker)
                    guard asker.turn.wait(timeout: .now() + 30) == .success else { return number }
                }
                return 500
            }
        }
        let turns = try asking.map { try $0.value() }
        #expect(turns == [500, 500, 500])
        over.open()
        loop.performWithoutWaking(inModes: [.default]) { loop.stop() }
        queue.leave()
        loop.wakeUp()
        try serving.value()
    }

    @Test func `a registered client hears that the thread has ended, whatever its queue is called`() throws {
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
