/// A load that waits with its end for what other threads are storing, so that a program that hears of the end finds
/// responses and cookies stored (rules UC-53 and UC-57). Any thread.
protocol StoreWaiter: AnyObject, Sendable {
    func beginStoring()

    /// One of those that were begun is done.
    func endStoring()
}

extension StoreWaiter {
    /// Has `work` done by the cache's writer, and waits for it.
    func store(_ work: @escaping @Sendable () -> Void) {
        beginStoring()
        CacheWriter.shared.add { [self] in
            work()
            endStoring()
        }
    }
}
