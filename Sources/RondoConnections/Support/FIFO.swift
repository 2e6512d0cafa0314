/// A queue whose first element is removed without moving the others. For elements that may leave before their
/// turn see `KeyedQueue`.
package struct FIFO<Element> {
    private var elements: [Element?] = []
    private var start = 0

    package init() {}

    package var isEmpty: Bool { start == elements.count }
    package var last: Element? { isEmpty ? nil : elements[elements.count - 1] }

    package mutating func append(_ element: Element) { elements.append(element) }

    /// Puts `element` in the place of the last one, which must exist.
    package mutating func replaceLast(by element: Element) { elements[elements.count - 1] = element }

    package mutating func popFirst() -> Element? {
        guard !isEmpty else { return nil }
        let element = elements[start].take()
        start += 1
        if start == elements.count {
            // Room for a few elements is kept: in most queues one waits at a time.
            elements.removeAll(keepingCapacity: elements.capacity <= 64)
            start = 0
        } else if start > 64, start * 2 > elements.count {
            elements.removeFirst(start)
            start = 0
        }
        return element
    }
}

extension FIFO: Sendable where Element: Sendable {}
