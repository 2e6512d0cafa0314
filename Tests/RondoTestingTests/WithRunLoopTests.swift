import Rondo
import RondoMutex
import RondoTestSupport
import RondoTesting
import Testing

@Suite(.timeLimit(.minutes(5))) struct WithRunLoopTests {
    private struct Broken: Error {}

    @Test func `XT-7 a test gets a running loop, which has ended afterwards`() async throws {
        let loop = try await withRunLoop(named: "XT-7") { loop in
            let name = await withCheckedContinuation { continuation in
                loop.perform { continuation.resume(returning: RunLoop.current === loop) }
            }
            #expect(name)
            return loop
        }
        // A loop whose thread has ended takes nothing.
        let timer = Timer(timeInterval: 0, repeats: false) { _ in }
        loop.add(timer, forMode: .default)
        #expect(
            timer.whyNotDelivering.reason == .threadEnded || timer.whyNotDelivering.reason == .notScheduled)
    }

    @Test func `XT-7 an error of the test is rethrown, and the thread has ended`() async {
        let loop = Mutex<RunLoop?>(nil)
        await #expect(throws: Broken.self) {
            try await withRunLoop { running in
                loop.withLock { $0 = running }
                throw Broken()
            }
        }
        #expect(loop.withLock { $0?.isAlive } == false)
    }

    @Test @MainActor func `XT-7 a test of the main actor has no main loop that runs, and gets one here`()
        async throws
    {
        let fired = try await withRunLoop { loop in
            await withCheckedContinuation { continuation in
                loop.add(
                    Timer(timeInterval: 0, repeats: false) { _ in continuation.resume(returning: true) },
                    forMode: .default)
            }
        }
        #expect(fired)
    }

    @Test func `XT-8 confirmations are made by callbacks of the loop`() async throws {
        try await withRunLoop { loop in
            await confirmation(expectedCount: 3) { confirmed in
                await withCheckedContinuation { continuation in
                    let count = Mutex(0)
                    let timer = Timer(timeInterval: 0.001, repeats: true) { timer in
                        confirmed()
                        guard
                            count.withLock({ count in
                                count += 1; return count == 3
                            })
                        else { return }
                        timer.invalidate()
                        continuation.resume()
                    }
                    loop.add(timer, forMode: .default)
                }
            }
        }
    }

    @Test func `XT-9 members left on the loop are an error if requested`() async throws {
        try await withRunLoop(failsOnLeftovers: true) { loop in
            let timer = Timer(timeInterval: 3600, repeats: false) { _ in }
            loop.add(timer, forMode: .default)
            timer.invalidate()
        }
        let error = await #expect(throws: RunLoopLeftovers.self) {
            try await withRunLoop(failsOnLeftovers: true) { loop in
                let timer = Timer(timeInterval: 3600, repeats: false) { _ in }
                timer.label = "forgotten"
                loop.add(timer, forMode: .tracking)
            }
        }
        #expect(error?.members.count == 1)
        #expect(error?.members.first?.contains("timer “forgotten”") == true, "\(String(describing: error))")
        // Not asked for: no error.
        try await withRunLoop {
            $0.add(Timer(timeInterval: 3600, repeats: false) { _ in }, forMode: .default)
        }
    }

    @Test func `XT-10 a clock that the test holds lets hours pass in no time`() async throws {
        let clock = ManualClock()
        let elapsed = try await withRunLoop(clock: clock) { loop in
            await withCheckedContinuation { continuation in
                loop.perform {
                    RunLoop.current.add(
                        Timer(timeInterval: 7200, repeats: false) { _ in
                            continuation.resume(returning: clock.elapsed)
                        },
                        forMode: .default)
                }
            }
        }
        #expect(elapsed == 7200)
    }

    @Test func `XT-11 a helper program plays a scenario of the main loop`() async throws {
        let helper = try MainLoopHelper("RondoMainLoopProbe")
        let run = try await helper.run("RL-2")
        #expect(run.status == .exited(0) && run.output.contains("RL-2 holds"))
        let unknown = try await helper.run("no such scenario")
        #expect(unknown.status == .exited(2) && unknown.output.contains("usage"))
        #expect(throws: CocoaError.self) { try MainLoopHelper("NoSuchProbe") }
    }

    @Test func `XT-12 a test that hangs says why at its time limit`() async throws {
        let error = await #expect(throws: RunLoopTimeLimit.self) {
            try await withRunLoop(named: "XT-12", timeLimit: 0.2) { loop in
                let timer = Timer(timeInterval: 0, repeats: false) { _ in }
                timer.label = "in tracking"
                loop.add(timer, forMode: .tracking)
                // Cancellation ends it; the limit does not wait for that.
                try await Task.sleep(for: .seconds(3600))
            }
        }
        let report = try #require(error?.report)
        #expect(report.contains("thread XT-12") && report.contains("timer “in tracking”"), "\(report)")
        #expect(report.contains("runs in default"), "\(report)")
    }

    @Test func `XT-12 a callback that does not return when the test has ended says why at the limit`() async {
        let mayGoOn = DispatchSemaphore(value: 0)
        let error = await #expect(throws: RunLoopTimeLimit.self) {
            try await withRunLoop(named: "XT-12 late", timeLimit: 0.2) { loop in
                await withCheckedContinuation { continuation in
                    loop.perform {
                        continuation.resume()
                        mayGoOn.wait()
                    }
                }
            }
        }
        mayGoOn.signal()
        #expect(error?.report.contains("thread XT-12 late") == true, "\(String(describing: error))")
    }

    @Test(arguments: [TimeInterval.infinity, .nan, 1e30])
    func `XT-12 a limit that never comes is none`(_ limit: TimeInterval) async throws {
        #expect(try await withRunLoop(timeLimit: limit) { _ in true })
    }

    @Test
    func
        `XT-12 a test that does not end when cancelled, and a callback that does not return, end at the limit`()
        async throws
    {
        let mayGoOn = DispatchSemaphore(value: 0)
        await #expect(throws: RunLoopTimeLimit.self) {
            try await withRunLoop(timeLimit: 0.1) { loop in
                loop.perform { mayGoOn.wait() }
                await withCheckedContinuation { continuation in loop.perform { continuation.resume() } }
            }
        }
        mayGoOn.signal()
    }
}
