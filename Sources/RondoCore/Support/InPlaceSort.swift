/// The order by which `InPlaceSort` sorts.
protocol SortOrder {
    associatedtype Element

    func comesBefore(_ one: Element, _ other: Element) -> Bool
}

/// Sorts in place, without the buffer that the standard library's sort allocates. The order of equal elements
/// is not kept.
///
/// Quicksort by the median of three (Hoare; Sedgewick), which leaves short pieces to insertion sort, and
/// switches to heapsort if the pieces do not become short soon enough (Musser's introsort), so that no order
/// of the elements makes it slow. (The order is a type, not a closure, so that a comparison is not a call.)
struct InPlaceSort<Order: SortOrder> {
    typealias Elements = UnsafeMutableBufferPointer<Order.Element>

    let order: Order

    /// The length up to which insertion sort is faster.
    private var shortest: Int { 24 }

    func sort(_ elements: Elements) {
        sort(elements, depth: 2 * (Int.bitWidth - elements.count.leadingZeroBitCount))
    }

    private func sort(_ all: Elements, depth: Int) {
        var elements = all
        var depth = depth
        while elements.count > shortest {
            guard depth > 0 else { return heapSort(elements) }
            depth -= 1
            let middle = partition(elements)
            sort(Elements(rebasing: elements[..<middle]), depth: depth)
            elements = Elements(rebasing: elements[middle...])
        }
        insertionSort(elements)
    }

    /// - Returns: The index at which the second of two pieces begins. Neither is empty; nothing in the first
    ///   piece comes after anything in the second.
    private func partition(_ elements: Elements) -> Int {
        let (first, middle, last) = (elements[0], elements[elements.count / 2], elements[elements.count - 1])
        let (lower, upper) = order.comesBefore(middle, first) ? (middle, first) : (first, middle)
        let pivot = order.comesBefore(last, lower) ? lower : order.comesBefore(last, upper) ? last : upper
        var low = 0
        var high = elements.count - 1
        while true {
            while order.comesBefore(elements[low], pivot) { low += 1 }
            while order.comesBefore(pivot, elements[high]) { high -= 1 }
            guard low < high else { return max(low, 1) }
            elements.swapAt(low, high)
            low += 1
            high -= 1
        }
    }

    private func insertionSort(_ elements: Elements) {
        for index in elements.indices.dropFirst() {
            let element = elements[index]
            var place = index
            while place > 0, order.comesBefore(element, elements[place - 1]) {
                elements[place] = elements[place - 1]
                place -= 1
            }
            elements[place] = element
        }
    }

    private func heapSort(_ elements: Elements) {
        func siftDown(from start: Int, count: Int) {
            var index = start
            while 2 * index + 1 < count {
                var child = 2 * index + 1
                if child + 1 < count, order.comesBefore(elements[child], elements[child + 1]) { child += 1 }
                guard order.comesBefore(elements[index], elements[child]) else { return }
                elements.swapAt(index, child)
                index = child
            }
        }
        for index in (0..<elements.count / 2).reversed() { siftDown(from: index, count: elements.count) }
        for end in (1..<max(elements.count, 1)).reversed() {
            elements.swapAt(0, end)
            siftDown(from: 0, count: end)
        }
    }
}
