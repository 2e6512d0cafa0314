internal import Glibc
internal import RondoCore

internal import struct Synchronization.Atomic

/// Makes malloc return to the system the memory that a burst of loads has left.
///
/// A running load takes four kilobytes. When thousands have ended, nearly all of that is free, but glibc by
/// itself returns only memory at the end of a heap, so the process stays as large as it was. `malloc_trim(3)`
/// returns every free page, and takes 1.5 ms for 20 MB: so it is called on the loader's thread, and only
/// after a large burst.
final class HeapTrimmer: Sendable {
    static let shared = HeapTrimmer()

    /// The number of connections that must have been parked before the heap is trimmed: after fewer there is
    /// hardly any memory to return.
    static let burst = 1_000

    /// The least number of seconds between two trims, because trimming a large heap takes long.
    static let leastInterval = 60.0

    private let burst: Int
    private let leastInterval: Double
    /// The instant of the last trim, in nanoseconds of the monotonic clock.
    private let trimmedAt = Atomic(Int64.min)
    /// The number of connections that were parked since the last trim.
    private let parked = Atomic(0)
    private let trims = Atomic(0)

    /// The number of trims.
    var count: Int { trims.load(ordering: .relaxed) }

    init(burst: Int = HeapTrimmer.burst, leastInterval: Double = HeapTrimmer.leastInterval) {
        self.burst = burst
        self.leastInterval = leastInterval
    }

    /// Counts a parked connection. Any thread may call it.
    func noteParked() { parked.wrappingAdd(1, ordering: .relaxed) }

    /// Trims the heap after a burst. Call it when no connection is in use any more, and also from time to
    /// time, since a few may always be in use. Any thread may call it.
    func trimAfterBurst() {
        // Read first, since the count is nearly always 0; the thread that exchanges it does the work.
        guard parked.load(ordering: .relaxed) >= burst else { return }
        let now = LoopClock.systemNow
        let last = LoopInstant(nanoseconds: trimmedAt.load(ordering: .relaxed))
        guard now.seconds(since: last) >= leastInterval, parked.exchange(0, ordering: .relaxed) >= burst
        else { return }
        trimmedAt.store(now.nanoseconds, ordering: .relaxed)
        RunLoop.loader.perform { [self] in
            _ = Self.trim?(0)
            trims.wrappingAdd(1, ordering: .relaxed)
        }
    }

    /// malloc's function of this name, which Swift's Glibc module lacks; nil if the C library has none.
    ///
    /// Safe: wherever there is one its type is that of `malloc.h`, `int malloc_trim(size_t)`.
    private static let trim = dlsym(nil, "malloc_trim").map {
        unsafeBitCast($0, to: (@convention(c) (Int) -> Int32).self)
    }
}
