import RondoProbeSupport
import Testing

@testable import RondoCore

@Suite struct InPlaceSortTests {
    private struct Ascending: SortOrder {
        func comesBefore(_ one: Int, _ other: Int) -> Bool { one < other }
    }

    @Test(arguments: [0, 1, 2, 3, 24, 25, 100, 5000])
    func `every order of the elements is sorted`(count: Int) {
        var generator = Random(seed: 11)
        let arrangements: [[Int]] = [
            Array(0..<count), (0..<count).reversed(), Array(repeating: 7, count: count),
            (0..<count).map { min($0, count - $0) }, (0..<count).map { $0 % 3 },
            (0..<count).map { _ in Int(generator.next() % 1_000_000) },
            (0..<count).map { _ in Int(generator.next() % 10) },
            // All but the last are in order, as after an insertion.
            Array(0..<count).dropLast() + [count / 2].suffix(count),
        ]
        for var elements in arrangements {
            let expected = elements.sorted()
            elements.withUnsafeMutableBufferPointer { InPlaceSort(order: Ascending()).sort($0) }
            #expect(elements == expected)
        }
    }

    /// Decides on the values as it is asked, and always so that the pivot is a bad one (McIlroy, A Killer
    /// Adversary for Quicksort, 1999).
    private final class Adversary {
        var values: [Int?]
        var decided = 0
        var candidate = 0
        var comparisons = 0

        init(count: Int) {
            values = Array(repeating: nil, count: count)
        }

        func comesBefore(_ one: Int, _ other: Int) -> Bool {
            comparisons += 1
            if values[one] == nil, values[other] == nil { decide(one == candidate ? one : other) }
            if values[one] == nil { candidate = one } else if values[other] == nil { candidate = other }
            return (values[one] ?? .max) < (values[other] ?? .max)
        }

        private func decide(_ element: Int) {
            values[element] = decided
            decided += 1
        }
    }

    private struct AdversarialOrder: SortOrder {
        let adversary: Adversary

        func comesBefore(_ one: Int, _ other: Int) -> Bool { adversary.comesBefore(one, other) }
    }

    @Test func `no order of the elements makes sorting slow`() {
        let count = 20_000
        let adversary = Adversary(count: count)
        var elements = Array(0..<count)
        elements.withUnsafeMutableBufferPointer {
            InPlaceSort(order: AdversarialOrder(adversary: adversary)).sort($0)
        }
        // Some eight times n log n; a quicksort by itself takes n² / 4.
        #expect(adversary.comparisons < 8 * count * 15)
        #expect(Set(elements).count == count)
    }
}
