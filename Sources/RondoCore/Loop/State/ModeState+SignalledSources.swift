/// The signalled sources of a mode, in the order in which they are performed (rule SRC-6). Under the lock of
/// the loop.
///
/// Each is found by its order and the number of its last signal. A run that returns after a source takes the
/// first only (rule SRC-7), so that sorting them in each pass would take a time that grows by the square of
/// their number.
struct SignalledSources {
    private struct Place: Comparable {
        let order: Int
        let signal: UInt64

        static func < (left: Place, right: Place) -> Bool {
            (left.order, left.signal) < (right.order, right.signal)
        }
    }

    private var sources = KeyedQueue<Place, RunLoop.Source>()

    var isEmpty: Bool { sources.isEmpty }
    var count: Int { sources.count }
    var first: RunLoop.Source? { sources.first }
    /// In order.
    var all: [RunLoop.Source] { sources.elements }

    /// - Parameters:
    ///   - signal: The number of the source's signal.
    ///   - last: The number of the signal before. The source may still be here because of that one, if
    ///     another loop or mode has served it.
    mutating func insert(_ source: RunLoop.Source, signal: UInt64, replacing last: UInt64) {
        let order = source.kind.order
        if !sources.isEmpty { _ = sources.remove(Place(order: order, signal: last)) }
        sources.insert(source, key: Place(order: order, signal: signal))
    }

    /// - Parameter signal: The number of the source's last signal.
    mutating func remove(_ source: RunLoop.Source, signal: UInt64) {
        _ = sources.remove(Place(order: source.kind.order, signal: signal))
    }
}
