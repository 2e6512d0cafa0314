import Rondo
import RondoTestSupport
import RondoTesting

/// Calls `body` on the thread of a loop whose time passes where the test says so.
func onHeldLoop<Value: Sendable>(
    _ body: @escaping @Sendable (RunLoop, ManualClock) -> Value
) throws -> Value {
    try onLoopThread { loop in
        let clock = ManualClock(advancesAutomatically: false)
        clock.attach(to: loop)
        return body(loop, clock)
    }
}

extension RunLoop {
    /// Has so many seconds pass while the loop runs: others do not count for a request (rule UC-58).
    func pass(_ seconds: TimeInterval, by clock: ManualClock) {
        perform { clock.advance(by: seconds) }
        runInVain(for: 0)
    }

    /// Makes passes, in which no time goes by, until `condition` holds.
    func passUntil(_ condition: () -> Bool) {
        while !condition() { runInVain(for: 0) }
    }
}
