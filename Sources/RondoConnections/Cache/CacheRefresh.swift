internal import FoundationNetworking
internal import RondoCore
internal import RondoMutex

/// Brings a response of the cache up to date that was used although it was stale (RFC 5861 §3): a load of its own, on the
/// loader's loop, that tells no delegate of the program.
final class CacheRefresh: NSObject, URLConnectionDataDelegate {
    /// One at a time for each URL.
    private static let running = Mutex<Set<String>>([])

    private let url: String

    private init(_ url: String) { self.url = url }

    static func begin(_ request: URLRequest, _ values: LoadSettings.Values) {
        guard let url = request.url?.absoluteString, running.withLock({ $0.insert(url).inserted }) else {
            return
        }
        var request = request
        request.cachePolicy = .reloadRevalidatingCacheData
        let connection = URLConnection(
            request: request, delegate: CacheRefresh(url), startImmediately: false)
        var values = values
        values.onStep = nil
        connection?.useSettings(LoadSettings(values))
        connection?.driveOnLoader()
        connection?.start()
    }

    func connectionDidFinishLoading(_ connection: URLConnection) { end() }
    func connection(_ connection: URLConnection, didFailWithError error: any Error) { end() }

    private func end() { Self.running.withLock { _ = $0.remove(url) } }
}
