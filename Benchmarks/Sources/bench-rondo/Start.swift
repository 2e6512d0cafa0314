import BenchmarkSupport
import Rondo

// W16: a program that makes one load and ends, as its author would write it: on the main run loop, by a delegate.

/// - Parameter isPlain: Without the cache and the cookies that every load has by default.
func loadOnce(_ address: String, isPlain: Bool) {
    guard let url = URL(string: address) else { fatalError("no URL: \(address)") }
    let loader = OneLoad()
    guard
        let connection = URLConnection(
            request: URLRequest(url: url), delegate: loader, startImmediately: false)
    else { fatalError("nothing loads \(address)") }
    if isPlain {
        connection.configuration.cache = nil
        connection.configuration.cookieStorage = nil
    }
    connection.start()
    runUntilStopped()
    precondition(loader.bytes == 1024)
}

private final class OneLoad: NSObject, URLConnectionDataDelegate {
    private(set) var bytes = 0

    func connection(_ connection: URLConnection, didReceive data: Data) { bytes += data.count }

    func connectionDidFinishLoading(_ connection: URLConnection) { RunLoop.current.stop() }

    func connection(_ connection: URLConnection, didFailWithError error: any Error) { fatalError("\(error)") }
}
