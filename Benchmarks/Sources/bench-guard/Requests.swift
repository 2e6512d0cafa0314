import BenchmarkSupport
import Rondo

/// GETs of a kilobyte, one after the other on one connection that is kept.
func guardRequests(_ address: String) {
    guard let url = URL(string: address), url.host != nil else { fatalError("usage: bench-guard URL") }
    var request = URLRequest(url: url)
    request.cachePolicy = .reloadIgnoringLocalCacheData
    let count = 1_000
    let getter = Getter(request, on: .current)
    guarded("http.request", count: count) {
        getter.left = count
        getter.next()
        runUntilStopped()
        precondition(getter.bytes == count * 1024)
        getter.bytes = 0
    }
}

private final class Getter: NSObject, URLConnectionDataDelegate {
    private let request: URLRequest
    private let loop: RunLoop
    var left = 0
    var bytes = 0

    init(_ request: URLRequest, on loop: RunLoop) {
        (self.request, self.loop) = (request, loop)
    }

    func next() {
        left -= 1
        _ = URLConnection(request: request, delegate: self)
    }

    func connection(_ connection: URLConnection, didReceive response: URLResponse) {
        precondition((response as? HTTPURLResponse)?.statusCode == 200)
    }

    func connection(_ connection: URLConnection, didReceive data: Data) { bytes += data.count }

    func connectionDidFinishLoading(_ connection: URLConnection) {
        if left > 0 { next() } else { loop.stop() }
    }

    func connection(_ connection: URLConnection, didFailWithError error: any Error) {
        fatalError("\(error)")
    }
}
