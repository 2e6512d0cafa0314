/// A queue whose first element is removed without moving the others.
package struct FIFO<Element> {
    private var elements: [Element?] = []
    private var start = 0

    package init() {}

    package var isEmpty: Bool { start == elements.count }
    package var count: Int { elements.count - start }
    package var first: Element? { isEmpty ? nil : elements[start] }
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

    package mutating func remove(where condition: (Element) -> Bool) -> Element? {
        guard let index = elements[start...].firstIndex(where: { $0.map(condition) ?? false }) else {
            return nil
        }
        return elements.remove(at: index)
    }

    package func contains(where condition: (Element) -> Bool) -> Bool {
        elements[start...].contains { $0.map(condition) ?? false }
    }

    /// Offers the elements to `change`, in their order, until it has a result.
    package mutating func changeFirst<Result>(_ change: (inout Element) -> Result?) -> Result? {
        for index in start..<elements.count {
            guard var element = elements[index], let result = change(&element) else { continue }
            elements[index] = element
            return result
        }
        return nil
    }
}

extension FIFO: Sendable where Element: Sendable {}
