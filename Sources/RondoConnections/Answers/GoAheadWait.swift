internal import RondoCore

internal import struct Synchronization.Atomic

/// The wait for a server's 100 (Continue), which has an end (rule UC-72).
struct GoAheadWait: Sendable {
    private final class Mark: Sendable {
        let isSet = Atomic(false)
    }

    private let mark = Mark()
    private let timer: ScheduleTimer

    /// - Parameter wakeUp: Called on a thread of the loops when the time is over. What comes of that is a delivery: it waits
    ///   for a pass of the load's queue.
    init(in schedule: [LoopMode], for seconds: TimeInterval, wakeUp: @escaping @Sendable () -> Void) {
        timer = ScheduleTimer(schedule, after: seconds, repeats: false) { [mark] _ in
            mark.isSet.store(true, ordering: .releasing)
            wakeUp()
        }
    }

    /// Whether the time is over; true once.
    func takeEnd() -> Bool { mark.isSet.exchange(false, ordering: .acquiring) }

    func stop() { timer.invalidate() }
}
