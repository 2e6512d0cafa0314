/// The closures that wait for the start of a pass of a loop, in the order of the calls; see `OrderedPerform`.
/// Under the lock of the loop.
struct OrderedPerforms {
    private var waiting: [OrderedPerform] = []
    /// How often the closures name each mode, so that a pass looks at none if none is for its mode.
    private var counts: [String: Int] = [:]

    /// The number of closures at which removals have looked, for tests: it may not grow with those that wait
    /// for other modes.
    private(set) var lookedAt = 0

    var isEmpty: Bool { waiting.isEmpty }

    /// Whether closures wait for `mode`, or for the common modes if it is one.
    func has(in mode: String, isCommon: Bool) -> Bool {
        counts[mode] != nil || isCommon && counts[QueuedNotifications.common] != nil
    }

    mutating func append(_ perform: OrderedPerform) {
        waiting.append(perform)
        for mode in perform.modes { counts[mode, default: 0] += 1 }
    }

    /// Removes the closures of `mode` that were made before `pass`.
    mutating func removeDue(in mode: String, isCommon: Bool, pass: UInt) -> [OrderedPerform] {
        guard has(in: mode, isCommon: isCommon) else { return [] }
        return removeAll { $0.pass != pass && $0.isFor(mode, isCommon: isCommon) }
    }

    mutating func removeAll(where matches: (OrderedPerform) -> Bool) -> [OrderedPerform] {
        lookedAt += waiting.count
        let removed = waiting.filter(matches)
        guard !removed.isEmpty else { return [] }
        waiting.removeAll(where: matches)
        for mode in removed.flatMap(\.modes) {
            let count = (counts[mode] ?? 1) - 1
            counts[mode] = count > 0 ? count : nil
        }
        return removed
    }
}

extension OrderedPerform {
    /// Whether it names `mode`, or the common modes if that is one.
    fileprivate func isFor(_ mode: String, isCommon: Bool) -> Bool {
        modes.contains { $0 == mode || isCommon && $0 == QueuedNotifications.common }
    }
}
