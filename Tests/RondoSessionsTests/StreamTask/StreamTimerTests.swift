import Rondo
import RondoTestSupport
import Testing

@testable import RondoConnections
@testable import RondoCore
@testable import RondoSessions

/// The timers of a stream task's operations, in the loop of a load that has no connection.
@Suite struct StreamTimerTests {
    private final class Owner: StreamOwner {
        let wakeUps = Box(0)
        /// Counts the timers that were made.
        let timers = Box(0)
        private let modes: [LoopMode]

        init(_ modes: [LoopMode]) { self.modes = modes }

        func wakeUp() { wakeUps.mutate { $0 += 1 } }
        func call(_ name: String, _ call: @escaping @Sendable () -> Void) {}
        func show(_ challenge: URLAuthenticationChallenge) {}
        func challengeWasDecided() {}
        func end(_ failure: LoadFailure?) {}

        func timer(after seconds: Double, _ fire: @escaping @Sendable () -> Void) -> ScheduleTimer {
            timers.mutate { $0 += 1 }
            return ScheduleTimer(modes, after: seconds, repeats: false) { _ in fire() }
        }
    }

    @Test func `US-82 US-89 cancelled reads and writes wake their load, which stops their timers`() throws {
        let found = try onLoopThread { loop -> [Bool] in
            let modes = [LoopMode(loop: loop, mode: .work)]
            let shared = StreamTaskState(host: "127.0.0.1", port: 1, schedule: .loop(modes))
            let owner = Owner(modes)
            shared.state.withLock { $0.load = owner }
            let transfer = StreamTransfer(shared, tls: TLSSettings())
            let reads = (1...100).map { _ in
                shared.read(minimum: 1, maximum: 1, timeout: 1_000) { _, _, _ in }
            }
            let writes = (1...100).map { _ in shared.write(Data([1]), timeout: 1_000) { _ in } }
            transfer.serve()
            // A pass looks at these alone.
            let looksAt = shared.state.withLock { $0.untimed.count + $0.cancelled.count + $0.expired.count }
            transfer.serve()
            let hadTimers = owner.timers.value == 200 && loop.nextTimerDate(forMode: .work) != nil
            owner.wakeUps.value = 0
            let areCancelled =
                reads.allSatisfy { shared.cancelRead($0) } && writes.allSatisfy { shared.cancelWrite($0) }
            let isWoken = owner.wakeUps.value > 0
            transfer.serve()
            return [
                looksAt == 0, hadTimers, areCancelled, isWoken, loop.nextTimerDate(forMode: .work) == nil,
            ]
        }
        #expect(found == [true, true, true, true, true])
    }

    @Test(arguments: ["read", "close", "secure", "capture", "nothing"])
    func `US-82 US-89 a cancelled read without a timeout lets what is behind it go on`(behind: String) throws
    {
        let found = try onLoopThread { loop -> [Bool] in
            let modes = [LoopMode(loop: loop, mode: .work)]
            let shared = StreamTaskState(host: "127.0.0.1", port: 1, schedule: .loop(modes))
            let owner = Owner(modes)
            shared.state.withLock { $0.load = owner }
            let read = shared.read(minimum: 1_000, maximum: 1_000, timeout: 0) { _, _, _ in }
            switch behind {
            case "read": _ = shared.read(minimum: 1, maximum: 1, timeout: 0) { _, _, _ in }
            case "close": shared.closeRead()
            case "secure": shared.add(.secure)
            case "capture": shared.add(.capture)
            default: break
            }
            owner.wakeUps.value = 0
            let isCancelled = shared.cancelRead(read)
            let goesOn = shared.state.withLock { state in
                state.queues.nextRead != nil || state.queues.takeChange() != nil
            }
            return [
                isCancelled, owner.wakeUps.value == 1, shared.state.withLock { $0.cancelled.isEmpty },
                goesOn == (behind != "nothing"),
            ]
        }
        #expect(found == [true, true, true, true])
    }

    @Test func `US-82 US-89 a cancelled write, or a read behind another, without a timeout wakes nothing`()
        throws
    {
        let found = try onLoopThread { loop -> [Bool] in
            let modes = [LoopMode(loop: loop, mode: .work)]
            let shared = StreamTaskState(host: "127.0.0.1", port: 1, schedule: .loop(modes))
            let owner = Owner(modes)
            shared.state.withLock { $0.load = owner }
            let reads = (1...2).map { _ in shared.read(minimum: 1, maximum: 1, timeout: 0) { _, _, _ in } }
            let write = shared.write(Data([1]), timeout: 0) { _ in }
            owner.wakeUps.value = 0
            let areCancelled = shared.cancelRead(reads[1]) && shared.cancelWrite(write)
            return [areCancelled, owner.wakeUps.value == 0, shared.state.withLock { $0.cancelled.isEmpty }]
        }
        #expect(found == [true, true, true])
    }

    @Test func `US-30 US-82 a read that is cancelled before a pass, or in a suspension, has no timer`() throws
    {
        let found = try onLoopThread { loop -> [Int] in
            let modes = [LoopMode(loop: loop, mode: .work)]
            let shared = StreamTaskState(host: "127.0.0.1", port: 1, schedule: .loop(modes))
            let owner = Owner(modes)
            shared.state.withLock { $0.load = owner }
            let transfer = StreamTransfer(shared, tls: TLSSettings())
            let read = { shared.read(minimum: 1, maximum: 1, timeout: 1_000) { _, _, _ in } }
            var found: [Int] = []
            let look = {
                found.append(owner.timers.value)
                if loop.nextTimerDate(forMode: .work) == nil { found.append(0) }
            }
            _ = shared.cancelRead(read())
            transfer.serve()
            look()
            let (first, second) = (read(), read())
            transfer.serve()
            look()
            transfer.suspend()
            look()
            _ = shared.cancelRead(first)
            transfer.resume()
            look()
            _ = shared.cancelRead(second)
            transfer.serve()
            look()
            return found
        }
        // The timers that were made until then, and a 0 where none is left.
        #expect(found == [0, 0, 2, 2, 0, 3, 3, 0])
    }
}
