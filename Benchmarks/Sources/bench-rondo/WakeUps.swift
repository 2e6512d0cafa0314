import BenchmarkSupport
import Rondo

// `nonisolated(unsafe)`: one thread counts, and another reads only after that has ended or been joined.

// W2.

/// A global variable, as in the peer in C. `nonisolated(unsafe)` is safe: the loop's thread counts, and the
/// main thread reads after that has been joined.
private nonisolated(unsafe) var performed = 0

func perform(_ count: Int) {
    let thread = RunLoopThread(name: "b")
    let loop = thread.start()
    let meter = Meter()
    for _ in 0..<count { loop.perform { performed += 1 } }
    thread.stop()
    thread.join()
    let (wall, cpu) = (meter.wall, meter.cpu)
    precondition(performed == count)
    report("W2.perform", peer, wall * 1e9 / Double(count), "ns/block", wall: wall, cpu: cpu)
    report("W2.perform.cpu", peer, cpu * 1e9 / Double(count), "cpu-ns/block", wall: wall, cpu: cpu)
}

/// - Parameter spinDuration: In seconds, of both loops.
func pingPong(_ count: Int, spinDuration: TimeInterval = 0) {
    let (first, second) = (RunLoopThread(name: "a"), RunLoopThread(name: "b"))
    let (a, b) = (first.start(), second.start())
    for loop in [a, b] { loop.spinDuration = spinDuration }
    nonisolated(unsafe) var trips: [Int64] = []
    nonisolated(unsafe) var sent: Int64 = 0
    trips.reserveCapacity(count)
    let meter = Meter()
    @Sendable func pong() {
        let now = nowNanos()
        if sent != 0 { trips.append(now - sent) }
        if trips.count == count { return first.stop() }
        sent = nowNanos()
        b.perform { a.perform { pong() } }
    }
    a.perform { pong() }
    first.join()
    second.stop()
    second.join()
    let workload = spinDuration > 0 ? "W2.pingpong.spin" : "W2.pingpong"
    reportPingPong(peer, as: workload, rtt: &trips, wall: meter.wall, cpu: meter.cpu)
}
