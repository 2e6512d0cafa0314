extension RunLoop.Source {
    /// A mode of a loop that holds the source.
    struct Membership: Equatable {
        let loop: RunLoop
        let mode: RunLoop.Mode

        // By identity: a loop is an NSObject, whose own equality is a dynamic call with the same result.
        static func == (left: Membership, right: Membership) -> Bool {
            left.loop === right.loop && left.mode == right.mode
        }
    }

    /// The memberships of a source, in the order of addition. Nearly every source is in one mode of one loop,
    /// so the first membership is stored without an array, which would be half as large as the source itself.
    struct Memberships {
        private var first: Membership?
        private var others: [Membership] = []

        init() {}

        var isEmpty: Bool { first == nil }

        var all: [Membership] { (first.map { [$0] } ?? []) + others }

        func forEach(_ body: (Membership) -> Void) {
            if let first { body(first) }
            for other in others { body(other) }
        }

        func contains(_ membership: Membership) -> Bool {
            first == membership || others.contains(membership)
        }

        mutating func append(_ membership: Membership) {
            if first == nil { first = membership } else { others.append(membership) }
        }

        /// - Returns: Whether the membership was there.
        mutating func remove(_ membership: Membership) -> Bool {
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
