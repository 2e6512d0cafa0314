// What every Swift peer shares: clocks, getrusage, the pseudo-random sequence, percentiles and the
// one-line report. c/common.h is the same thing for the C peers; keep the two in step.
import Glibc

@inline(__always) public func now() -> Double {
    var t = timespec()
    clock_gettime(CLOCK_MONOTONIC, &t)
    return Double(t.tv_sec) + Double(t.tv_nsec) * 1e-9
}

@inline(__always) public func nowNanos() -> Int64 {
    var t = timespec()
    clock_gettime(CLOCK_MONOTONIC, &t)
    return Int64(t.tv_sec) * 1_000_000_000 + Int64(t.tv_nsec)
}

/// User plus system time of this process, in seconds.
public func cpuSeconds() -> Double {
    var u = rusage()
    getrusage(0, &u)  // RUSAGE_SELF
    return Double(u.ru_utime.tv_sec + u.ru_stime.tv_sec) + Double(u.ru_utime.tv_usec + u.ru_stime.tv_usec)
        * 1e-6
}

public func peakRSSKiB() -> Int {
    var u = rusage()
    getrusage(0, &u)  // RUSAGE_SELF
    return u.ru_maxrss
}

/// Current resident set, from /proc/self/statm.
public func currentRSSKiB() -> Int {
    guard let f = fopen("/proc/self/statm", "r") else { return 0 }
    defer { fclose(f) }
    var buffer = [CChar](repeating: 0, count: 256)
    guard fgets(&buffer, 256, f) != nil else { return 0 }
    let text = String(cString: buffer).split(separator: " ")
    return (Int(text[1]) ?? 0) * (Int(getpagesize()) / 1024)
}

public func openDescriptors() -> Int {
    guard let directory = opendir("/proc/self/fd") else { return 0 }
    defer { closedir(directory) }
    var count = 0
    while readdir(directory) != nil { count += 1 }
    return count - 3  // . and .. and the directory itself
}

/// splitmix64, seed 42: the same delays in every peer.
public struct SplitMix {
    var state: UInt64 = 42
    public init() {}
    public mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var z = state
        z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
        z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
        return z ^ (z >> 31)
    }
    /// Uniform in [0, 1).
    public mutating func unit() -> Double { Double(next() >> 11) * 0x1p-53 }
}

public func percentile(_ values: inout [Int64], _ p: Double) -> Double {
    if values.isEmpty { return 0 }
    let i = min(values.count - 1, Int(Double(values.count) * p))
    return Double(values[i])
}

public struct Meter {
    let wall0 = now()
    let cpu0 = cpuSeconds()
    public init() {}
    public var wall: Double { now() - wall0 }
    public var cpu: Double { cpuSeconds() - cpu0 }
}

/// Three decimals without Foundation's formatter.
public func fixed(_ value: Double) -> String {
    var buffer = [CChar](repeating: 0, count: 64)
    withVaList([value]) { _ = vsnprintf(&buffer, 64, "%.3f", $0) }
    return String(cString: buffer)
}

public func report(
    _ workload: String, _ peer: String, _ value: Double, _ unit: String,
    wall: Double, cpu: Double, rss: Int = peakRSSKiB()
) {
    print(
        "workload=\(workload) peer=\(peer) value=\(fixed(value)) unit=\(unit) "
            + "wall_s=\(fixed(wall)) cpu_s=\(fixed(cpu)) rss_kib=\(rss)")
    fflush(stdout)
}

/// Lateness of a repeating timer against its own never-drifting grid: up to 1 ms early counts as early.
@inline(__always) public func lateness(_ t: Int64, first: Int64, interval: Int64) -> Int64 {
    let d = t - first
    let k = (d + 1_000_000) / interval
    return d - k * interval
}

public func argument(_ i: Int, _ fallback: Int) -> Int {
    CommandLine.arguments.count > i ? Int(CommandLine.arguments[i]) ?? fallback : fallback
}

public func argument(_ i: Int, _ fallback: String) -> String {
    CommandLine.arguments.count > i ? CommandLine.arguments[i] : fallback
}

/// The workload's name, with the count appended where it is not the standard one.
public func sized(_ name: String, _ n: Int, standard: Int) -> String {
    n == standard ? name : "\(name).n\(n)"
}

public func reportRepeat(_ peer: String, late: inout [Int64], wall: Double, cpu: Double) {
    late.sort()
    let n = Double(late.count)
    report("W1.repeat.rate", peer, n / wall, "fires/s", wall: wall, cpu: cpu)
    report("W1.repeat.late.p50", peer, percentile(&late, 0.5) / 1e3, "us", wall: wall, cpu: cpu)
    report("W1.repeat.late.p99", peer, percentile(&late, 0.99) / 1e3, "us", wall: wall, cpu: cpu)
    report("W1.repeat.cpu", peer, cpu * 1e9 / n, "cpu-ns/fire", wall: wall, cpu: cpu)
}

/// W1: `n` timers were scheduled and have all fired.
///
/// - Parameter scheduled: Wall and CPU seconds until all were scheduled.
public func reportChurn(
    _ peer: String, _ n: Int, scheduled: (wall: Double, cpu: Double), wall: Double, cpu: Double
) {
    func report(_ figure: String, _ seconds: Double, _ unit: String, wall: Double, cpu: Double) {
        BenchmarkSupport.report(
            sized(figure, n, standard: 1_000_000), peer, seconds * 1e9 / Double(n), unit, wall: wall, cpu: cpu
        )
    }
    report("W1.churn.schedule", scheduled.wall, "ns/timer", wall: scheduled.wall, cpu: scheduled.cpu)
    report("W1.churn", wall, "ns/timer", wall: wall, cpu: cpu)
    report("W1.churn.cpu", cpu, "cpu-ns/timer", wall: wall, cpu: cpu)
}

public func reportChildren(_ peer: String, _ count: Int, wall: Double, cpu: Double) {
    report("W13.children", peer, wall * 1e6 / Double(count), "us/child", wall: wall, cpu: cpu)
    report("W13.children.cpu", peer, cpu * 1e6 / Double(count), "cpu-us/child", wall: wall, cpu: cpu)
}

public func reportPingPong(
    _ peer: String, as workload: String = "W2.pingpong", rtt: inout [Int64], wall: Double, cpu: Double
) {
    rtt.sort()
    report("\(workload).p50", peer, percentile(&rtt, 0.5) / 1e3, "us", wall: wall, cpu: cpu)
    report("\(workload).p99", peer, percentile(&rtt, 0.99) / 1e3, "us", wall: wall, cpu: cpu)
    report("\(workload).cpu", peer, cpu * 1e6 / Double(rtt.count), "cpu-us/trip", wall: wall, cpu: cpu)
}

/// - Parameters:
///   - named: The workload.
///   - variant: What stands behind the figures' usual names, such as `.spin`.
public func reportGet(
    _ peer: String, url: String, concurrency: Int, requests: Int, wall: Double, cpu: Double,
    named: String = "W5", variant: String = ""
) {
    let scheme = url.hasPrefix("https") ? "https" : "http"
    let workload = "\(named).\(scheme).c\(concurrency)\(variant)"
    report("\(workload).rate", peer, Double(requests) / wall, "requests/s", wall: wall, cpu: cpu)
    report("\(workload).cpu", peer, cpu * 1e4 / Double(requests), "cpu-s/10k-requests", wall: wall, cpu: cpu)
}

public func reportBulk(
    _ peer: String, url: String, bytes: Int, wall: Double, cpu: Double, variant: String = ""
) {
    let scheme = url.hasPrefix("https") ? "https" : "http"
    precondition(bytes == 1 << 30, "body length \(bytes)")
    report("W6.\(scheme)\(variant).rate", peer, Double(bytes) / wall / 1e6, "MB/s", wall: wall, cpu: cpu)
    report("W6.\(scheme)\(variant).cpu", peer, cpu, "cpu-s/GiB", wall: wall, cpu: cpu)
}

/// W3's descriptors: `n` stream socketpairs, non-blocking.
public func socketPairs(_ n: Int) -> [(read: Int32, write: Int32)] {
    (0..<n).map { _ in
        var p: [Int32] = [0, 0]
        precondition(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue), 0, &p) == 0)
        return (p[0], p[1])
    }
}

@inline(__always) public func writeOneByte(_ fd: Int32) {
    var byte: UInt8 = 101
    precondition(Glibc.write(fd, &byte, 1) == 1)
}
