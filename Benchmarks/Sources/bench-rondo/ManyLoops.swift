import BenchmarkSupport
import Dispatch
import Rondo

// W5 with several loops: each on a thread of its own, with its own requests in flight; and the same by as many processes,
// which share nothing and so are the limit.

/// - Parameters:
///   - ports: The servers', such as `4711,4712`; requests go to each in turn.
///   - requests: Of all loops together.
///   - concurrency: Requests in flight on each loop.
func getOnLoops(_ ports: String, loops: Int, requests: Int, concurrency: Int) {
    let addresses = addresses(ports)
    let share = requests / loops
    allow(connections: loops * concurrency)
    let (ready, go, done) = (
        DispatchSemaphore(value: 0), DispatchSemaphore(value: 0), DispatchSemaphore(value: 0)
    )
    for _ in 0..<loops {
        Thread.detachNewThread {
            round(addresses, requests: concurrency * 4, concurrency: concurrency)
            ready.signal()
            go.wait()
            let bytes = round(addresses, requests: share, concurrency: concurrency)
            precondition(bytes == share * 1024)
            done.signal()
        }
    }
    for _ in 0..<loops { ready.wait() }
    let meter = Meter()
    for _ in 0..<loops { go.signal() }
    for _ in 0..<loops { done.wait() }
    reportLoops(
        "rondo-\(loops)-loop\(loops == 1 ? "" : "s")", servers: addresses.count, requests: share * loops,
        wall: meter.wall, cpu: meter.cpu)
}

/// As above, with one loop in each of `count` processes.
func getInProcesses(_ ports: String, count: Int, requests: Int, concurrency: Int) {
    let share = requests / count
    let parts = (0..<count).map { _ in Part(ports, requests: share, concurrency: concurrency) }
    for part in parts { part.awaitReady() }
    let meter = Meter()
    for part in parts { part.go() }
    let cpu = parts.map { $0.cpu() }.reduce(0, +)
    reportLoops(
        "\(count)-processes", servers: addresses(ports).count, requests: share * count, wall: meter.wall,
        cpu: cpu)
}

/// One of these processes: says that it has warmed up, waits for a line, loads, and says what CPU time it took.
func getAsPart(_ ports: String, requests: Int, concurrency: Int) {
    let addresses = addresses(ports)
    round(addresses, requests: concurrency * 4, concurrency: concurrency)
    print("ready")
    fflush(nil)
    _ = readLine()
    let meter = Meter()
    let bytes = round(addresses, requests: requests, concurrency: concurrency)
    precondition(bytes == requests * 1024)
    print(fixed(meter.cpu))
}

private func addresses(_ ports: String) -> [String] {
    ports.split(separator: ",").map { "http://localhost:\($0)/1k.txt" }
}

private func reportLoops(_ peer: String, servers: Int, requests: Int, wall: Double, cpu: Double) {
    let workload = "W5.loops.s\(servers)"
    report("\(workload).rate", peer, Double(requests) / wall, "requests/s", wall: wall, cpu: cpu)
    report("\(workload).cpu", peer, cpu * 1e6 / Double(requests), "cpu-us/request", wall: wall, cpu: cpu)
}

/// This program once more, as seen by the process that has started it.
private final class Part {
    private let process = Process()
    private let (input, output) = (Pipe(), Pipe())
    private var unread = ""

    init(_ ports: String, requests: Int, concurrency: Int) {
        process.executableURL = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath()
        process.arguments = ["loops-part", ports, "\(requests)", "\(concurrency)"]
        process.standardInput = input
        process.standardOutput = output
        do {
            try process.run()
        } catch {
            fatalError("\(error)")
        }
    }

    func awaitReady() { precondition(nextLine() == "ready") }

    func go() { input.fileHandleForWriting.write(Data("go\n".utf8)) }

    /// Waits for its end.
    func cpu() -> Double {
        guard let seconds = Double(nextLine()) else { fatalError("a process has failed") }
        return seconds
    }

    private func nextLine() -> String {
        while true {
            if let end = unread.firstIndex(of: "\n") {
                defer { unread = String(unread[unread.index(after: end)...]) }
                return String(unread[..<end])
            }
            let data = output.fileHandleForReading.availableData
            guard !data.isEmpty else { return unread }
            unread += String(decoding: data, as: UTF8.self)
        }
    }
}
