// Peer: AsyncHTTPClient on one NIO event loop, HTTP/1.1 only. W5, W6, W7, W10. See ../../README.md.
// usage: bench-async-http-client get URL CACERT REQUESTS CONCURRENCY [WORKLOAD] | bulk URL CACERT | idle URL COUNT | curve-get N URL    (CACERT: - for none)
import AsyncHTTPClient
import BenchmarkSupport
import Glibc
import NIOCore
import NIOPosix
import NIOSSL

let peer = "ahc"
let isCurve = argument(1, "") == "curve-get"
let address = argument(isCurve ? 3 : 2, ""), cacert = isCurve ? "-" : argument(3, "-")

func client(_ connections: Int) -> HTTPClient {
    var c = HTTPClient.Configuration()
    c.httpVersion = .http1Only
    c.connectionPool.concurrentHTTP1ConnectionsPerHostSoftLimit = connections
    c.connectionPool.idleTimeout = .hours(1)
    if cacert.hasPrefix("/") || cacert.hasSuffix(".pem") {
        var tls = TLSConfiguration.makeClientConfiguration()
        tls.trustRoots = .file(cacert)
        c.tlsConfiguration = tls
    }
    return HTTPClient(
        eventLoopGroupProvider: .shared(MultiThreadedEventLoopGroup(numberOfThreads: 1)), configuration: c)
}

func one(_ http: HTTPClient) async throws -> Int {
    let response = try await http.execute(HTTPClientRequest(url: address), timeout: .seconds(60))
    precondition(response.status == .ok)
    var n = 0
    for try await part in response.body { n += part.readableBytes }
    return n
}

func get(_ http: HTTPClient, _ requests: Int, _ concurrency: Int) async throws {
    let bytes = try await withThrowingTaskGroup(of: Int.self) { g in
        for i in 0..<concurrency {
            let mine = requests / concurrency + (i < requests % concurrency ? 1 : 0)
            g.addTask {
                var n = 0
                for _ in 0..<mine { n += try await one(http) }
                return n
            }
        }
        return try await g.reduce(0, +)
    }
    precondition(bytes == requests * 1024)
}

switch argument(1, "") {
case "get":
    let requests = argument(4, 10_000), concurrency = argument(5, 1)
    let http = client(concurrency)
    try await get(http, concurrency * 4, concurrency)
    let m = Meter()
    try await get(http, requests, concurrency)
    let (wall, cpu) = (m.wall, m.cpu)
    reportGet(
        peer, url: address, concurrency: concurrency, requests: requests, wall: wall, cpu: cpu,
        named: argument(6, "W5"))
    try await http.shutdown().get()
case "bulk":
    let http = client(1), m = Meter()
    let bytes = try await one(http)
    reportBulk(peer, url: address, bytes: bytes, wall: m.wall, cpu: m.cpu)
    try await http.shutdown().get()
case "idle":
    let n = argument(3, 10_000), http = client(n)
    let before = currentRSSKiB(), m = Meter()
    try await get(http, n, n)
    usleep(500_000)
    let open = (0..<20_000).filter { fcntl($0, F_GETFD) != -1 }.count
    report(
        "W7.idle-http", peer, Double(currentRSSKiB() - before) * 1024 / Double(n), "bytes/connection",
        wall: m.wall, cpu: m.cpu)
    print("open descriptors: \(open)")
    exit(0)
case "curve-get":
    let n = argument(2, 100), requests = curveRequests(n), http = client(n)
    try await get(http, n, n)
    let m = Meter()
    try await get(http, requests, n)
    reportCurve("connections", n, peer, items: requests, wall: m.wall, cpu: m.cpu)
    exit(0)
default:
    print("usage: bench-async-http-client get|bulk|idle|curve-get …")
    exit(2)
}
