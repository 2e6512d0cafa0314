internal import RondoCore

internal import struct Synchronization.Atomic

/// A request body's wait for the server's 100 (Continue), with a time limit (rule UC-42).
struct GoAheadWait: Sendable {
    private final class Mark: Sendable {
        let isSet = Atomic(false)
    }

    private let mark = Mark()
    private let timer: ScheduleTimer

    /// - Parameter wakeUp: Called on a thread of the schedule's loops when the time is over. It should only
    ///   wake the load: the body is sent in a pass of the load's queue.
    init(in modes: [LoopMode], for seconds: TimeInterval, wakeUp: @escaping @Sendable () -> Void) {
        timer = ScheduleTimer(modes, after: seconds, repeats: false) { [mark] _ in
            mark.isSet.store(true, ordering: .releasing)
            wakeUp()
        }
    }

    /// Whether the time is over; returns true once.
    func takeEnd() -> Bool { mark.isSet.exchange(false, ordering: .acquiring) }

    func stop() { timer.invalidate() }
}
