import BenchmarkSupport
import Rondo

// W5, W6, W7's pooled connections, and W15. HTTPS trusts what SSL_CERT_FILE names.

/// - Parameter spinDuration: In seconds, of the loop.
func get(_ address: String, requests: Int, concurrency: Int, spinDuration: TimeInterval = 0) {
    RunLoop.current.spinDuration = spinDuration
    round([address], requests: concurrency * 4, concurrency: concurrency)
    let meter = Meter()
    let bytes = round([address], requests: requests, concurrency: concurrency)
    precondition(bytes == requests * 1024)
    reportGet(
        peer, url: address, concurrency: concurrency, requests: requests, wall: meter.wall, cpu: meter.cpu,
        variant: spinDuration > 0 ? ".spin" : "")
}

/// A connection each, which the server closes; with all that loads do by default.
func getOnce(_ address: String, requests: Int, concurrency: Int) {
    round(
        [address], requests: concurrency * 4, concurrency: concurrency, cachePolicy: .useProtocolCachePolicy)
    let meter = Meter()
    let bytes = round(
        [address], requests: requests, concurrency: concurrency, cachePolicy: .useProtocolCachePolicy)
    precondition(bytes == requests * 1024)
    reportGet(
        peer, url: address, concurrency: concurrency, requests: requests, wall: meter.wall, cpu: meter.cpu,
        named: "W15")
}

func bulk(_ address: String) {
    let meter = Meter()
    let bytes = round([address], requests: 1, concurrency: 1)
    reportBulk(peer, url: address, bytes: bytes, wall: meter.wall, cpu: meter.cpu)
}

/// What a program weighs that makes a request and loads nothing: the peak memory of W6 counts from there.
func makeRequest(_ address: String) {
    guard let url = URL(string: address) else { fatalError("no URL: \(address)") }
    let meter = Meter()
    var request = URLRequest(url: url)
    request.cachePolicy = .reloadIgnoringLocalCacheData
    precondition(request.url == url)
    report("W6.request.cpu", peer, meter.cpu, "cpu-s", wall: meter.wall, cpu: meter.cpu)
}

func idleRequests(_ address: String, _ count: Int) {
    let before = currentRSSKiB()
    let meter = Meter()
    round([address], requests: count, concurrency: count)
    // As of the other peers. (The loop has nothing left to run for.)
    usleep(500_000)
    precondition(openDescriptors() >= count, "not all connections were kept")
    report(
        "W7.idle-http", peer, Double(currentRSSKiB() - before) * 1024 / Double(count), "bytes/connection",
        wall: meter.wall, cpu: meter.cpu)
}

/// `count` requests in flight, each on its connection.
func curveRequests(_ address: String, _ count: Int) {
    round([address], requests: count, concurrency: count)
    let requests = curveRequests(count)
    let meter = Meter()
    let bytes = round([address], requests: requests, concurrency: count)
    precondition(bytes == requests * 1024)
    reportCurve("connections", count, peer, items: requests, wall: meter.wall, cpu: meter.cpu)
}

/// Loads from all addresses, each request in flight from one of them, on the current loop.
///
/// - Returns: How many bytes the bodies had.
@discardableResult
func round(
    _ addresses: [String], requests: Int, concurrency: Int,
    cachePolicy: URLRequest.CachePolicy = .reloadIgnoringLocalCacheData
) -> Int {
    let each = addresses.map { address in
        guard let url = URL(string: address) else { fatalError("no URL: \(address)") }
        return URLRequest(url: url, cachePolicy: cachePolicy)
    }
    allow(connections: concurrency)
    let job = Job(count: requests, on: RunLoop.current)
    for index in 0..<concurrency { Getter(each[index % each.count], of: job).next() }
    runUntilStopped()
    return job.bytes
}

/// At least as many connections as there are requests in flight, all of them kept.
func allow(connections: Int) {
    var limits = URLConnection.limits
    limits.connections = max(limits.connections, connections)
    limits.connectionsPerServer = max(limits.connectionsPerServer, connections)
    limits.idleConnections = max(limits.idleConnections, connections)
    limits.idleConnectionsPerServer = max(limits.idleConnectionsPerServer, connections)
    URLConnection.limits = limits
}

/// What the getters of a round share; touched by the loop's thread only.
private final class Job {
    let loop: RunLoop
    private var left: Int
    private var unfinished: Int
    private(set) var bytes = 0

    init(count: Int, on loop: RunLoop) {
        self.loop = loop
        (left, unfinished) = (count, count)
    }

    func takeOne() -> Bool {
        guard left > 0 else { return false }
        left -= 1
        return true
    }

    func received(_ count: Int) { bytes += count }

    func finishedOne() {
        unfinished -= 1
        if unfinished == 0 { loop.stop() }
    }
}

/// One request in flight, and the next when it has ended.
private final class Getter: NSObject, URLConnectionDataDelegate {
    private let request: URLRequest
    private let job: Job

    init(_ request: URLRequest, of job: Job) {
        self.request = request
        self.job = job
    }

    func next() {
        guard job.takeOne() else { return }
        _ = URLConnection(request: request, delegate: self)
    }

    func connection(_ connection: URLConnection, didReceive response: URLResponse) {
        precondition((response as? HTTPURLResponse)?.statusCode == 200)
    }

    func connection(_ connection: URLConnection, didReceive data: Data) { job.received(data.count) }

    func connectionDidFinishLoading(_ connection: URLConnection) {
        job.finishedOne()
        next()
    }

    func connection(_ connection: URLConnection, didFailWithError error: any Error) {
        fatalError("\(error)")
    }
}
