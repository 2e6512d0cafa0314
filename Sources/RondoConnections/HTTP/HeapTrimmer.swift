internal import Glibc
internal import RondoCore

internal import struct Synchronization.Atomic

/// Has malloc give back to the system what a burst of loads has left.
///
/// A load in flight takes four kilobytes. When thousands have ended nearly all of that is free, but glibc by
/// itself gives back only memory that is free at the very end of a heap, so that the process stays as large as it was.
/// `malloc_trim(3)` gives back every whole page that is free, and takes a millisecond and a half for 20 MB: so
/// it is called on the loader's thread, when the burst is over, and after no small one.
final class HeapTrimmer: Sendable {
    static let shared = HeapTrimmer()

    /// Connections that a burst has to leave parked: after less there is next to nothing to be given back.
    static let burst = 1_000

    /// Seconds between two trims: each takes the longer the larger the heap is.
    static let leastInterval = 60.0

    private let burst: Int
    private let leastInterval: Double
    /// When the heap was trimmed last, in nanoseconds of the monotonic clock.
    private let trimmedAt = Atomic(Int64.min)
    /// Since the heap was trimmed.
    private let parked = Atomic(0)
    private let trims = Atomic(0)

    /// How often the heap was trimmed.
    var count: Int { trims.load(ordering: .relaxed) }

    init(burst: Int = HeapTrimmer.burst, leastInterval: Double = HeapTrimmer.leastInterval) {
        self.burst = burst
        self.leastInterval = leastInterval
    }

    /// One of many connections is parked. Any thread.
    func noteParked() { parked.wrappingAdd(1, ordering: .relaxed) }

    /// To be called when no connection is used any more, and every now and then, since some may always be.
    /// Any thread.
    func trimAfterBurst() {
        // Read first, since the count is nearly always 0; the thread that exchanges it does the work.
        guard parked.load(ordering: .relaxed) >= burst else { return }
        let now = LoopClock.machineNow
        let last = LoopInstant(nanoseconds: trimmedAt.load(ordering: .relaxed))
        guard now.seconds(since: last) >= leastInterval, parked.exchange(0, ordering: .relaxed) >= burst
        else { return }
        trimmedAt.store(now.nanoseconds, ordering: .relaxed)
        RunLoop.loader.perform { [self] in
            _ = Self.trim?(0)
            trims.wrappingAdd(1, ordering: .relaxed)
        }
    }

    /// malloc's function of this name, which Swift's module of glibc lacks; nil: the C library has none.
    ///
    /// Safe: wherever there is one its type is that of `malloc.h`, `int malloc_trim(size_t)`.
    private static let trim = dlsym(nil, "malloc_trim").map {
        unsafeBitCast($0, to: (@convention(c) (Int) -> Int32).self)
    }
}
