/// Work that a loop does a little later; see `RunLoop.deferWork(_:)`.
package protocol DeferredWork: AnyObject {
    /// Does the work, if it is still needed. It must not call user code. On the loop's thread, with no lock
    /// held.
    ///
    /// - Returns: Whether it has signalled a source, which is served before the remaining deferred work.
    func performDeferredWork() -> Bool
}

/// The deferred work of a loop, in order. Loop's thread only.
struct DeferredWorkList {
    /// The most pieces of work that are deferred at a time; 0 switches the mechanism off.
    static let defaultMaximumCount = 16
    /// The age at which the oldest piece makes the work overdue, so that it waits for no further callbacks: a
    /// millisecond.
    static let maximumAgeNanoseconds: Int64 = 1_000_000

    var maximumCount = defaultMaximumCount
    /// An element is nil once its work was taken: objects released with it may defer work.
    private var works: [(any DeferredWork)?] = []
    private var first = 0
    /// The instant at which the oldest piece was deferred.
    private var began = LoopInstant(nanoseconds: 0)

    var isEmpty: Bool { works.isEmpty }

    var isFull: Bool { works.count - first >= maximumCount }

    func isOverdue(at now: LoopInstant) -> Bool {
        now.nanoseconds - began.nanoseconds >= Self.maximumAgeNanoseconds
    }

    /// - Parameter began: The time; needed if the list is empty.
    mutating func append(_ work: any DeferredWork, began: LoopInstant?) {
        if let began { self.began = began }
        works.append(work)
    }

    mutating func popFirst() -> (any DeferredWork)? {
        guard first < works.count else {
            // Not all at once, which is slower for one element, as there nearly always is: see
            // `LoopThreadState.attach(_:)`.
            while !works.isEmpty { works.removeLast() }
            first = 0
            return nil
        }
        defer { first += 1 }
        return works[first].take()
    }
}
