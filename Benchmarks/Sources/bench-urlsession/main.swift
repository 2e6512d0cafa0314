import BenchmarkSupport
// Peer: Foundation's URLSession on Linux (libcurl underneath). W5, W6, W10 and W16. See ../../README.md.
// usage: bench-urlsession get URL REQUESTS CONCURRENCY [WORKLOAD] | bulk URL | request URL
// HTTPS: it trusts the system's certificates and no others; ../../suite/jobs.py puts ours in their place.
import Foundation
import FoundationNetworking

let peer = "urlsession"
let address = argument(2, ""), url = URL(string: address)!

func configuration(_ connections: Int) -> URLSessionConfiguration {
    let c = URLSessionConfiguration.ephemeral
    c.httpMaximumConnectionsPerHost = connections
    c.urlCache = nil
    c.requestCachePolicy = .reloadIgnoringLocalCacheData
    return c
}

final class Getter: @unchecked Sendable {  // all state on the session's serial delegate queue
    let session: URLSession, done = DispatchSemaphore(value: 0)
    var left = 0, finished = 0, total = 0, bytes = 0
    init(_ concurrency: Int) {
        let queue = OperationQueue()
        queue.maxConcurrentOperationCount = 1
        session = URLSession(configuration: configuration(concurrency), delegate: nil, delegateQueue: queue)
    }
    func one() {
        session.dataTask(with: url) { [self] data, response, error in
            guard let data, (response as? HTTPURLResponse)?.statusCode == 200 else {
                fatalError("\(String(describing: error))")
            }
            bytes += data.count
            finished += 1
            if left > 0 {
                left -= 1
                one()
            }
            if finished == total { done.signal() }
        }.resume()
    }
    func run(_ requests: Int, _ concurrency: Int) {
        (total, left, finished, bytes) = (requests, requests - concurrency, 0, 0)
        for _ in 0..<concurrency { one() }
        done.wait()
    }
}

final class Bulk: NSObject, URLSessionDataDelegate, @unchecked Sendable {  // state as in Getter
    var bytes = 0
    let done = DispatchSemaphore(value: 0)
    func urlSession(_ s: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        bytes += data.count
    }
    func urlSession(_ s: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        if let error { fatalError("\(error)") }
        done.signal()
    }
}

switch argument(1, "") {
case "get":
    let requests = argument(3, 5_000), concurrency = argument(4, 1)
    let g = Getter(concurrency)
    g.run(concurrency * 4, concurrency)
    let m = Meter()
    g.run(requests, concurrency)
    let (wall, cpu) = (m.wall, m.cpu)
    precondition(g.bytes == requests * 1024)
    reportGet(
        peer, url: address, concurrency: concurrency, requests: requests, wall: wall, cpu: cpu,
        named: argument(5, "W5"))
case "bulk":
    let b = Bulk(), s = URLSession(configuration: configuration(1), delegate: b, delegateQueue: nil)
    let m = Meter()
    s.dataTask(with: url).resume()
    b.done.wait()
    reportBulk(peer, url: address, bytes: b.bytes, wall: m.wall, cpu: m.cpu)
case "request":
    // For W16: what a program takes that has Foundation's types in it, and loads nothing.
    precondition(URLRequest(url: url).url == url)
default:
    print("usage: bench-urlsession get URL REQUESTS CONCURRENCY | bulk URL | request URL")
    exit(2)
}
exit(0)
