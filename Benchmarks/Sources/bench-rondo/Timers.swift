import BenchmarkSupport
import Rondo

// `nonisolated(unsafe)`: one thread counts, and another reads only after that has ended or been joined.

// W1.

private let million = 1_000_000
/// A global variable, as in the peer in C: what a block captures is an allocation for each timer.
/// `nonisolated(unsafe)` is safe: only the thread whose loop is measured touches it.
private nonisolated(unsafe) var fired = 0

func churn(_ count: Int) {
    let loop = RunLoop.current
    var random = SplitMix()
    let meter = Meter()
    for _ in 0..<count {
        loop.add(
            Timer(timeInterval: random.unit(), repeats: false) { _ in fired += 1 }, forMode: .default)
    }
    let (scheduledWall, scheduledCPU) = (meter.wall, meter.cpu)
    // Until no timer is left.
    runUntilStopped()
    let (wall, cpu) = (meter.wall, meter.cpu)
    precondition(fired == count)
    reportChurn(peer, count, scheduled: (scheduledWall, scheduledCPU), wall: wall, cpu: cpu)
}

func cancel(_ count: Int) {
    let loop = RunLoop.current
    var random = SplitMix()
    let meter = Meter()
    var timers: [Timer] = []
    timers.reserveCapacity(count)
    for _ in 0..<count {
        let timer = Timer(timeInterval: random.unit(), repeats: false) { _ in }
        loop.add(timer, forMode: .default)
        timers.append(timer)
    }
    for timer in timers { timer.invalidate() }
    let (wall, cpu) = (meter.wall, meter.cpu)
    report(
        sized("W1.cancel", count, standard: million), peer, wall * 1e9 / Double(count), "ns/timer",
        wall: wall, cpu: cpu)
}

func repeating(_ count: Int, seconds: Int) {
    let loop = RunLoop.current
    nonisolated(unsafe) var late: [Int64] = []
    late.reserveCapacity(count * 100 * (seconds + 1))
    let meter = Meter()
    let (date, base) = (Date(), nowNanos())
    for index in 0..<count {
        let milliseconds = 10 + index % 10
        let first = base + Int64(milliseconds) * 1_000_000
        let timer = Timer(
            fire: date.addingTimeInterval(Double(milliseconds) * 1e-3), interval: 0.010, repeats: true
        ) { _ in
            late.append(lateness(nowNanos(), first: first, interval: 10_000_000))
        }
        loop.add(timer, forMode: .default)
    }
    _ = loop.run(in: .default, for: Double(seconds), returnAfterSourceHandled: false)
    reportRepeat(peer, late: &late, wall: meter.wall, cpu: meter.cpu)
}

/// Runs the default mode until something stops it, or nothing is left in it.
func runUntilStopped() {
    _ = RunLoop.current.run(in: .default, for: .infinity, returnAfterSourceHandled: false)
}
