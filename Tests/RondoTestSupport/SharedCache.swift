internal import FoundationNetworking
internal import RondoCore

/// The shared cache, which the tests use as programs do that set nothing.
///
/// It lies on the disk: a server of today could be answered for by what one of yesterday said, whose port it happens to
/// have. So it is emptied once in each process that tests.
enum SharedCache {
    static let isEmptied: Void = {
        let cache = URLCache.shared
        cache.removeAllCachedResponses()
        // Its files are open from here on, so that none of them is taken for what a suite has left behind: one for what is
        // written, and one for what is looked up where it is not known whether it is there.
        guard let url = URL(string: "http://host.invalid/"), let other = URL(string: "http://other.invalid/"),
            let response = HTTPURLResponse(url: url, statusCode: 200, httpVersion: nil, headerFields: nil)
        else { return }
        cache.storeCachedResponse(
            CachedURLResponse(response: response, data: Data()), for: URLRequest(url: url))
        cache.removeCachedResponses(since: .distantFuture)
        _ = cache.cachedResponse(for: URLRequest(url: other))
        cache.removeAllCachedResponses()
    }()
}
