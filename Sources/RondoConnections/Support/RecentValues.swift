/// The last few values that were added. When there is no more room, a new one replaces the one that was added
/// first.
struct RecentValues<Value>: RandomAccessCollection, MutableCollection {
    private let maximum: Int
    private var values: [Value] = []
    private var oldest = 0

    init(maximum: Int) { self.maximum = maximum }

    var startIndex: Int { 0 }
    var endIndex: Int { values.count }

    subscript(index: Int) -> Value {
        // In place: a getter would copy the value, and retain all that it refers to.
        _read { yield values[index] }
        _modify { yield &values[index] }
    }

    /// The indices of the values. The value that was added last comes first.
    var newestFirst: RecentIndices {
        RecentIndices(index: oldest, left: values.count, count: values.count)
    }

    /// - Returns: The index of the value until it is replaced.
    @discardableResult
    mutating func add(_ value: Value) -> Int {
        guard values.count == maximum else {
            values.append(value)
            return values.count - 1
        }
        defer { oldest = (oldest + 1) % maximum }
        values[oldest] = value
        return oldest
    }
}

/// The indices of `RecentValues`, the newest first. It refers to no value, so that these may be changed
/// meanwhile.
struct RecentIndices: Sequence, IteratorProtocol {
    /// The index that `next()` returned last.
    fileprivate var index: Int
    fileprivate var left: Int
    fileprivate let count: Int

    mutating func next() -> Int? {
        guard left > 0 else { return nil }
        left -= 1
        index = (index == 0 ? count : index) - 1
        return index
    }
}
