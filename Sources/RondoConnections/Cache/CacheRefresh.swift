internal import FoundationNetworking
internal import RondoCore
internal import RondoMutex

/// A load that renews a stale response which the cache has just delivered (RFC 5861 §3). It runs on the
/// loader's loop, and calls no delegate of the program.
final class CacheRefresh: NSObject, URLConnectionDataDelegate {
    /// The URLs that are being renewed: one load at a time for each.
    private static let running = Mutex<Set<String>>([])

    private static let defaults = DelegateDefaults.leavingTLSToSettings()

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
        connection?.setDefaults(defaults)
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
