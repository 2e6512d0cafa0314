extension RunLoop.Source {
    /// The modes of loops that hold a source, or of the loop that holds an observer, in the order of
    /// addition. Nearly every source is in one mode of one loop, so the first membership is stored without an
    /// array, which would be half as large as the source itself.
    struct Memberships {
        private var first: LoopMode?
        private var others: [LoopMode] = []

        init() {}

        var isEmpty: Bool { first == nil }

        var all: [LoopMode] { (first.map { [$0] } ?? []) + others }

        func forEach(_ body: (LoopMode) -> Void) {
            if let first { body(first) }
            for other in others { body(other) }
        }

        func contains(_ membership: LoopMode) -> Bool {
            first == membership || others.contains(membership)
        }

        mutating func append(_ membership: LoopMode) {
            if first == nil { first = membership } else { others.append(membership) }
        }

        /// - Returns: Whether the membership was there.
        mutating func remove(_ membership: LoopMode) -> Bool {
            if first == membership {
                first = others.isEmpty ? nil : others.removeFirst()
            } else if let index = others.firstIndex(of: membership) {
                others.remove(at: index)
            } else {
                return false
            }
            return true
        }
    }
}
