import BenchmarkSupport
import Rondo

// W17: a program whose first act is to load a response that sets 180 cookies, while 3,000 are kept from before, and how
// late a timer of 1 ms is meanwhile.

/// Which cookies the load meets.
enum CookieKind: String {
    /// 3,000 of before.
    case kept
    /// None, and none is stored: what a first load costs by itself.
    case plain
    /// Leaves what `kept` finds, and reports nothing.
    case fill
}

private let keptCount = 3_000
private let setCount = 180

/// - Parameters:
///   - address: Of the server of the parent; empty: this process is the parent, which starts a process for each load.
///   - home: Where the cookies lie.
func cookies(_ kind: CookieKind, _ address: String, home: String, repetitions: Int) {
    if address.isEmpty {
        return startLoads(repetitions)
    }
    setenv("XDG_DATA_HOME", home, 1)
    switch kind {
    case .fill:
        let hosts = (keptCount + setCount - 1) / setCount
        for host in 1...hosts { TimedLoad(hostAddress(host, address), isPlain: false).run() }
    case .kept, .plain: measure(kind, address)
    }
}

/// Any address that begins with 127 is this machine's.
private func hostAddress(_ host: Int, _ address: String) -> String {
    address.replacingOccurrences(of: "127.0.0.1", with: "127.0.0.\(host)")
}

private func measure(_ kind: CookieKind, _ address: String) {
    let meter = Meter()
    let lateness = Lateness(on: .current)
    // The timer has its own start behind it.
    lateness.run(for: 0.05)
    let start = lateness.worst
    lateness.reset()
    let load = TimedLoad(address, isPlain: kind == .plain)
    let seconds = load.run(atMost: 3)
    // The thread may have something left to do.
    lateness.run(for: 0.2)
    let (wall, cpu) = (meter.wall, meter.cpu)
    if argument(6, "") == "-v" {
        print(
            "before \(fixed(start * 1e3)) ms; late by more than 1 ms (at, by, CPU of the thread): \(lateness.notes)"
        )
    }
    report("W17.cookies.\(kind).late", peer, lateness.worst * 1e3, "ms", wall: wall, cpu: cpu)
    report("W17.cookies.\(kind).busy", peer, lateness.busiest * 1e3, "ms", wall: wall, cpu: cpu)
    report("W17.cookies.\(kind).load", peer, seconds * 1e3, "ms", wall: wall, cpu: cpu)
}

private func startLoads(_ repetitions: Int) {
    let home = NSTemporaryDirectory() + "/rondo-cookies-\(getpid())"
    defer { try? FileManager.default.removeItem(atPath: home) }
    guard let server = CookieServer(cookies: setCount) else { fatalError("no server") }
    let address = "http://127.0.0.1:\(server.port)/"
    start(.fill, address, home)
    for _ in 0..<repetitions {
        start(.plain, address, home + "-none")
        start(.kept, address, home)
    }
}

private func start(_ kind: CookieKind, _ address: String, _ home: String) {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: CommandLine.arguments[0])
    process.arguments = ["cookies", kind.rawValue, address, home, "1", argument(6, "")]
    do { try process.run() } catch { fatalError("\(error)") }
    process.waitUntilExit()
    precondition(process.terminationStatus == 0)
}

/// A timer of 1 ms, and how late it was.
private final class Lateness {
    private(set) var worst = 0.0
    /// The longest time that the thread has computed between two of its calls, in seconds; what is late beyond that, it has
    /// waited for a core.
    private(set) var busiest = 0.0
    private(set) var notes = ""
    private var last = now()
    private var lastCPU = threadCPU()
    private let began = now()
    private let loop: RunLoop
    private var timer: Timer?

    init(on loop: RunLoop) {
        self.loop = loop
        // Safe: the timer fires on this thread alone, and not after the deinit.
        nonisolated(unsafe) unowned let own = self
        let timer = Timer(timeInterval: 0.001, repeats: true) { _ in own.fired() }
        loop.add(timer, forMode: .default)
        self.timer = timer
    }

    deinit { timer?.invalidate() }

    func reset() { (worst, busiest, notes, last, lastCPU) = (0, 0, "", now(), threadCPU()) }

    private func fired() {
        let (time, cpu) = (now(), threadCPU())
        let late = time - last - 0.001
        if late > 0.001 {
            notes += "\(fixed((time - began) * 1e3)) \(fixed(late * 1e3)) \(fixed((cpu - lastCPU) * 1e3)); "
        }
        worst = max(worst, late)
        busiest = max(busiest, cpu - lastCPU)
        (last, lastCPU) = (time, cpu)
    }

    func run(for seconds: Double) {
        let until = now() + seconds
        while now() < until { loop.run(mode: .default, before: Date(timeIntervalSinceNow: until - now())) }
    }
}

private func threadCPU() -> Double {
    var time = timespec()
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
    return Double(time.tv_sec) + Double(time.tv_nsec) * 1e-9
}

private final class TimedLoad: NSObject, URLConnectionDataDelegate {
    private let request: URLRequest
    private let isPlain: Bool
    private let loop = RunLoop.current
    private var isOver = false

    init(_ address: String, isPlain: Bool) {
        guard let url = URL(string: address) else { fatalError("no URL: \(address)") }
        request = URLRequest(url: url)
        self.isPlain = isPlain
    }

    /// - Parameter seconds: Foundation takes longer where it has read its cookies from its file.
    /// - Returns: Seconds until its end.
    @discardableResult
    func run(atMost seconds: Double = 60) -> Double {
        let began = now()
        let connection = URLConnection(request: request, delegate: self, startImmediately: false)
        if isPlain { connection?.configuration.cookieStorage = nil }
        connection?.start()
        while !isOver, now() - began < seconds {
            loop.run(mode: .default, before: Date(timeIntervalSinceNow: began + seconds - now()))
        }
        return now() - began
    }

    func connectionDidFinishLoading(_ connection: URLConnection) { isOver = true }

    func connection(_ connection: URLConnection, didFailWithError error: any Error) { fatalError("\(error)") }
}

/// Answers every request with so many cookies, of new values each time.
private final class CookieServer: Sendable {
    let port: UInt16

    init?(cookies: Int) {
        let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isBound = withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(listener, $0, size) == 0 && listen(listener, 16) == 0
                    && getsockname(listener, $0, &size) == 0
            }
        }
        guard isBound else { return nil }
        port = UInt16(bigEndian: address.sin_port)
        Thread.detachNewThread {
            for round in 0... {
                let peer = accept(listener, nil, nil)
                if peer < 0 { continue }
                Self.serve(peer, cookies, round)
                close(peer)
            }
        }
    }

    private static func serve(_ peer: Int32, _ cookies: Int, _ round: Int) {
        var bytes = [UInt8](repeating: 0, count: 4096)
        var text = ""
        while !text.contains("\r\n\r\n") {
            let count = read(peer, &bytes, bytes.count)
            if count <= 0 { return }
            text += String(decoding: bytes.prefix(count), as: UTF8.self)
        }
        var answer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n"
        for index in 0..<cookies { answer += "Set-Cookie: name\(index)=value\(round); Max-Age=86400\r\n" }
        let all = Array((answer + "\r\nok").utf8)
        _ = write(peer, all, all.count)
    }
}
