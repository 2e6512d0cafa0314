import RondoCore
import RondoTestSupport
import Testing

@testable import RondoConnections

/// A thread that stays for a moment after its work.
@Suite(.timeLimit(.minutes(5))) struct StandbyThreadTests {
    private final class Owner: Sendable {}

    @Test func `calls that come while it works are served together afterwards`() throws {
        let (entered, released, count) = (Latch(), Latch(), Box(0))
        let thread = StandbyThread("test") {
            count.mutate { $0 += 1 }
            if count.value == 1 {
                entered.open()
                released.waitOrRecord()
            }
            return nil
        }
        try thread.call(keeping: Owner())
        try entered.wait()
        for _ in 0..<3 { try thread.call(keeping: Owner()) }
        released.open()
        try waitFor("the calls") { count.value == 2 ? () : nil }
        try thread.call(keeping: Owner())
        try waitFor("another call") { count.value >= 3 ? () : nil }
        #expect(count.value == 3)
    }

    @Test func `a call that comes while another one finds no thread is not lost`() throws {
        let (isTrying, mayFail, worked) = (Latch(), Latch(), Latch())
        let attempts = Box(0)
        let thread = StandbyThread("test") { name, body throws(SystemError) in
            attempts.mutate { $0 += 1 }
            guard attempts.value == 1 else { return try SystemThread.start(name: name, body) }
            isTrying.open()
            mayFail.waitOrRecord()
            throw SystemError("pthread_create", code: EAGAIN)
        } work: {
            worked.open()
            return nil
        }
        let first = LoopThread { _ in (try? thread.call(keeping: Owner())) != nil }
        try isTrying.wait()
        let (number, isOver) = (Box<pid_t?>(nil), Latch())
        let second = LoopThread { _ in
            number.mutate { $0 = threadNumber() }
            defer { isOver.open() }
            return (try? thread.call(keeping: Owner())) != nil
        }
        // It waits for what becomes of the first one, or takes that for done.
        let called = try waitFor("the second call") { number.value }
        try waitFor("the second call to wait") { isOver.isOpen || isAsleep(thread: called) ? () : nil }
        mayFail.open()
        #expect(try !first.value())
        #expect(try second.value())
        try worked.wait()
    }

    @Test func `a standby thread works without a call when the requested time is over`() throws {
        let count = Box(0)
        let thread = StandbyThread("test") {
            count.mutate { $0 += 1 }
            return count.value < 3 ? 0.001 : nil
        }
        try thread.call(keeping: Owner())
        try waitFor("the third time") { count.value == 3 ? () : nil }
    }

    @Test
    func `a standby thread ends without a call, releases its owner, and is started again for the next call`()
        throws
    {
        let count = Box(0)
        let thread = StandbyThread("test") {
            count.mutate { $0 += 1 }
            return nil
        }
        for round in 1...2 {
            weak var owner: Owner?
            do {
                let kept = Owner()
                owner = kept
                try thread.call(keeping: kept)
            }
            try waitFor("the end of the thread") { owner == nil ? () : nil }
            #expect(count.value == round)
        }
    }
}
