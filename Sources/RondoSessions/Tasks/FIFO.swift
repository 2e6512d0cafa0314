/// A queue whose first element is removed without moving the others.
struct FIFO<Element> {
    private var elements: [Element?] = []
    private var start = 0

    var isEmpty: Bool { start == elements.count }
    var first: Element? { isEmpty ? nil : elements[start] }

    mutating func append(_ element: Element) { elements.append(element) }

    mutating func popFirst() -> Element? {
        guard !isEmpty else { return nil }
        let element = elements[start].take()
        start += 1
        if start == elements.count {
            elements.removeAll()
            start = 0
        } else if start > 64, start * 2 > elements.count {
            elements.removeFirst(start)
            start = 0
        }
        return element
    }

    func contains(where condition: (Element) -> Bool) -> Bool {
        elements[start...].contains { $0.map(condition) ?? false }
    }

    mutating func remove(where condition: (Element) -> Bool) -> Element? {
        guard let index = elements[start...].firstIndex(where: { $0.map(condition) ?? false }) else {
            return nil
        }
        return elements.remove(at: index)
    }
}
