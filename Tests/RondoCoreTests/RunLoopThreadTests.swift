import RondoCore
import RondoTestSupport
import Testing

struct RunLoopThreadTests {
    @Test func `RL-60 blocks performed before the stop are run, in order`() {
        let log = EventLog()
        let thread = RunLoopThread(name: "blocks", mode: .work)
        let loop = thread.start()
        for number in 1...20 { thread.perform { log.note("\(number) \(RunLoop.current === loop)") } }
        thread.stop()
        thread.stop()
        thread.join()
        #expect(log.entries == (1...20).map { "\($0) true" })
    }

    @Test func `RL-43 a thread may stop itself, and ignores stops of its loop`() {
        let log = EventLog()
        let thread = RunLoopThread()
        let loop = thread.start()
        thread.perform { loop.stop() }
        thread.perform { log.note("goes on") }
        thread.perform { thread.stop() }
        thread.join()
        #expect(log.entries == ["goes on"])
    }

    @Test func `RL-5 a thread may be stopped while it starts`() {
        for _ in 1...50 {
            let thread = RunLoopThread()
            thread.stop()
            thread.start()
            thread.join()
        }
    }
}
