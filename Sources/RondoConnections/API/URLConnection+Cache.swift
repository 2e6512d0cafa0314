public import FoundationNetworking
public import RondoCore

extension URLConnection {
    /// A store for responses, in memory and on the disk; `URLCache.shared` is one in every program that uses Rondo.
    ///
    /// It is a `URLCache`, and does what Foundation's does, in other ways: a look-up in memory costs the same however much is
    /// kept, and what goes to the disk is written by a thread of its own, so that no run loop waits for it. Responses are
    /// told apart by their whole URLs and by what `Vary` names; Foundation's on Linux knows host, port and path alone.
    ///
    /// - In memory are the responses that were used last, up to `memoryCapacity` bytes.
    /// - On the disk is one SQLite database for each path, `responses.sqlite`, of mode 0600 in a folder of mode 0700, up to
    ///   `diskCapacity` bytes, beside its journal of at most 8 MiB. What comes within 0.05 s is written at once, up to 128
    ///   responses; where more than 1,024 or 4 MiB wait, what comes is kept in memory alone. A process that is
    ///   killed loses what came within that time and nothing older; a broken database counts as none.
    /// - A URL has at most eight variants.
    ///
    /// Programs may set `URLCache.shared`, and `URLConnection.Configuration.cache`, to a cache of any class. One of
    /// Foundation's own with a disk reads its whole folder for each response that is stored.
    ///
    /// Any thread may call any of this. (Rules UC-53 to UC-56.)
    public final class Cache: URLCache, @unchecked Sendable {
        // `@unchecked` as its superclass is: it has nothing that changes; the engine is Sendable.

        /// What `URLCache.shared` has, as Foundation documents it: 4 MiB.
        public static let defaultMemoryCapacity = 4 << 20
        /// What `URLCache.shared` has, as Foundation documents it: 20 MiB.
        public static let defaultDiskCapacity = 20 << 20

        private let cache: ResponseCache

        /// - Parameters:
        ///   - memoryCapacity: Bytes that may be kept in memory.
        ///   - diskCapacity: Bytes that may be kept on the disk; 0: nothing is.
        ///   - path: A folder; it is made where it is missing, and when it is needed. Nil: `org.rondo.URLCache` and the
        ///     program's name, in the user's folder for caches.
        public override init(memoryCapacity: Int, diskCapacity: Int, diskPath path: String?) {
            cache = ResponseCache(memoryCapacity: memoryCapacity, diskCapacity: diskCapacity, path: path)
            // The superclass keeps nothing, and this keeps it from making a folder.
            super.init(memoryCapacity: 0, diskCapacity: 0, diskPath: "/dev/null/none")
        }

        /// With the capacities that `URLCache.shared` has, in the user's folder for caches.
        public convenience init() {
            self.init(
                memoryCapacity: Self.defaultMemoryCapacity, diskCapacity: Self.defaultDiskCapacity,
                diskPath: nil)
        }

        /// The response that is kept for the URL of `request`; of variants the one that answers its fields, or else the newest.
        public override func cachedResponse(for request: URLRequest) -> CachedURLResponse? {
            cache.response(for: request)
        }

        /// Keeps a response for the URL of `request`, in place of all that is kept for it. What counts for more than a
        /// capacity is not kept there.
        public override func storeCachedResponse(_ cachedResponse: CachedURLResponse, for request: URLRequest)
        {
            if let url = request.url { cache.store(cachedResponse, for: url) }
        }

        public override func removeCachedResponse(for request: URLRequest) {
            if let url = request.url { cache.remove(url) }
        }

        public override func removeAllCachedResponses() { cache.removeAll() }

        /// Waits for the disk.
        public override func removeCachedResponses(since date: Date) { cache.remove(since: date) }

        public override var memoryCapacity: Int {
            get { cache.memoryCapacity }
            set { cache.memoryCapacity = newValue }
        }

        public override var diskCapacity: Int {
            get { cache.diskCapacity }
            set { cache.diskCapacity = newValue }
        }

        public override var currentMemoryUsage: Int { cache.memoryUsage }

        /// Bytes that the database uses; responses that wait to be written do not count.
        public override var currentDiskUsage: Int { cache.diskUsage }

        fileprivate var store: any ResponseStore { cache }

        /// Has what waits written to the disk, and returns when it is.
        func flush() { cache.flush() }
    }
}

extension URLCache {
    /// What loads keep responses in that are given this cache.
    var responseStore: any ResponseStore {
        (self as? URLConnection.Cache)?.store ?? ForeignStore(cache: self)
    }
}
