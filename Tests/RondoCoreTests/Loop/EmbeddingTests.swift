import RondoCore
import RondoMutex
import RondoTestSupport
import Testing

/// A loop that a foreign loop drives, which is `poll(2)` here.
@Suite(.leavesNothing) struct EmbeddingTests {
    @Test func `driven from poll, timers fire on their dates and nothing spins`() throws {
        let log = EventLog()
        let turns = try onEmbeddedLoop { loop, embedding in
            let dates = DateLog()
            let timer = Timer(timeInterval: 0.02, repeats: true) { timer in
                dates.note(Date())
                log.note("tick")
                if log.entries.count == 3 { timer.invalidate() }
            }
            let first = timer.fireDate
            loop.add(timer, forMode: .work)
            guard embedding.nextDeadline == first else { return -1 }
            let turns = embedding.drive { log.entries.count == 3 }
            guard let date = dates.dates.first, date >= first, embedding.nextDeadline == nil else {
                return -2
            }
            return embedding.isIdle ? turns : -3
        }
        #expect(log.entries == ["tick", "tick", "tick"])
        // One turn for each firing, and one for the members that were in the mode at first.
        #expect((3...5).contains(turns), "\(turns)")
    }

    @Test func `a wake-up asks for one turn, also of a mode that is empty`() throws {
        let (wasIdle, turnsIdle) = try onEmbeddedLoop { loop, embedding -> ([Bool], [Bool]) in
            embedding.settle()
            var (before, after): ([Bool], [Bool]) = ([], [])
            let port = Port()
            for isEmpty in [true, false] {
                if !isEmpty { loop.add(port, forMode: .work) }
                embedding.settle()
                for _ in 1...3 {
                    _ = try? onLoopThread { _ in loop.wakeUp() }
                    before.append(embedding.isIdle)
                    embedding.turn()
                    after.append(embedding.isIdle)
                }
            }
            port.invalidate()
            return (before, after)
        }
        #expect(wasIdle == Array(repeating: false, count: 6))
        #expect(turnsIdle == Array(repeating: true, count: 6))
    }

    @Test func `an embedded loop that was called with nothing to do is not to be run`() throws {
        let timer = Timer(timeInterval: 1000, repeats: false) { _ in }
        let obstacle = try onEmbeddedLoop { loop, embedding in
            embedding.settle()
            loop.add(timer, forMode: .work)
            return timer.whyNotDelivering
        }
        #expect(
            obstacle.description.hasSuffix(" was run in work, found it empty and returned at once"),
            "\(obstacle)")
    }

    @Test func `driven from poll, every ready descriptor is served, one a turn`() throws {
        let log = EventLog()
        let isIdle = try onEmbeddedLoop { loop, embedding in
            let pipes = (1...3).map { _ in BytePipe() }
            for (number, pipe) in pipes.enumerated() {
                loop.add(pipe.source("\(number)", to: log), forMode: .work)
            }
            embedding.settle()
            for pipe in pipes { pipe.write() }
            embedding.drive { log.entries.count == 3 }
            return embedding.isIdle
        }
        #expect(log.entries.sorted() == ["0", "1", "2"])
        #expect(isIdle)
    }

    @Test func `driven from poll, a descriptor may be watched by two sources, whose interest changes`() throws
    {
        let log = EventLog()
        let steps = try onEmbeddedLoop { loop, embedding in
            let (one, other) = socketPair()
            defer {
                close(one)
                close(other)
            }
            let reader = RunLoop.Source(fileDescriptor: one, interest: .read) { _, _ in
                log.note("read")
                var byte: UInt8 = 0
                _ = recv(one, &byte, 1, 0)
            }
            let writer = RunLoop.Source(fileDescriptor: one, interest: .write) { source, _ in
                log.note("write")
                source.interest = []
            }
            loop.add(reader, forMode: .work)
            loop.add(writer, forMode: .work)
            embedding.drive { log.entries == ["write"] }
            embedding.settle()
            var steps = [embedding.isIdle]
            var byte: UInt8 = 1
            _ = send(other, &byte, 1, 0)
            embedding.drive { log.entries.last == "read" }
            steps.append(embedding.isIdle)
            writer.interest = .write
            embedding.drive { log.entries.last == "write" }
            // Without the reader the bytes that arrive are not served.
            loop.remove(reader, forMode: .work)
            embedding.settle()
            _ = send(other, &byte, 1, 0)
            steps.append(embedding.isIdle)
            for source in [reader, writer] { source.invalidate() }
            embedding.settle()
            return steps
        }
        #expect(steps == [true, true, true])
        #expect(log.entries == ["write", "read", "write"])
    }

    @Test func `driven from poll, a regular file is always ready`() throws {
        let log = EventLog()
        let steps = try onEmbeddedLoop { loop, embedding in
            let descriptor = open("/proc/self/exe", O_RDONLY)
            defer { close(descriptor) }
            let source = RunLoop.Source(fileDescriptor: descriptor, interest: .read) { _, _ in
                log.note("file")
            }
            loop.add(source, forMode: .work)
            embedding.drive { log.entries.count == 5 }
            var steps = [embedding.isIdle]
            source.invalidate()
            embedding.settle()
            steps.append(embedding.isIdle)
            return steps
        }
        #expect(log.count(of: "file") == 5)
        #expect(steps == [false, true])
    }

    @Test func `driven from poll, another thread's blocks, signals and timers come`() throws {
        let log = EventLog()
        let isIdle = try onEmbeddedLoop { loop, embedding in
            let source = RunLoop.Source { log.note("source") }
            loop.add(source, forMode: .work)
            embedding.settle()
            let other = LoopThread { _ in
                for number in 1...3 { loop.perform(inModes: [.work]) { log.note("block \(number)") } }
                source.signal()
                loop.wakeUp()
                loop.add(
                    Timer(timeInterval: 0.001, repeats: false) { _ in log.note("timer") }, forMode: .work)
            }
            embedding.drive { log.entries.count == 5 }
            _ = try? other.value()
            embedding.settle()
            return embedding.isIdle
        }
        #expect(log.entries.filter { $0.hasPrefix("block") } == ["block 1", "block 2", "block 3"])
        #expect(log.count(of: "source") == 1)
        #expect(log.count(of: "timer") == 1)
        #expect(isIdle)
    }

    @Test func `events that arrive during a turn are served after it`() throws {
        let log = EventLog()
        let ended = try onEmbeddedLoop { loop, embedding in
            let late = BytePipe()
            late.write()
            let mine = RunLoop.Source { log.note("mine") }
            let theirs = RunLoop.Source { log.note("theirs") }
            loop.add(mine, forMode: .work)
            loop.add(theirs, forMode: .work)
            loop.addDueTimer("timer", to: log, mode: .work) {
                // No wake-up: in a loop of its own, the next pass would serve it.
                mine.signal()
                _ = try? onLoopThread { _ in
                    theirs.signal()
                    loop.wakeUp()
                    loop.add(late.source("descriptor", to: log), forMode: .work)
                }
            }
            return embedding.drive { log.entries.count == 4 } > 0
        }
        #expect(ended)
        #expect(log.entries.sorted() == ["descriptor", "mine", "theirs", "timer"])
    }

    @Test func `a ready descriptor that has left the mode last does not keep the foreign loop busy`() throws {
        let log = EventLog()
        let isIdle = try onEmbeddedLoop { loop, embedding in
            let pipe = BytePipe()
            let source = pipe.source("ready", to: log)
            loop.add(source, forMode: .work)
            embedding.settle()
            loop.remove(source, forMode: .work)
            pipe.write()
            embedding.settle()
            return embedding.isIdle
        }
        #expect(isIdle)
        #expect(log.entries == [])
    }

    /// While another descriptor has the same open file, the kernel reports a closed one from an epoll set.
    @Test(arguments: [false, true])
    func `BR-2 a source whose descriptor is closed at its end does not keep the foreign loop busy`(
        isNumberUsedAgain: Bool
    ) throws {
        let log = EventLog()
        let steps = try onEmbeddedLoop { loop, embedding in
            let ((one, other), (quiet, writer)) = (socketPair(), socketPair())
            let own = fcntl(one, F_DUPFD_CLOEXEC, 0)
            let later = isNumberUsedAgain ? own : quiet
            let next = RunLoop.Source(fileDescriptor: later, interest: .read) { _, _ in
                var byte: UInt8 = 0
                log.note("next \(recv(quiet, &byte, 1, 0))")
            }
            let ending = RunLoop.Source(fileDescriptor: own, interest: .read) { source, _ in
                log.note("end")
                source.invalidate()
                if isNumberUsedAgain { dup2(quiet, own) } else { close(own) }
                loop.add(next, forMode: .work)
            }
            loop.add(ending, forMode: .work)
            embedding.settle()
            close(other)
            embedding.drive { log.entries == ["end"] }
            embedding.settle()
            var steps = [embedding.isIdle]
            // The descriptors that are wanted are in the new set.
            var byte: UInt8 = 1
            _ = send(writer, &byte, 1, 0)
            embedding.drive { log.entries.count == 2 }
            embedding.settle()
            steps.append(embedding.isIdle)
            next.invalidate()
            embedding.settle()
            for descriptor in [one, quiet, writer] + (isNumberUsedAgain ? [own] : []) { close(descriptor) }
            return steps
        }
        #expect(steps == [true, true])
        #expect(log.entries == ["end", "next 1"])
    }

    @Test func `PL-19 a closure that waits for another mode does not keep the foreign loop busy`() throws {
        let log = EventLog()
        let isIdle = try onEmbeddedLoop { loop, embedding in
            loop.perform(order: 0, modes: [.other], target: log) { $0.note("other") }
            embedding.settle()
            let isIdle = embedding.isIdle
            loop.perform(order: 0, modes: [.work], target: log) { $0.note("work") }
            embedding.drive { log.entries == ["work"] }
            loop.poll(.other)
            return isIdle
        }
        #expect(isIdle)
        #expect(log.entries == ["work", "other"])
    }

    @Test(arguments: [false, true])
    func `NQ-19 a notification for an empty mode does not keep the foreign loop busy`(isForIdleLoop: Bool)
        throws
    {
        let entries = try onEmbeddedLoop { loop, embedding in
            let posts = Posts()
            posts.enqueue("notification", isForIdleLoop ? .whenIdle : .asap, modes: [.work])
            embedding.settle()
            posts.log.note(embedding.isIdle ? "idle" : "busy")
            let port = Port()
            loop.add(port, forMode: .work)
            embedding.drive { posts.entries.count == 2 }
            port.invalidate()
            return posts.entries
        }
        #expect(entries == ["idle", "notification"])
    }

    @Test func `a turn returns how it ended, and serves nothing of other modes`() throws {
        let log = EventLog()
        let results = try onEmbeddedLoop { loop, embedding in
            var results = [embedding.turn()]
            loop.addSignalled("other", to: log, mode: .other)
            loop.addSignalled("work", to: log, mode: .work)
            results.append(embedding.turn())
            return results
        }
        #expect(results == [.finished, .timedOut])
        #expect(log.entries == ["work"])
    }

    @Test func `a run of another mode, outside a turn, loses nothing for the embedded one`() throws {
        let log = EventLog()
        let ended = try onEmbeddedLoop { loop, embedding in
            embedding.settle()
            // (This alone asks for no turn.)
            loop.performWithoutWaking(inModes: [.other]) {
                // The loop is awake in the other mode, and takes this wake-up.
                _ = try? onLoopThread { _ in loop.perform(inModes: [.work]) { log.note("block") } }
            }
            loop.poll(.other)
            guard embedding.drive(until: { log.entries == ["block"] }) > 0 else { return false }

            loop.add(Timer(timeInterval: 0.02, repeats: false) { _ in log.note("timer") }, forMode: .work)
            embedding.turn()
            // Sets the timerfd for another date, and wakes up from it.
            loop.add(Port(), forMode: .other)
            loop.add(Timer(timeInterval: 1000, repeats: false) { _ in }, forMode: .other)
            loop.run(mode: .other, before: Date(timeIntervalSinceNow: 0.001))
            return embedding.drive { log.entries.count == 2 } > 0
        }
        #expect(ended)
        #expect(log.entries == ["block", "timer"])
    }

    @Test func `a source signalled before the embedding is served in its first turn`() throws {
        let log = EventLog()
        let turns = try onLoopThread { loop -> Int in
            loop.addSignalled("before", to: log, mode: .work)
            guard let embedding = try? loop.embed(mode: .work) else { return 0 }
            defer { embedding.invalidate() }
            return embedding.drive { log.entries == ["before"] }
        }
        #expect(turns == 1)
    }

    @Test func `SRC-27 a source that is refused at the end of a turn causes another turn`()
        throws
    {
        let log = EventLog()
        let (wasValid, turns) = try onEmbeddedLoop { loop, embedding -> (Bool, Int) in
            let ends = socketPair()
            let (first, second) = (
                RunLoop.Source(fileDescriptor: ends.0, interest: .read) { _, _ in },
                RunLoop.Source(fileDescriptor: ends.0, interest: .read) { _, _ in }
            )
            loop.add(first, forMode: .work)
            loop.add(second, forMode: .work)
            let pipe = BytePipe()
            // This callback comes after the look of the pass, so that the end of the turn finds the closed
            // descriptor.
            let closing = pipe.source("closes", to: log) {
                close(ends.0)
                loop.remove(first, forMode: .work)
            }
            loop.add(closing, forMode: .work)
            embedding.settle()
            pipe.write()
            embedding.turn()
            let wasValid = second.isValid && log.entries == ["closes"]
            let turns = embedding.drive { !second.isValid }
            closing.invalidate()
            close(ends.1)
            return (wasValid, turns)
        }
        #expect(wasValid)
        #expect(turns > 0)
    }

    @Test func `an embedding that has ended wakes no foreign loop, and another one may begin`() throws {
        let log = EventLog()
        let steps = try onLoopThread { loop -> [Bool] in
            guard let first = try? loop.embed(mode: .work) else { return [] }
            first.settle()
            first.invalidate()
            loop.perform(inModes: [.work]) { log.note("block") }
            var steps = [first.isIdle, log.entries == []]
            guard var second = Optional(try? loop.embed(mode: .other)) else { return [] }
            // The end of the first embedding does not affect the second.
            first.invalidate()
            loop.perform(inModes: [.other]) { log.note("other") }
            second?.drive { log.entries == ["other"] }
            steps.append(log.entries == ["other"])
            second = nil
            loop.poll(.work)
            steps.append(log.entries == ["other", "block"])
            return steps
        }
        #expect(steps == [true, true, true, true])
    }

    @Test func `a source that has run the embedded mode in its callback stays in it`() throws {
        let log = EventLog()
        let steps = try onEmbeddedLoop { loop, embedding -> [Int] in
            let pipe = BytePipe()
            let source = pipe.source("served", to: log) {
                if log.entries.count == 1 { loop.poll(.work) }
            }
            loop.add(source, forMode: .work)
            loop.add(Port(), forMode: .work)
            embedding.settle()
            pipe.write()
            var steps = [embedding.drive { log.entries.count == 1 }]
            embedding.settle()
            pipe.write()
            steps.append(embedding.drive { log.entries.count == 2 })
            source.invalidate()
            return steps
        }
        #expect(steps.allSatisfy { $0 > 0 }, "\(steps)")
    }

    @Test func `an embedding that is invalidated on another thread traps, and names both`() async throws {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            /// `@unchecked Sendable`: the test tries this misuse.
            struct Smuggled: @unchecked Sendable { let embedding: RunLoop.Embedding? }
            let thread = RunLoopThread(name: "alpha")
            let loop = thread.start()
            let made = Latch()
            nonisolated(unsafe) var smuggled = Smuggled(embedding: nil)
            loop.perform {
                smuggled = Smuggled(embedding: try? loop.embed(mode: .other))
                made.open()
            }
            try made.wait()
            let other = RunLoopThread(name: "beta")
            other.start()
            other.perform { smuggled.embedding?.invalidate() }
            other.join()
        }
        let text = try #require(result).standardErrorText
        #expect(text.contains("Embedding.invalidate()") && text.contains("beta") && text.contains("alpha"))
    }

    @Test func `descriptors of embeddings are closed`() async {
        await #expect(processExitsWith: .success) {
            try keepsDescriptors {
                try onEmbeddedLoop { loop, embedding in
                    let log = EventLog()
                    let pipe = BytePipe()
                    loop.add(pipe.source("ready", to: log), forMode: .work)
                    pipe.write()
                    embedding.drive { log.entries == ["ready"] }
                }
            }
        }
    }

    @Test func `embedding two modes of one loop traps, and so does the common name`() async throws {
        let twice = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            try onLoopThread { loop in
                let first = try? loop.embed(mode: .work)
                let second = try? loop.embed(mode: .other)
                withExtendedLifetime((first, second)) {}
            }
        }
        try #expect(
            #require(twice).standardErrorText.contains(
                "One mode of a run loop is embedded at a time; invalidate the first embedding."))
        let common = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            try onLoopThread { loop in
                let embedding = try? loop.embed(mode: .common)
                withExtendedLifetime(embedding) {}
            }
        }
        try #expect(
            #require(common).standardErrorText.contains(
                "The common name is not a mode: embed one of the common modes."))
    }
}

/// A fresh loop whose work mode is embedded while `body` lasts.
@discardableResult
private func onEmbeddedLoop<Value: Sendable>(
    _ body: @escaping @Sendable (RunLoop, RunLoop.Embedding) -> Value
) throws -> Value {
    let value = try onLoopThread { loop -> Value? in
        guard let embedding = try? loop.embed(mode: .work) else { return nil }
        defer { embedding.invalidate() }
        return body(loop, embedding)
    }
    guard let value else { throw NeverCame(description: "the loop could not be embedded") }
    return value
}

extension RunLoop.Embedding {
    /// Waits and turns, as a foreign loop does, until `isOver`.
    ///
    /// - Returns: How many turns it made; -1 if nothing came, or turns without end.
    @discardableResult
    fileprivate func drive(until isOver: () -> Bool) -> Int {
        var turns = 0
        while !isOver() {
            var request = pollfd(fd: fileDescriptor, events: Int16(POLLIN), revents: 0)
            guard poll(&request, 1, 60_000) > 0, turns < 10_000 else { return -1 }
            turn()
            turns += 1
        }
        return turns
    }

    /// Whether the foreign loop would sleep now.
    fileprivate var isIdle: Bool {
        var request = pollfd(fd: fileDescriptor, events: Int16(POLLIN), revents: 0)
        return poll(&request, 1, 0) == 0
    }

    /// Turns until there is nothing to do, a few times at most.
    fileprivate func settle() {
        for _ in 1...10 where !isIdle { turn() }
    }
}

private func socketPair() -> (Int32, Int32) {
    var ends: [Int32] = [-1, -1]
    let status = socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &ends)
    precondition(status == 0, "no socket pair")
    for end in ends { _ = fcntl(end, F_SETFL, O_NONBLOCK) }
    return (ends[0], ends[1])
}
