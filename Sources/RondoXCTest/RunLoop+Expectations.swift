public import RondoCore
internal import RondoTesting
public import XCTest

extension RondoCore.RunLoop {
    /// Runs this loop in `mode` until the expectations are fulfilled, and says how the wait has ended, as `XCTWaiter` does. On
    /// any thread, of its own loop (rule XT-5).
    ///
    /// A wait that times out prints what every loop of the process holds, with why it is not delivered (rule XT-12). It
    /// records no failure: compare the result.
    ///
    /// - Parameters:
    ///   - expectations: Each is waited for once. Those of predicates are asked on Foundation's loop of the thread that made
    ///     them: on this thread it is polled meanwhile.
    ///   - timeout: Seconds.
    ///   - enforceOrder: Whether they have to be fulfilled in the order of the list.
    @available(*, noasync, message: "It blocks the thread. Use await fulfillment(of:timeout:).")
    @discardableResult
    public func run(
        until expectations: [XCTestExpectation], timeout: TimeInterval, enforceOrder: Bool = false,
        mode: Mode = .default
    ) -> XCTWaiter.Result {
        if !isCurrent { fatalError("RunLoop.run(until:timeout:) runs the loop of the calling thread.") }
        let polls = expectations.contains { $0 is XCTNSPredicateExpectation }
        return polls
            ? pollingFoundation(in: mode) { wait(expectations, timeout, enforceOrder, mode) }
            : wait(expectations, timeout, enforceOrder, mode)
    }

    /// Serves Foundation's loop of this thread while `body` runs this one.
    private func pollingFoundation<Value>(in mode: Mode, _ body: () -> Value) -> Value {
        let bridge = bridgeInUse
        // It serves Foundation's loop already.
        if bridge == .sleep || bridge == .polls { return body() }
        endFoundationBridge()
        servesFoundation(in: [mode], atLeastEvery: 0.01)
        defer {
            endFoundationBridge()
            if case .guest(let guest) = bridge { hostInFoundation(mode: guest) }
        }
        return body()
    }

    private func wait(
        _ expectations: [XCTestExpectation], _ timeout: TimeInterval, _ enforceOrder: Bool, _ mode: Mode
    ) -> XCTWaiter.Result {
        let end = LoopWait()
        let outcome = Outcome()
        Thread.detachNewThread {
            // XCTest asks again and again, without a pause, on a thread whose loop is empty.
            let keepAlive = Foundation.Timer(fire: .distantFuture, interval: 0, repeats: false) { _ in }
            Foundation.RunLoop.current.add(keepAlive, forMode: .default)
            outcome.result = XCTWaiter.wait(for: expectations, timeout: timeout, enforceOrder: enforceOrder)
            keepAlive.invalidate()
            end.end()
        }
        if !end.run(self, in: mode) { outcome.waitForThread() }
        let result = outcome.result ?? .interrupted
        if result == .timedOut {
            FileHandle.standardError.write(Data("Timed out after \(timeout) s.\n\(explainRunLoops())\n".utf8))
        }
        return result
    }
}

/// How the wait of another thread has ended.
private final class Outcome: @unchecked Sendable {
    // Guarded by the condition.
    private let condition = NSCondition()
    private var value: XCTWaiter.Result?

    var result: XCTWaiter.Result? {
        get { condition.withLock { value } }
        set {
            condition.withLock {
                value = newValue
                condition.broadcast()
            }
        }
    }

    func waitForThread() {
        condition.withLock { while value == nil { condition.wait() } }
    }
}
