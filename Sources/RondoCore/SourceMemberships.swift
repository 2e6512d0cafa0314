extension RunLoop.Source {
    /// A mode of a loop that holds the source.
    struct Membership: Equatable {
        let loop: RunLoop
        let mode: RunLoop.Mode

        // A loop is an NSObject, whose own equality takes its time to come to the same.
        static func == (left: Membership, right: Membership) -> Bool {
            left.loop === right.loop && left.mode == right.mode
        }
    }

    /// Where a source is, in the order of addition. Nearly every source is in one mode of one loop, so that
    /// place needs no array, which would be half as large as the source itself.
    struct Memberships: RandomAccessCollection {
        private var first: Membership?
        private var others: [Membership] = []

        init() {}

        var startIndex: Int { 0 }
        var endIndex: Int { first == nil ? 0 : others.count + 1 }

        subscript(index: Int) -> Membership {
            if index == 0, let first { return first }
            return others[index - 1]
        }

        mutating func append(_ membership: Membership) {
            if first == nil { first = membership } else { others.append(membership) }
        }

        mutating func remove(at index: Int) {
            if index > 0 {
                others.remove(at: index - 1)
            } else {
                first = others.isEmpty ? nil : others.removeFirst()
            }
        }
    }
}
