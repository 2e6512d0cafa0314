import BenchmarkSupport
// Peer: Dispatch (GCD) on Linux, one serial queue as "the loop". W1, W2, W3. See ../../README.md.
import Dispatch
import Glibc

// `nonisolated(unsafe)`: one thread or queue counts, and another reads only after it was waited for.
let peer = "dispatch"

func churn(_ n: Int) {
    let queue = DispatchQueue(label: "loop"), done = DispatchSemaphore(value: 0)
    var random = SplitMix()
    nonisolated(unsafe) var fired = 0
    let m = Meter()
    for _ in 0..<n {
        queue.asyncAfter(deadline: .now() + random.unit()) {
            fired += 1
            if fired == n { done.signal() }
        }
    }
    let (schedWall, schedCPU) = (m.wall, m.cpu)
    done.wait()
    let (wall, cpu) = (m.wall, m.cpu)
    reportChurn(peer, n, scheduled: (schedWall, schedCPU), wall: wall, cpu: cpu)
}

func cancel(_ n: Int) {  // timer sources, an hour away plus the delay, so that none fires meanwhile
    let queue = DispatchQueue(label: "loop")
    var random = SplitMix(), timers: [DispatchSourceTimer] = []
    timers.reserveCapacity(n)
    let m = Meter()
    for _ in 0..<n {
        let t = DispatchSource.makeTimerSource(queue: queue)
        t.schedule(deadline: .now() + 3600 + random.unit(), leeway: .nanoseconds(0))
        t.setEventHandler {}
        t.resume()
        timers.append(t)
    }
    for t in timers { t.cancel() }
    queue.sync {}
    let (wall, cpu) = (m.wall, m.cpu)
    report(
        sized("W1.cancel", n, standard: 1_000_000), peer, wall * 1e9 / Double(n), "ns/timer", wall: wall,
        cpu: cpu)
}

func repeating(_ n: Int, _ seconds: Int) {
    let queue = DispatchQueue(label: "loop")
    nonisolated(unsafe) var late: [Int64] = []
    late.reserveCapacity(n * 100 * (seconds + 1))
    var timers: [DispatchSourceTimer] = []
    let m = Meter()
    let start = DispatchTime.now(), base = nowNanos()
    for i in 0..<n {
        let ms = 10 + i % 10, first = base + Int64(ms) * 1_000_000
        let t = DispatchSource.makeTimerSource(queue: queue)
        t.schedule(deadline: start + .milliseconds(ms), repeating: .milliseconds(10), leeway: .nanoseconds(0))
        t.setEventHandler { late.append(lateness(nowNanos(), first: first, interval: 10_000_000)) }
        t.resume()
        timers.append(t)
    }
    let left = Double(seconds) - m.wall
    if left > 0 { usleep(UInt32(left * 1e6)) }
    let (wall, cpu) = (m.wall, m.cpu)
    let mine: [Int64] = queue.sync {
        for t in timers { t.cancel() }
        return late
    }
    var copy = mine
    reportRepeat(peer, late: &copy, wall: wall, cpu: cpu)
}

func perform(_ n: Int) {
    let queue = DispatchQueue(label: "loop")
    nonisolated(unsafe) var count = 0
    let m = Meter()
    for _ in 0..<n { queue.async { count += 1 } }
    queue.sync {}
    let (wall, cpu) = (m.wall, m.cpu)
    precondition(count == n)
    report("W2.perform", peer, wall * 1e9 / Double(n), "ns/block", wall: wall, cpu: cpu)
    report("W2.perform.cpu", peer, cpu * 1e9 / Double(n), "cpu-ns/block", wall: wall, cpu: cpu)
}

func pingpong(_ n: Int) {
    let a = DispatchQueue(label: "a"), b = DispatchQueue(label: "b"), done = DispatchSemaphore(value: 0)
    nonisolated(unsafe) var rtt: [Int64] = [], sent: Int64 = 0
    rtt.reserveCapacity(n)
    let m = Meter()
    @Sendable func pong() {
        let t = nowNanos()
        if sent != 0 { rtt.append(t - sent) }
        if rtt.count == n {
            done.signal()
            return
        }
        sent = nowNanos()
        b.async { a.async(execute: pong) }
    }
    a.async(execute: pong)
    done.wait()
    let (wall, cpu) = (m.wall, m.cpu)
    reportPingPong(peer, rtt: &rtt, wall: wall, cpu: cpu)
}

func fds(_ n: Int, _ active: Int, _ events: Int) {
    let queue = DispatchQueue(label: "loop"), done = DispatchSemaphore(value: 0)
    let pairs = socketPairs(n)
    nonisolated(unsafe) var writesLeft = events - active, eventsLeft = events
    var sources: [DispatchSourceRead] = []
    for i in 0..<n {
        let fd = pairs[i].read, next = pairs[(i + 1) % n].write
        let s = DispatchSource.makeReadSource(fileDescriptor: fd, queue: queue)
        s.setEventHandler {
            var byte: UInt8 = 0
            if Glibc.read(fd, &byte, 1) != 1 { return }
            if writesLeft > 0 {
                writesLeft -= 1
                writeOneByte(next)
            }
            eventsLeft -= 1
            if eventsLeft == 0 { done.signal() }
        }
        s.resume()
        sources.append(s)
    }
    usleep(300_000)
    let m = Meter()
    for i in 0..<active { writeOneByte(pairs[i * (n / active)].write) }
    done.wait()
    let (wall, cpu) = (m.wall, m.cpu)
    report("W3.fds", peer, wall * 1e9 / Double(events), "ns/event", wall: wall, cpu: cpu)
    report("W3.fds.cpu", peer, cpu * 1e9 / Double(events), "cpu-ns/event", wall: wall, cpu: cpu)
    exit(0)  // the sources are still live
}

func curveTimers(_ n: Int) {  // in rounds: n timers with delays below n microseconds, until all have fired
    let queue = DispatchQueue(label: "loop"), done = DispatchSemaphore(value: 0)
    var random = SplitMix()
    nonisolated(unsafe) var left = 0
    let rounds = max(1, curveItems / n), m = Meter()
    for _ in 0..<rounds {
        queue.sync { left = n }
        for _ in 0..<n {
            queue.asyncAfter(deadline: .now() + random.unit() * Double(n) * 1e-6) {
                left -= 1
                if left == 0 { done.signal() }
            }
        }
        done.wait()
    }
    reportCurve("timers", n, peer, items: rounds * n, wall: m.wall, cpu: m.cpu)
}

func curveSources(_ n: Int) {  // a hundred tokens go round through n descriptors
    let queue = DispatchQueue(label: "loop"), done = DispatchSemaphore(value: 0)
    let descriptors = tokenDescriptors(n)
    nonisolated(unsafe) var left = curveItems
    var sources: [DispatchSourceRead] = []
    for i in 0..<n {
        let (fd, next) = (descriptors[i], descriptors[(i + 1) % n])
        let s = DispatchSource.makeReadSource(fileDescriptor: fd, queue: queue)
        s.setEventHandler {
            guard takeToken(fd) else { return }
            putToken(next)
            left -= 1
            if left == 0 { done.signal() }
        }
        s.resume()
        sources.append(s)
    }
    usleep(300_000)
    let m = Meter()
    for token in 0..<100 { putToken(descriptors[token * n / 100]) }
    done.wait()
    reportCurve("sources", n, peer, items: curveItems, wall: m.wall, cpu: m.cpu)
    exit(0)  // the sources are still live
}

switch argument(1, "") {
case "churn": churn(argument(2, 1_000_000))
case "cancel": cancel(argument(2, 1_000_000))
case "repeat": repeating(argument(2, 10_000), argument(3, 3))
case "perform": perform(argument(2, 1_000_000))
case "pingpong": pingpong(argument(2, 200_000))
case "fds": fds(argument(2, 9_900), argument(3, 100), argument(4, 1_000_000))
case "curve-timers": curveTimers(argument(2, 100))
case "curve-sources": curveSources(argument(2, 100))
default:
    print("usage: bench-dispatch churn|cancel|repeat|perform|pingpong|fds|curve-timers|curve-sources [N]")
    exit(2)
}
