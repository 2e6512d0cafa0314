import Rondo
import RondoTestSupport
import Testing

@testable import RondoConnections

/// Tests when memory is given back that a burst of loads has left.
@Suite(.timeLimit(.minutes(5)), .leavesNoConnections) struct HeapTrimmerTests {
    /// Waits until the loader has done everything that it was given before.
    private static func settle() throws {
        let latch = Latch()
        RunLoop.loader.perform { latch.open() }
        try latch.wait()
    }

    @Test func `the heap is trimmed once after a burst, and not after less`() throws {
        let trimmer = HeapTrimmer(burst: 3, leastInterval: 0)
        var counts: [Int] = []
        for parked in [0, 2, 1, 0, 5, 2] {
            for _ in 0..<parked { trimmer.noteParked() }
            trimmer.trimAfterBurst()
            try Self.settle()
            counts.append(trimmer.count)
        }
        #expect(counts == [0, 0, 1, 1, 2, 2])
    }

    @Test func `a burst after the other is trimmed for later`() throws {
        let trimmer = HeapTrimmer(burst: 3)
        for _ in 0..<3 {
            for _ in 0..<5 { trimmer.noteParked() }
            trimmer.trimAfterBurst()
        }
        try Self.settle()
        #expect(trimmer.count == 1)
    }
}
