import BenchmarkSupport
// Peer: Foundation's RunLoop and Timer on Linux. W1, W2, W8, W13. See ../../README.md.
import Foundation

// `nonisolated(unsafe)`: one thread or queue counts, and another reads only after it was waited for.
// `unsafeBitCast`: the functions are declared so in CFRunLoop.h, and are part of libFoundation.
let peer = "foundation"
typealias CFLoop = UnsafeRawPointer
/// CFRunLoopWakeUp is in libFoundation but not in its Swift interface; RunLoop.perform alone does not wake a waiting loop.
let cfGetCurrent = unsafeBitCast(
    dlsym(UnsafeMutableRawPointer(bitPattern: 0), "CFRunLoopGetCurrent"),
    to: (@convention(c) () -> CFLoop).self)
let cfWakeUp = unsafeBitCast(
    dlsym(UnsafeMutableRawPointer(bitPattern: 0), "CFRunLoopWakeUp"),
    to: (@convention(c) (CFLoop) -> Void).self)

/// run(mode:before:) does not return for timers nor blocks, and the main loop's modes are never empty: stop it by hand.
let cfStop = unsafeBitCast(
    dlsym(UnsafeMutableRawPointer(bitPattern: 0), "CFRunLoopStop"),
    to: (@convention(c) (CFLoop) -> Void).self)

/// Timer(timeInterval:repeats:) added by hand fires at once on Linux whatever the interval: the fire date must be given.
func timer(_ delay: Double, _ block: @escaping @Sendable (Timer) -> Void) -> Timer {
    Timer(fire: Date(timeIntervalSinceNow: delay), interval: 0, repeats: false, block: block)
}

func churn(_ n: Int) {
    var random = SplitMix()
    nonisolated(unsafe) var fired = 0
    let m = Meter()
    nonisolated(unsafe) let cf = cfGetCurrent()
    for _ in 0..<n {
        RunLoop.current.add(
            timer(random.unit()) { _ in
                fired += 1
                if fired == n { cfStop(cf) }
            }, forMode: .default)
    }
    let (schedWall, schedCPU) = (m.wall, m.cpu)
    while fired < n { _ = RunLoop.current.run(mode: .default, before: .distantFuture) }
    let (wall, cpu) = (m.wall, m.cpu)
    reportChurn(peer, n, scheduled: (schedWall, schedCPU), wall: wall, cpu: cpu)
}

func cancel(_ n: Int) {
    var random = SplitMix()
    let m = Meter()
    var timers: [Timer] = []
    timers.reserveCapacity(n)
    for _ in 0..<n {
        let t = timer(random.unit()) { _ in }
        RunLoop.current.add(t, forMode: .default)
        timers.append(t)
    }
    for t in timers { t.invalidate() }
    let (wall, cpu) = (m.wall, m.cpu)
    report(
        sized("W1.cancel", n, standard: 1_000_000), peer, wall * 1e9 / Double(n), "ns/timer", wall: wall,
        cpu: cpu)
}

func repeating(_ n: Int, _ seconds: Int) {
    nonisolated(unsafe) var late: [Int64] = []
    late.reserveCapacity(n * 100 * (seconds + 1))
    let m = Meter()
    let date = Date(), base = nowNanos()
    var timers: [Timer] = []
    for i in 0..<n {
        let ms = 10 + i % 10, first = base + Int64(ms) * 1_000_000
        let t = Timer(fire: date.addingTimeInterval(Double(ms) * 1e-3), interval: 0.010, repeats: true) { _ in
            late.append(lateness(nowNanos(), first: first, interval: 10_000_000))
        }
        RunLoop.current.add(t, forMode: .default)
        timers.append(t)
    }
    let end = date.addingTimeInterval(Double(seconds))
    while Date() < end { _ = RunLoop.current.run(mode: .default, before: end) }
    let (wall, cpu) = (m.wall, m.cpu)
    reportRepeat(peer, late: &late, wall: wall, cpu: cpu)
}

/// A thread running its run loop until told to stop.
final class Side: @unchecked Sendable {
    var loop: RunLoop!
    var cf: CFLoop!
    var running = true
    let ended = DispatchSemaphore(value: 0)
    init() {
        let ready = DispatchSemaphore(value: 0)
        Thread.detachNewThread { [unowned self] in
            loop = RunLoop.current
            cf = cfGetCurrent()
            loop.add(timer(3600) { _ in }, forMode: .default)
            ready.signal()
            while running { _ = loop.run(mode: .default, before: .distantFuture) }
            ended.signal()
        }
        ready.wait()
    }
    func perform(_ block: @escaping @Sendable () -> Void) {
        loop.perform(inModes: [.default], block: block)
        cfWakeUp(cf)
    }
    func stop() {  // on the loop's own thread
        running = false
        cfStop(cf)
    }
}

func perform(_ n: Int) {
    let b = Side()
    nonisolated(unsafe) var count = 0
    let m = Meter()
    for _ in 0..<n { b.perform { count += 1 } }
    b.perform { b.stop() }
    b.ended.wait()
    let (wall, cpu) = (m.wall, m.cpu)
    precondition(count == n)
    report(
        sized("W2.perform", n, standard: 1_000_000), peer, wall * 1e9 / Double(n), "ns/block", wall: wall,
        cpu: cpu)
    report(
        sized("W2.perform.cpu", n, standard: 1_000_000), peer, cpu * 1e9 / Double(n), "cpu-ns/block",
        wall: wall, cpu: cpu)
}

func pingpong(_ n: Int) {
    let a = Side(), b = Side()
    nonisolated(unsafe) var rtt: [Int64] = [], sent: Int64 = 0
    rtt.reserveCapacity(n)
    let m = Meter()
    @Sendable func pong() {
        let t = nowNanos()
        if sent != 0 { rtt.append(t - sent) }
        if rtt.count == n {
            b.perform { b.stop() }
            a.stop()
            return
        }
        sent = nowNanos()
        b.perform { a.perform(pong) }
    }
    a.perform(pong)
    a.ended.wait()
    b.ended.wait()
    let (wall, cpu) = (m.wall, m.cpu)
    reportPingPong(peer, rtt: &rtt, wall: wall, cpu: cpu)
}

func pass(_ n: Int) {
    var random = SplitMix()
    let other = RunLoop.Mode("peer.other")
    for _ in 0..<n { RunLoop.current.add(timer(3600 + random.unit()) { _ in }, forMode: .default) }
    RunLoop.current.add(timer(3600) { _ in }, forMode: other)
    for (mode, name, reps) in [(other, "other-mode", 20_000), (.default, "same-mode", 2_000)] {
        for _ in 0..<10 { _ = RunLoop.current.run(mode: mode, before: .distantPast) }
        let m = Meter()
        for _ in 0..<reps { _ = RunLoop.current.run(mode: mode, before: .distantPast) }
        let (wall, cpu) = (m.wall, m.cpu)
        report("W8.pass.\(n).\(name)", peer, wall * 1e9 / Double(reps), "ns/pass", wall: wall, cpu: cpu)
    }
}

/// Children started, read and reaped, one at a time.
func children(_ count: Int) {
    var bytes = 0
    let m = Meter()
    for _ in 0..<count {
        let process = Process()
        let output = Pipe()
        process.executableURL = URL(fileURLWithPath: "/bin/echo")
        process.arguments = ["words"]
        process.standardOutput = output
        do { try process.run() } catch { fatalError("\(error)") }
        bytes += output.fileHandleForReading.readDataToEndOfFile().count
        process.waitUntilExit()
        precondition(process.terminationStatus == 0)
    }
    let (wall, cpu) = (m.wall, m.cpu)
    precondition(bytes == count * 6)
    reportChildren(peer, count, wall: wall, cpu: cpu)
}

func curveTimers(_ n: Int) {  // in rounds: n timers with delays below n microseconds; a tenth of the items
    var random = SplitMix()
    nonisolated(unsafe) var left = 0
    nonisolated(unsafe) let cf = cfGetCurrent()
    let rounds = max(1, curveItems / 10 / n), m = Meter()
    for _ in 0..<rounds {
        left = n
        for _ in 0..<n {
            RunLoop.current.add(
                timer(random.unit() * Double(n) * 1e-6) { _ in
                    left -= 1
                    if left == 0 { cfStop(cf) }
                }, forMode: .default)
        }
        while left > 0 { _ = RunLoop.current.run(mode: .default, before: .distantFuture) }
    }
    reportCurve("timers", n, peer, items: rounds * n, wall: m.wall, cpu: m.cpu)
}

func curveModes(_ n: Int) {  // n modes that hold a far timer each; a tenth of the passes
    let modes = (0..<n).map { RunLoop.Mode("bench.\($0)") }
    for mode in modes {
        RunLoop.current.add(timer(3600) { _ in }, forMode: mode)
        _ = RunLoop.current.run(mode: mode, before: .distantPast)
    }
    let passes = curveItems / 10, m = Meter()
    for pass in 0..<passes { _ = RunLoop.current.run(mode: modes[pass % n], before: .distantPast) }
    reportCurve("modes", n, peer, items: passes, wall: m.wall, cpu: m.cpu)
}

switch argument(1, "") {
case "churn": churn(argument(2, 10_000))
case "cancel": cancel(argument(2, 100_000))
case "repeat": repeating(argument(2, 10_000), argument(3, 3))
case "perform": perform(argument(2, 1_000_000))
case "pingpong": pingpong(argument(2, 200_000))
case "pass": pass(argument(2, 1000))
case "children": children(argument(2, 2_000))
case "curve-timers": curveTimers(argument(2, 100))
case "curve-modes": curveModes(argument(2, 100))
default:
    print(
        "usage: bench-foundation churn|cancel|repeat|perform|pingpong|pass|children|curve-timers|curve-modes [N]"
    )
    exit(2)
}
