/// A load that delays its end until other threads have finished storing for it, so that a program that is
/// told of the end finds responses and cookies stored (rules UC-53 and UC-57). Any thread may call its
/// methods.
protocol StoreWaiter: AnyObject, Sendable {
    func beginStoring()

    /// Call it when one of the stores that were begun is done.
    func endStoring()
}

extension StoreWaiter {
    /// Lets the cache's writer do `work`, and delays the end of the load until then.
    ///
    /// - Parameter isResponse: Whether a response is stored, of which only a few may wait.
    func store(isResponse: Bool = false, _ work: @escaping @Sendable () -> Void) {
        beginStoring()
        CacheWriter.shared.add(isResponse: isResponse) { [self] in
            work()
            endStoring()
        }
    }
}
