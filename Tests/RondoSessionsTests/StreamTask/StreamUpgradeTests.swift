import Foundation
import RondoHTTP
import RondoStreams
import Testing

@testable import RondoConnections
@testable import RondoSessions

/// The hand-over of a data task's connection to a stream task.
@Suite struct StreamUpgradeTests {
    /// The load of an upgrade that no load has.
    private final class NoLoad: UpgradeOwner {
        var maySend: Bool { true }
        func wakeUp() {}
        func call(_ name: String, size: Int, _ call: @escaping @Sendable () -> Void) {}
        func endUpgrade(_ failure: LoadFailure?) {}
        func timer(after seconds: Double, _ fire: @escaping @Sendable () -> Void) -> ScheduleTimer {
            fatalError("no timer is wanted")
        }
    }

    @Test func `US-47 a stream task whose connection cannot be taken over does not wait for it`() throws {
        let schedule = SessionSchedule.queue(DelegateQueue(OperationQueue()))
        let shared = StreamTaskState(host: "127.0.0.1", port: 1, schedule: schedule, awaitsConnection: true)
        let upgrade = StreamUpgrade()
        upgrade.become(shared)
        upgrade.belong(to: NoLoad())
        // Never opened: there is nothing to move.
        let channel = SocketChannel(SocketChannel.Configuration(host: "127.0.0.1", port: 1))
        upgrade.begin(channel, received: UnsafeRawBufferPointer(start: nil, count: 0))
        guard case .lost = shared.takeSource() else {
            Issue.record("the task waits")
            return
        }
    }

    @Test func `US-47 a stream task does not wait for a load that ended before the delegate's answer`() {
        let schedule = SessionSchedule.queue(DelegateQueue(OperationQueue()))
        let shared = StreamTaskState(host: "127.0.0.1", port: 1, schedule: schedule, awaitsConnection: true)
        let work = TaskWork()
        work.state.withLock { state in
            _ = state.life.resume()
            state.upgrade = StreamUpgrade()
        }
        let hasBecome = work.becomeStream(shared, successor: 2)
        work.loadDidEnd()
        #expect(hasBecome)
        guard case .lost = shared.takeSource() else {
            Issue.record("the task waits")
            return
        }
    }
}
