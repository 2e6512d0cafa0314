import BenchmarkSupport
import Rondo

// `nonisolated(unsafe)`: touched by one thread only.

func guardBlocks() {
    let loop = RunLoop.current
    let count = 10_000
    nonisolated(unsafe) var performed = 0
    // What a block captures is an allocation of its own, and counts.
    guarded("block.performed", count: count) {
        for _ in 0..<count { loop.perform { performed += 1 } }
        _ = loop.run(in: .default, for: 0, returnAfterSourceHandled: false)
    }
    // Each performs the next, as two loops do that answer one another.
    guarded("block.performed.alone", count: count) {
        nonisolated(unsafe) var left = count
        @Sendable func next() {
            left -= 1
            if left == 0 { loop.stop() } else { loop.perform { next() } }
        }
        loop.perform { next() }
        runUntilStopped()
    }
    precondition(performed == 2 * count)
}
