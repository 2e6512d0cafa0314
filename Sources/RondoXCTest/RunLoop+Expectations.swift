public import RondoCore
internal import RondoTesting
public import XCTest

extension RondoCore.RunLoop {
    /// Runs this loop in `mode` until the expectations are fulfilled, and returns how the wait ended, as
    /// `XCTWaiter` does. Call it on the thread of this loop; on another thread it traps (rule XT-5).
    ///
    /// A wait that times out prints the contents of every loop of the process, and why they are not delivered
    /// (rule XT-12). It does not record a failure: compare the result.
    ///
    /// - Parameters:
    ///   - expectations: Each is awaited once. Predicate expectations are evaluated on Foundation's loop of
    ///     the thread that made them; Foundation's loop of this thread is polled meanwhile.
    ///   - timeout: In seconds.
    ///   - enforceOrder: Whether the expectations must be fulfilled in the order of the list.
    ///   - mode: The mode in which this loop runs.
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

    /// Polls Foundation's loop of this thread while `body` runs this loop.
    private func pollingFoundation<Value>(in mode: Mode, _ body: () -> Value) -> Value {
        let bridge = bridgeInUse
        // The bridge in use serves Foundation's loop already.
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
            // Without a timer the loop of this thread would be empty, and XCTest would spin on it.
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

/// The result of a wait on another thread.
private final class Outcome: @unchecked Sendable {
    // The condition guards `value`, which makes the class safe to share.
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
