import Rondo
import RondoMutex
import RondoTestSupport
import RondoTesting
import Testing

/// Waiting for the end of a process (section PR of the rules).
@Suite(.timeLimit(.minutes(5)), .serialized, .leavesNoChild) struct ProcessWaitTests {
    @Test func `PR-11 waitUntilExit returns at once after the end, and serves nothing`() throws {
        let calls = try onLoopThread { loop -> [String] in
            let log = EventLog()
            let process = shell("exit 0")
            process.terminationHandler = { _ in }
            launchHere(process)
            try? waitUntilGone(process.processIdentifier)
            // The end is known a moment after the kernel has forgotten it.
            _ = try? waitFor("the end") { process.isRunning ? nil : () }
            loop.perform { log.note("block") }
            process.waitUntilExit()
            return log.entries
        }
        #expect(calls == [])
    }

    @Test func `PR-11 PR-12 timers of the default mode come, as often as they are due, and no others`() throws
    {
        let (process, input) = reader()
        let (ticks, others) = try onLoopThread { loop -> (Int, Int) in
            let counts = Mutex((ticks: 0, others: 0))
            launchHere(process)
            let timer = Timer(timeInterval: 0.001, repeats: true) { _ in
                // The child ends because this timer has fired often enough.
                if counts.withLock({
                    $0.ticks += 1; return $0.ticks == 50
                }) {
                    try? input.close()
                }
            }
            loop.add(timer, forMode: .default)
            let other = Timer(timeInterval: 0.001, repeats: true) { _ in counts.withLock { $0.others += 1 } }
            loop.add(other, forMode: RunLoop.Mode("other"))
            process.waitUntilExit()
            timer.invalidate()
            other.invalidate()
            return counts.withLock { $0 }
        }
        #expect(ticks >= 50)
        #expect(others == 0)
        #expect(process.terminationStatus == 0)
    }

    @Test func `PR-12 a stop of the loop does not end waitUntilExit`() throws {
        let (process, input) = reader()
        let stops = try onLoopThread { loop -> Int in
            let count = Mutex(0)
            launchHere(process)
            let timer = Timer(timeInterval: 0.001, repeats: true) { _ in
                loop.stop()
                if count.withLock({
                    $0 += 1; return $0 == 20
                }) {
                    try? input.close()
                }
            }
            loop.add(timer, forMode: .default)
            process.waitUntilExit()
            timer.invalidate()
            #expect(!process.isRunning)
            return count.withLock { $0 }
        }
        #expect(stops >= 20)
    }

    @Test func `PR-12 nested in a callback each wait ends with its own process`() throws {
        let (outer, outerInput) = reader()
        let (inner, innerInput) = reader()
        let log = try onLoopThread { loop -> [String] in
            let log = EventLog()
            launchHere(outer)
            launchHere(inner)
            loop.perform {
                // The outer process ends while the inner one is waited for.
                try? outerInput.close()
                _ = try? waitFor("the end of the outer process") { outer.isRunning ? nil : () }
                loop.perform { try? innerInput.close() }
                inner.waitUntilExit()
                log.note("inner \(inner.isRunning)")
            }
            outer.waitUntilExit()
            log.note("outer \(outer.isRunning)")
            return log.entries
        }
        #expect(log == ["inner false", "outer false"])
    }

    @Test func `PR-13 waitUntilExit waits neither for the handler nor for the outputs`() throws {
        let mayReturn = Latch()
        let returned = Latch()
        let process = shell("exec 3<&0; cat <&3 & exit 0")
        let (input, output) = (Pipe(), Pipe())
        process.standardInput = input
        process.standardOutput = output
        process.terminationHandler = { _ in
            mayReturn.waitOrRecord()
            returned.open()
        }
        launch(process)
        waitForEnd(process)
        #expect(!returned.isOpen)
        mayReturn.open()
        try returned.wait()
        try input.fileHandleForWriting.close()
        _ = output.fileHandleForReading.readDataToEndOfFile()
    }

    @Test func `PR-14 waitUntilExit with nothing to serve sleeps once, until the end`() throws {
        let (process, input) = reader()
        let log = EventLog()
        // Moves on to the date that the loop would sleep to: a slice of time would be one.
        let clock = ManualClock()
        let thread = LoopThread { loop in
            clock.attach(to: loop)
            process.terminationHandler = { _ in }
            launchHere(process)
            let observer = log.observe(.beforeWaiting, of: loop, in: .default)
            process.waitUntilExit()
            observer.invalidate()
        }
        try thread.loop.waitUntilAsleep()
        try input.close()
        try thread.value()
        #expect(clock.elapsed == 0)
        #expect(log.count(of: "beforeWaiting") <= 2)
    }

    @Test func `PR-15 several threads wait at once, and each returns`() throws {
        let (process, input) = reader()
        launch(process)
        let threads = (0..<4).map { _ in
            LoopThread { _ -> Int32 in
                process.waitUntilExit()
                return process.terminationStatus
            }
        }
        for thread in threads { try thread.loop.waitUntilAsleep() }
        try input.close()
        for thread in threads { #expect(try thread.value() == 0) }
    }

    @Test func `PR-12 on the main thread timers and the main queue go on (trap 3)`() throws {
        try play("waits")
    }

    @Test func `PR-8 on the main thread the notification comes (trap 4)`() throws { try play("notifies") }

    @Test func `PR-6 a main thread that waits for the handler by a semaphore does not hang`() throws {
        try play("semaphore")
    }

    @Test func `PR-20 hundreds of processes in turn leave no descriptor and no child`() throws {
        try play("many")
    }

    @Test func `a hundred short processes are waited for one after another`() throws {
        try onLoopThread { _ in
            for index in 0..<100 {
                let process = launchHere(shell("exit \(index % 7)"))
                process.waitUntilExit()
                #expect(process.terminationStatus == Int32(index % 7))
            }
        }
    }
}
