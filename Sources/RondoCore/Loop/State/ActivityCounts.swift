/// How many observers each stage has, so that adding or removing one needs no look at the others.
struct ActivityCounts {
    /// The stages of a loop are the lowest bits of an activity's raw value; no pass asks for another one.
    private static let stages = 8

    /// By the number of the stage's bit. Allocated on first use: few modes ever have an observer.
    private var counts: [Int] = []
    /// The bits of the stages that have an observer.
    private(set) var observed: UInt = 0

    /// - Parameter activities: The raw value of those that an observer is called for.
    mutating func add(_ activities: UInt) { change(activities, by: 1) }

    mutating func remove(_ activities: UInt) { change(activities, by: -1) }

    private mutating func change(_ activities: UInt, by difference: Int) {
        if counts.isEmpty { counts = Array(repeating: 0, count: Self.stages) }
        for bit in counts.indices {
            let stage: UInt = 1 << UInt(bit)
            guard activities & stage != 0 else { continue }
            counts[bit] += difference
            observed = counts[bit] > 0 ? observed | stage : observed & ~stage
        }
    }
}
