/// How many observers each stage has, so that adding or removing one needs no look at the others.
struct ActivityCounts {
    /// The stages of a loop are the lowest bits of an activity; no pass asks for another one.
    private static let stages = 8

    /// By the number of the stage's bit. Allocated on first use: few modes ever have an observer.
    private var counts: [Int] = []
    /// The stages that have an observer.
    private(set) var observed: RunLoop.Activity = []

    mutating func add(_ activities: RunLoop.Activity) { change(activities, by: 1) }

    mutating func remove(_ activities: RunLoop.Activity) { change(activities, by: -1) }

    private mutating func change(_ activities: RunLoop.Activity, by difference: Int) {
        if counts.isEmpty { counts = Array(repeating: 0, count: Self.stages) }
        for bit in counts.indices {
            let stage = RunLoop.Activity(rawValue: UInt(1) << UInt(bit))
            guard activities.contains(stage) else { continue }
            counts[bit] += difference
            if counts[bit] > 0 { observed.formUnion(stage) } else { observed.subtract(stage) }
        }
    }
}
