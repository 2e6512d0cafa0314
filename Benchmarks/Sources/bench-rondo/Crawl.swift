import BenchmarkSupport
import Rondo

// W14: pages that differ, each loaded once, with all that a program has that sets nothing: the shared cache and the shared
// cookies, in memory and on the disk.

/// Which cache a crawl meets.
enum CrawlKind: String {
    /// Empty.
    case cold
    /// What a crawl of the same pages in another process has left.
    case warm
    /// None, and no cookies: what the others are measured against.
    case plain
    /// As `cold`, of pages each of which changes the same cookie.
    case cookies
    /// As `cookies`, of a cookie that lasts for the session.
    case session
    /// As `cookies`, and the cookie is neither kept nor sent.
    case ignored
    /// Leaves what `warm` finds, and reports nothing.
    case fill

    /// The figures that it stands for: what the others are measured against stands for each of them.
    var reportedNames: [String] {
        switch self {
        case .plain: ["cold", "warm"]
        case .ignored: ["cookies", "session"]
        case .cold, .warm, .cookies, .session, .fill: [rawValue]
        }
    }

    var peer: String {
        switch self {
        case .plain: "rondo-plain"
        case .ignored: "rondo-ignored"
        case .cold, .warm, .cookies, .session, .fill: "rondo"
        }
    }

    var folder: String {
        switch self {
        case .cold, .warm, .plain, .fill: "/page/"
        case .cookies, .ignored: "/kept-cookie/"
        case .session: "/session-cookie/"
        }
    }
}

/// Reports the CPU time of the whole process for a page: to find and open what is stored belongs to it.
///
/// - Parameter home: Where cookies and cache lie; nil: in a folder that is new, and removed in the end.
func crawl(_ address: String, pages: Int, _ kind: CrawlKind, home: String?) {
    let folder = home ?? NSTemporaryDirectory() + "/rondo-crawl-\(getpid())"
    defer { if home == nil { try? FileManager.default.removeItem(atPath: folder) } }
    if kind == .warm { fill(address, pages: pages, home: folder) }
    setenv("XDG_CACHE_HOME", folder + "/cache", 1)
    setenv("XDG_DATA_HOME", folder + "/data", 1)
    var configuration = URLConnection.Configuration()
    if kind == .plain {
        configuration.cache = nil
        configuration.cookieStorage = nil
    }
    if kind == .ignored { configuration.cookieStorage = nil }
    let crawl = Crawl(address + kind.folder, count: pages, configuration)
    let meter = Meter()
    crawl.run(16)
    let wall = meter.wall
    precondition(crawl.bytes == pages * 1024)
    // What waits to be written is written meanwhile.
    usleep(300_000)
    if kind == .fill { return }
    let cpu = cpuSeconds()
    for name in kind.reportedNames {
        report(
            "W14.\(pages).\(name)", kind.peer, cpu * 1e6 / Double(pages), "cpu-us/page", wall: wall, cpu: cpu)
    }
}

/// Has another process crawl the same pages.
private func fill(_ address: String, pages: Int, home: String) {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: CommandLine.arguments[0])
    process.arguments = ["crawl", address, String(pages), CrawlKind.fill.rawValue, home]
    do { try process.run() } catch { fatalError("\(error)") }
    process.waitUntilExit()
    precondition(process.terminationStatus == 0)
}

private final class Crawl: NSObject, URLConnectionDataDelegate {
    private let address: String
    private let count: Int
    private let configuration: URLConnection.Configuration
    private let loop = RunLoop.current
    private var begun = 0
    private var ended = 0
    private(set) var bytes = 0

    init(_ address: String, count: Int, _ configuration: URLConnection.Configuration) {
        self.address = address
        self.count = count
        self.configuration = configuration
    }

    func run(_ concurrency: Int) {
        for _ in 0..<concurrency { next() }
        runUntilStopped()
    }

    private func next() {
        guard begun < count, let url = URL(string: address + String(begun)) else { return }
        begun += 1
        let connection = URLConnection(request: URLRequest(url: url), delegate: self, startImmediately: false)
        connection?.configuration = configuration
        connection?.start()
    }

    func connection(_ connection: URLConnection, didReceive data: Data) { bytes += data.count }

    func connectionDidFinishLoading(_ connection: URLConnection) {
        ended += 1
        if ended == count { loop.stop() }
        next()
    }

    func connection(_ connection: URLConnection, didFailWithError error: any Error) { fatalError("\(error)") }
}
