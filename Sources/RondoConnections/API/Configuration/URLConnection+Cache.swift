public import FoundationNetworking
public import RondoCore

extension URLConnection {
    /// A store for responses, in memory and on the disk; `URLCache.shared` is one in every program that uses
    /// Rondo.
    ///
    /// A `URLCache` with Foundation's interface and another implementation: a look-up in memory costs the
    /// same however much is kept, and a thread of its own writes to the disk, so that no run loop waits for
    /// it. Responses are told apart by their whole URLs and by what `Vary` names; Foundation's cache on Linux
    /// tells them apart by host, port and path only.
    ///
    /// - In memory are the responses that were used last, up to `memoryCapacity` bytes.
    /// - On the disk is one SQLite database for each path, `responses.sqlite`, of mode 0600 in a folder of
    ///   mode 0700, up to `diskCapacity` bytes, beside its journal of at most 8 MiB. Responses that come
    ///   within 0.05 s are written together; after a write of more than 128, those of a longer time, in
    ///   proportion to their number, up to 0.4 s. While 1,024 responses or 4 MiB wait, further responses are
    ///   kept in memory only. A process that is killed loses the responses of that time and no older ones. A
    ///   broken database is treated as missing.
    /// - A load stores a response of at most a twentieth of `diskCapacity`, or of `memoryCapacity` if that is
    ///   0: 1 MiB in `URLCache.shared`. A longer one is delivered, and not stored. On the disk no response
    ///   has more than 256 MiB, whatever the capacity.
    /// - A URL has at most eight variants.
    ///
    /// It is a cache for one user (a private cache, RFC 9111 §1): a response to a request with
    /// `Authorization` answers others too, unless `Vary` names that field. A program that acts for several
    /// users gives each a cache of its own, or none.
    ///
    /// Programs may set `URLCache.shared`, and `URLConnection.Configuration.cache`, to a cache of any class.
    /// A cache of Foundation's own class that has a disk reads its whole folder for each response that is
    /// stored.
    ///
    /// Any thread may call any method. (Rules UC-53 to UC-56.)
    public final class Cache: URLCache, @unchecked Sendable {
        // `@unchecked` as the superclass is: this class has no mutable state, and its `ResponseCache` is
        // Sendable.

        /// The memory capacity of `URLCache.shared`, as Foundation documents it: 4 MiB.
        public static let defaultMemoryCapacity = 4 << 20
        /// The disk capacity of `URLCache.shared`, as Foundation documents it: 20 MiB.
        public static let defaultDiskCapacity = 20 << 20

        private let cache: ResponseCache

        /// - Parameters:
        ///   - memoryCapacity: Bytes that may be kept in memory.
        ///   - diskCapacity: Bytes that may be kept on the disk; 0 for none.
        ///   - path: A folder, which is created when it is first needed. Nil for the user's folder for
        ///     caches, and in it `org.rondo.URLCache` and the program's name.
        public override init(memoryCapacity: Int, diskCapacity: Int, diskPath path: String?) {
            cache = ResponseCache(memoryCapacity: memoryCapacity, diskCapacity: diskCapacity, path: path)
            // The superclass stores nothing; these arguments keep it from creating a folder.
            super.init(memoryCapacity: 0, diskCapacity: 0, diskPath: "/dev/null/none")
        }

        /// Makes a cache with the capacities of `URLCache.shared`, in the user's folder for caches.
        public convenience init() {
            self.init(
                memoryCapacity: Self.defaultMemoryCapacity, diskCapacity: Self.defaultDiskCapacity,
                diskPath: nil)
        }

        /// The response that is kept for the URL of `request`. Among variants, the one that matches the
        /// request's fields, or else the newest.
        public override func cachedResponse(for request: URLRequest) -> CachedURLResponse? {
            cache.response(for: request)
        }

        /// Keeps a response for the URL of `request`, in place of everything that is kept for it. A response
        /// that is larger than a capacity is not kept there.
        public override func storeCachedResponse(_ cachedResponse: CachedURLResponse, for request: URLRequest)
        {
            if let url = request.url { cache.store(cachedResponse, for: url) }
        }

        public override func removeCachedResponse(for request: URLRequest) {
            if let url = request.url { cache.remove(url) }
        }

        public override func removeAllCachedResponses() { cache.removeAll() }

        /// Removes the responses that were stored later than `date`, and waits for the disk.
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

        /// Writes what waits to the disk, and returns when that is done.
        func flush() { cache.flush() }
    }
}

extension URLCache {
    /// The store in which loads with this cache keep responses.
    var responseStore: any ResponseStore {
        (self as? URLConnection.Cache)?.store ?? ForeignStore(cache: self)
    }
}
