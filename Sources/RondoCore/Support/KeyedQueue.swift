/// A queue in the order of its elements' keys. Nearly every key is larger than all before, so that its
/// element is appended.
///
/// The first element leaves in constant time. Any other is found by its key and leaves in a time that grows
/// by the logarithm of their number: thousands of writes or loads may wait, and be cancelled one by one.
///
/// `@inlinable`: otherwise other modules would call the functions with descriptions of the types.
package struct KeyedQueue<Key: Comparable, Element> {
    /// The elements in the order of their keys, from `head` on; nil in the place of one that has left. The
    /// first and the last of them are never nil.
    @usableFromInline var places: [(key: Key, element: Element?)]
    @usableFromInline var head: Int
    @usableFromInline var filled: Int

    @inlinable package init() {
        places = []
        head = 0
        filled = 0
    }

    @inlinable package var isEmpty: Bool { filled == 0 }
    @inlinable package var count: Int { filled }
    @inlinable package var first: Element? { isEmpty ? nil : places[head].element }
    @inlinable package var firstKey: Key? { isEmpty ? nil : places[head].key }

    /// The first key above `key`; nil if there is none. Nearly always it is the first of all.
    func nextKey(after key: Key) -> Key? {
        if isEmpty || places[head].key > key { return firstKey }
        return places[firstIndex(notBefore: key)...].first { $0.key > key && $0.element != nil }?.key
    }

    /// The elements, in order.
    @inlinable package var elements: [Element] { places[head...].compactMap { $0.element } }

    /// Calls `body` for each element, in order.
    @inlinable package func forEach(_ body: (Key, Element) -> Void) {
        for place in places[head...] {
            if let element = place.element { body(place.key, element) }
        }
    }

    /// The number of places, empty ones included; for tests.
    package var placeCount: Int { places.count }

    /// - Parameter key: No element in the queue may have it.
    @inlinable package mutating func insert(_ element: Element, key: Key) {
        filled += 1
        guard let last = places.indices.last, key <= places[last].key else {
            return places.append((key, element))
        }
        let index = firstIndex(notBefore: key)
        if places[index].key == key {
            places[index].element = element
        } else if index == head, head > 0 {
            head -= 1
            places[head] = (key, element)
        } else {
            places.insert((key, element), at: index)
        }
    }

    @inlinable package mutating func popFirst() -> Element? {
        isEmpty ? nil : take(at: head)
    }

    /// - Returns: Nil if there is no such element any more.
    @inlinable package mutating func remove(_ key: Key) -> Element? {
        index(of: key).flatMap { take(at: $0) }
    }

    @inlinable package func contains(_ key: Key) -> Bool {
        index(of: key).map { places[$0].element != nil } ?? false
    }

    /// Replaces an element by what `change` makes of it.
    ///
    /// - Returns: Nil if there is no such element any more.
    @inlinable package mutating func change<Result>(_ key: Key, _ change: (inout Element) -> Result)
        -> Result?
    {
        guard let index = index(of: key), var element = places[index].element else { return nil }
        defer { places[index].element = element }
        return change(&element)
    }

    /// The place of `key`, which may be empty.
    @inlinable func index(of key: Key) -> Int? {
        if isEmpty { return nil }
        // Nearly always it is the first.
        if places[head].key == key { return head }
        let index = firstIndex(notBefore: key)
        return index < places.count && places[index].key == key ? index : nil
    }

    @inlinable func firstIndex(notBefore key: Key) -> Int {
        var (low, high) = (head, places.count)
        while low < high {
            let middle = (low + high) / 2
            if places[middle].key < key { low = middle + 1 } else { high = middle }
        }
        return low
    }

    @inlinable mutating func take(at index: Int) -> Element? {
        guard let element = places[index].element.take() else { return nil }
        filled -= 1
        // From the end, also the only element: clearing the whole array takes longer.
        while places.count > head, places[places.count - 1].element == nil { places.removeLast() }
        if isEmpty {
            // Room for a few is kept: in most queues one waits at a time.
            if head > 0 || places.capacity > 64 { places.removeAll(keepingCapacity: places.capacity <= 64) }
            head = 0
        } else {
            while places[head].element == nil { head += 1 }
            if places.count > 2 * filled + 64 { dropEmptyPlaces() }
        }
        return element
    }

    @inlinable mutating func dropEmptyPlaces() {
        places.removeAll { $0.element == nil }
        head = 0
    }
}

extension KeyedQueue: Sendable where Key: Sendable, Element: Sendable {}
