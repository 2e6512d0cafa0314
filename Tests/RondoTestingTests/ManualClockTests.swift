import RondoCore
import RondoTestSupport
import RondoTesting
import Testing

/// Hours of timers in no time.
@Suite(.leavesNothing) struct ManualClockTests {
    @Test func `timers hours apart fire one after the other, on their dates by the clock`() throws {
        let log = EventLog()
        let result = try onHeldLoop { loop, clock in
            for hours in [3.0, 1, 2] {
                let timer = Timer(timeInterval: hours * 3600, repeats: false) { _ in
                    log.note("\(hours) at \(clock.elapsed / 3600)")
                }
                loop.add(timer, forMode: .work)
            }
            return loop.run(in: .work, for: .infinity, returnAfterSourceHandled: false)
        }
        #expect(result == .finished)
        #expect(log.entries == ["1.0 at 1.0", "2.0 at 2.0", "3.0 at 3.0"])
    }

    @Test func `TM-4 TM-5 TM-6 a repeating timer keeps its grid, and fires once for what it has missed`()
        throws
    {
        let log = EventLog()
        try onHeldLoop { loop, clock in
            let timer = Timer(timeInterval: 60, repeats: true) { timer in
                log.note("\(clock.elapsed)")
                switch log.entries.count {
                // A callback that lasts two and a half intervals.
                case 2: clock.advance(by: 150)
                case 5: timer.invalidate()
                default: break
                }
            }
            loop.add(timer, forMode: .work)
            _ = loop.run(in: .work, for: .infinity, returnAfterSourceHandled: false)
        }
        #expect(log.entries == ["60.0", "120.0", "300.0", "360.0", "420.0"])
    }

    @Test func `RL-36 run(until:) ends at its date and not before`() throws {
        let log = EventLog()
        try onHeldLoop { loop, clock in
            let limit = clock.date.addingTimeInterval(7200)
            loop.add(
                Timer(timeInterval: 3600, repeats: false) { _ in log.note("an hour") }, forMode: .default)
            loop.add(
                Timer(timeInterval: 7201, repeats: false) { _ in log.note("too late") }, forMode: .default)
            loop.run(until: limit)
            log.note("\(abs(clock.date.timeIntervalSince(limit)) < 0.001)")
        }
        #expect(log.entries == ["an hour", "true"])
    }

    @Test func `RL-33 RL-37 limits are meant by the clock`() throws {
        let log = EventLog()
        let result = try onHeldLoop { loop, clock in
            loop.add(Port(), forMode: .work)
            let result = loop.run(in: .work, for: 86_400, returnAfterSourceHandled: true)
            log.note("\(clock.elapsed)")
            log.note("\(loop.run(mode: .work, before: clock.date.addingTimeInterval(86_400)))")
            log.note("\(clock.elapsed.rounded())")
            return result
        }
        #expect(result == .timedOut)
        #expect(log.entries == ["86400.0", "true", "172800.0"])
    }

    @Test func `RL-42 a nested run moves the clock by its own deadlines`() throws {
        let log = EventLog()
        try onHeldLoop { loop, clock in
            loop.add(
                Timer(timeInterval: 10, repeats: false) { _ in
                    log.note("outer at \(clock.elapsed)")
                    let result = loop.run(in: .inner, for: 100, returnAfterSourceHandled: false)
                    log.note("nested \(result) at \(clock.elapsed)")
                }, forMode: .work)
            loop.add(
                Timer(timeInterval: 50, repeats: false) { _ in log.note("at \(clock.elapsed)") },
                forMode: .work)
            loop.add(
                Timer(timeInterval: 60, repeats: false) { _ in log.note("in it \(clock.elapsed)") },
                forMode: .inner)
            loop.add(Port(), forMode: .inner)
            _ = loop.run(in: .work, for: .infinity, returnAfterSourceHandled: false)
        }
        #expect(log.entries == ["outer at 10.0", "in it 60.0", "nested timedOut at 110.0", "at 110.0"])
    }

    @Test func `TM-28 TM-19 a parked timer does not fire until its date is moved nearer`() throws {
        let log = EventLog()
        let result = try onHeldLoop { loop, clock in
            let parked = Timer(fire: .distantFuture, interval: 0, repeats: false) { _ in
                log.note("parked \(clock.elapsed.rounded())")
            }
            loop.add(parked, forMode: .work)
            loop.add(
                Timer(timeInterval: 100, repeats: false) { _ in
                    parked.fireDate = clock.date.addingTimeInterval(50)
                }, forMode: .work)
            return loop.run(in: .work, for: 1000, returnAfterSourceHandled: false)
        }
        #expect(result == .finished)
        #expect(log.entries == ["parked 150.0"])
    }

    @Test func `what is ready is served before time passes`() throws {
        let log = EventLog()
        try onHeldLoop { loop, clock in
            var ends: [Int32] = [-1, -1]
            guard pipe(&ends) == 0 else { return }
            let (readEnd, writeEnd) = (ends[0], ends[1])
            let note = { @Sendable (event: String) in log.note("\(event) at \(clock.elapsed)") }
            let descriptor = RunLoop.Source(fileDescriptor: readEnd, interest: .read) { source, _ in
                note("descriptor")
                source.invalidate()
            }
            loop.add(descriptor, forMode: .work)
            var byte: UInt8 = 1
            _ = write(writeEnd, &byte, 1)
            let source = RunLoop.Source { note("source") }
            source.signal()
            loop.add(source, forMode: .work)
            loop.perform(inModes: [.work]) { note("block") }
            loop.add(
                Timer(timeInterval: 5, repeats: false) { _ in
                    note("timer")
                    loop.stop()
                }, forMode: .work)
            _ = loop.run(in: .work, for: .infinity, returnAfterSourceHandled: false)
            source.invalidate()
            for end in [readEnd, writeEnd] { close(end) }
        }
        #expect(log.entries == ["block at 0.0", "source at 0.0", "descriptor at 0.0", "timer at 5.0"])
    }

    @Test func `without automatic advance the loop sleeps until another thread lets time pass`() throws {
        let log = EventLog()
        let clock = ManualClock(advancesAutomatically: false)
        let thread = LoopThread { loop in
            clock.attach(to: loop)
            for seconds in [10.0, 20] {
                let timer = Timer(timeInterval: seconds, repeats: false) { _ in log.note("\(seconds)") }
                loop.add(timer, forMode: .work)
            }
            return loop.run(in: .work, for: 30, returnAfterSourceHandled: false)
        }
        let loop = try thread.loop
        try loop.waitUntilAsleep()
        clock.advance(by: 9)
        // A block shows that the loop has looked.
        loop.perform(inModes: [.work]) { log.note("block") }
        try waitFor("the block") { log.entries == ["block"] ? () : nil }
        clock.advance(by: 1)
        try waitFor("the first timer") { log.entries == ["block", "10.0"] ? () : nil }
        try loop.waitUntilAsleep()
        clock.advance(by: 1000)
        #expect([.timedOut, .finished].contains(try thread.value()))
        #expect(log.entries == ["block", "10.0", "20.0"])
        #expect(clock.elapsed == 1010)
    }

    @Test func `XT-12 another thread explains what a loop waits for by that loop's clock`() throws {
        let log = EventLog()
        let clock = ManualClock(advancesAutomatically: false)
        let thread = LoopThread { loop in
            clock.attach(to: loop)
            let first = Timer(timeInterval: 10, repeats: false) { _ in
                for mode in [RunLoop.Mode.work, .inner] {
                    let timer = Timer(timeInterval: 5, repeats: false) { _ in log.note("second") }
                    timer.label = "explained"
                    loop.add(timer, forMode: mode)
                }
                log.note("first")
            }
            loop.add(first, forMode: .work)
            // Keeps the mode from being empty.
            loop.add(Timer(timeInterval: 1_000_000, repeats: false) { _ in }, forMode: .work)
            return loop.run(in: .work, for: .infinity, returnAfterSourceHandled: false)
        }
        let loop = try thread.loop
        try loop.waitUntilAsleep()
        clock.advance(by: 7200)
        try waitFor("the first timer") { log.entries == ["first"] ? () : nil }
        try loop.waitUntilAsleep()
        let lines = explainRunLoops().split(separator: "\n").filter { $0.contains("“explained”") }
        #expect(lines.count == 2)
        #expect(lines.allSatisfy { $0.contains("“explained”, due in 5.000 s: ") }, "\(lines)")
        #expect(lines.first?.hasSuffix(": it is not due: it fires in 5.0 s") ?? false, "\(lines)")
        #expect(lines.last?.hasSuffix(" has been running in work for 7200.0 s") ?? false, "\(lines)")
        #expect(loop.debugDescription.contains("“explained”, due in 5.000 s"), "\(loop.debugDescription)")
        var members: [Any] = []
        let heldBefore = HeldBackEvent.all(of: loop, keeping: &members)
        #expect(heldBefore.isEmpty)
        clock.advance(by: 5)
        try waitFor("the second timer") { log.entries == ["first", "second"] ? () : nil }
        let heldAfter = HeldBackEvent.all(of: loop, keeping: &members)
        #expect(heldAfter.map(\.label) == ["explained"])
        loop.stop()
        #expect(try thread.value() == .stopped)
    }

    @Test func `a loop that knows of no deadline sleeps as it would without the clock`() throws {
        let clock = ManualClock()
        let thread = LoopThread { loop in
            clock.attach(to: loop)
            loop.add(Port(), forMode: .work)
            return loop.run(in: .work, for: .infinity, returnAfterSourceHandled: false)
        }
        let loop = try thread.loop
        try loop.waitUntilAsleep()
        #expect(clock.elapsed == 0)
        loop.stop()
        #expect(try thread.value() == .stopped)
    }

    @Test func `other loops keep their own time`() throws {
        let log = EventLog()
        let held = try onHeldLoop { loop, clock in
            clock.advance(by: 100_000)
            return LoopClock.now.nanoseconds
        }
        try onLoopThread { _ in if LoopClock.now.nanoseconds < held { log.note("real") } }
        #expect(log.entries == ["real"])
    }

    @Test func `the loop keeps its clock, and neither is kept by the other alone`() throws {
        weak var weakLoop: RunLoop?
        weak var weakClock: ManualClock?
        try {
            let clock = ManualClock()
            weakClock = clock
            weakLoop = try onLoopThread { loop in
                clock.attach(to: loop)
                return loop
            }
            // There is no thread to wake.
            clock.advance(by: 1)
        }()
        #expect(weakLoop == nil)
        #expect(weakClock == nil)
    }

    @Test func `attaching a clock to a second loop traps, and so does time that goes back`() async {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            let clock = ManualClock()
            try onLoopThread { clock.attach(to: $0) }
            try onLoopThread { clock.attach(to: $0) }
        }
        let text = result?.standardErrorText ?? ""
        #expect(text.contains("A ManualClock is the clock of one run loop"), "\(text)")
        await #expect(processExitsWith: .failure) { ManualClock().advance(by: -1) }
        await #expect(processExitsWith: .failure) {
            let other = try onLoopThread { $0 }
            try onLoopThread { _ in ManualClock().attach(to: other) }
        }
    }

    @Test func `the loop of a RunLoopThread has its clock from the beginning`() throws {
        let log = EventLog()
        let thread = RunLoopThread(name: "held", mode: .work)
        let clock = ManualClock(advancesAutomatically: false)
        clock.attach(to: thread)
        let loop = thread.start()
        thread.perform {
            let timer = Timer(timeInterval: 3600, repeats: false) { _ in log.note("an hour") }
            RunLoop.current.add(timer, forMode: .work)
            log.note("added")
        }
        try waitFor("the timer's schedule") { log.entries == ["added"] ? () : nil }
        try loop.waitUntilAsleep()
        clock.advance(by: 3600)
        try waitFor("the timer") { log.entries == ["added", "an hour"] ? () : nil }
        thread.stop()
        thread.join()
    }

    @Test func `a run goes on by a clock that is attached in a callback`() throws {
        let log = EventLog()
        let result = try onLoopThread { loop in
            let clock = ManualClock()
            loop.add(
                Timer(timeInterval: 7200, repeats: false) { _ in log.note("two hours") }, forMode: .work)
            loop.perform(inModes: [.work]) {
                clock.attach(to: loop)
                loop.add(
                    Timer(timeInterval: 3600, repeats: false) { _ in log.note("an hour") }, forMode: .work)
            }
            return loop.run(in: .work, for: 10_000, returnAfterSourceHandled: false)
        }
        #expect(result == .finished)
        #expect(log.entries == ["an hour", "two hours"])
    }

    @Test func `a clock that comes after the start of a RunLoopThread traps, and says what to do`() async {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            let thread = RunLoopThread(name: "late")
            thread.start()
            ManualClock().attach(to: thread)
        }
        let text = result?.standardErrorText ?? ""
        #expect(
            text.contains("after the start() of the RunLoopThread “late”. Attach the clock first"), "\(text)")
    }
}

/// A fresh loop with a clock that stands still.
@discardableResult
private func onHeldLoop<Value: Sendable>(
    _ body: @escaping @Sendable (RunLoop, ManualClock) -> Value
) throws -> Value {
    try onLoopThread { loop in
        let clock = ManualClock()
        clock.attach(to: loop)
        return body(loop, clock)
    }
}

extension RunLoop.Mode {
    fileprivate static let work = RunLoop.Mode("work")
    fileprivate static let inner = RunLoop.Mode("inner")
}
