import BenchmarkSupport
import Rondo

// `nonisolated(unsafe)`: touched by one thread only.

private nonisolated(unsafe) var fired = 0

func guardTimers() {
    let loop = RunLoop.current
    let count = 10_000
    var random = SplitMix()
    var timers: [Timer] = []
    timers.reserveCapacity(2 * count)
    func schedule(after delay: Double) {
        let timer = Timer(timeInterval: delay + random.unit() * 1e-3, repeats: false) { _ in fired += 1 }
        loop.add(timer, forMode: .default)
        timers.append(timer)
    }

    guarded("timer.scheduled", count: count) { for _ in 0..<count { schedule(after: 3600) } }
    guarded("timer.cancelled", count: count) {
        for timer in timers.suffix(count) { timer.invalidate() }
        timers.removeLast(count)
    }
    // All are due when the loop is run.
    guarded("timer.fired", count: count) {
        _ = loop.run(in: .default, for: 0, returnAfterSourceHandled: false)
        precondition(fired == count)
    } before: {
        fired = 0
        timers.removeAll(keepingCapacity: true)
        for _ in 0..<count { schedule(after: -1) }
    }
}
