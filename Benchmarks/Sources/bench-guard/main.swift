// What single acts of Rondo cost in instructions and in allocations, for ../../guard, which counts both.
//
// Each guard does its work once to warm up, so that what is made on first use is made, and counts the second time.
// One thread, no clock that decides anything, nothing that depends on another process's pace: two runs count alike.

import BenchmarkSupport
import CBenchmark
import Rondo

/// Counts what `work` does the second time.
func guarded(_ name: String, count: Int, _ work: () -> Void, before prepare: () -> Void = {}) {
    prepare()
    work()
    prepare()
    bench_guard_begin()
    work()
    bench_guard_end(name, count)
}

/// Runs the default mode until something stops it.
func runUntilStopped() {
    _ = RunLoop.current.run(in: .default, for: .infinity, returnAfterSourceHandled: false)
}

// Its look, after five seconds, would fall into one of the acts.
RunLoop.unservedWarningDelay = nil

// On a thread of its own: the main loop drains the main queue too.
Thread.detachNewThread {
    guardTimers()
    guardBlocks()
    guardPasses()
    guardDescriptors()
    guardStreams()
    guardRequests(argument(1, ""))
    exit(0)
}
while true { sleep(1_000) }
