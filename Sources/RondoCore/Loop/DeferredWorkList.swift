/// Work that a loop does a little later; see `RunLoop.deferWork(_:)`.
package protocol DeferredWork: AnyObject {
    /// Does the work, or nothing if there is nothing left to do. It must not call user code. On the loop's
    /// thread, with no lock held.
    ///
    /// - Returns: Whether it has signalled a source, which is served before the work that was deferred after
    ///   this.
    func performDeferredWork() -> Bool
}

/// The deferred work of a loop, in order. Loop's thread only.
struct DeferredWorkList {
    /// How many pieces of work are deferred at most; 0 switches the mechanism off.
    static let defaultMaximumCount = 16
    /// Work is overdue when the oldest piece has waited for a millisecond: then it does not wait for further
    /// callbacks.
    static let maximumAgeNanoseconds: Int64 = 1_000_000

    var maximumCount = defaultMaximumCount
    /// Nil if the work was taken: objects released with it may defer work.
    private var works: [(any DeferredWork)?] = []
    private var first = 0
    /// When the oldest piece was deferred.
    private var began = LoopInstant(nanoseconds: 0)

    var isEmpty: Bool { works.isEmpty }

    var isFull: Bool { works.count - first >= maximumCount }

    func isOverdue(at now: LoopInstant) -> Bool {
        now.nanoseconds - began.nanoseconds >= Self.maximumAgeNanoseconds
    }

    mutating func append(_ work: any DeferredWork, at now: @autoclosure () -> LoopInstant) {
        if works.isEmpty { began = now() }
        works.append(work)
    }

    mutating func popFirst() -> (any DeferredWork)? {
        guard first < works.count else {
            // (To remove all at once takes 200 instructions more for one, which is nearly always the number.)
            while !works.isEmpty { works.removeLast() }
            first = 0
            return nil
        }
        defer { first += 1 }
        return works[first].take()
    }
}
