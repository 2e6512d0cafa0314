// To send a request leads far into the kernel, and wakes whoever waits for it. Between two callbacks, whose code is
// somewhere else altogether, each way there begins with caches that have forgotten it, and a server that is quicker than
// the client goes to sleep before the next request. Several in a row take a fifth less of the processor's time.

/// Work that no callback waits for; see `RunLoop.putOff(_:)`.
package protocol PutOffWork: AnyObject {
    /// On the loop's thread, between two callbacks. It calls nothing of the user's.
    func doWhatWasPutOff()
}

/// What a loop has put off, in order. Loop's thread only.
struct PutOffList {
    private var works: [any PutOffWork] = []
    /// Those before it are done.
    private var first = 0
    private var began = LoopInstant(nanoseconds: 0)

    var isEmpty: Bool { works.isEmpty }

    var isFull: Bool { works.count - first >= RunLoop.maximumPutOff }

    /// Whether it is enough, or has waited long enough.
    func isDue(at now: @autoclosure () -> LoopInstant) -> Bool {
        isFull || now().nanoseconds - began.nanoseconds >= RunLoop.longestPutOffNanoseconds
    }

    mutating func append(_ work: any PutOffWork, at now: @autoclosure () -> LoopInstant) {
        if works.isEmpty { began = now() }
        works.append(work)
    }

    mutating func popFirst() -> (any PutOffWork)? {
        guard first < works.count else {
            works.removeAll(keepingCapacity: true)
            first = 0
            return nil
        }
        defer { first += 1 }
        return works[first]
    }
}

extension RunLoop {
    /// How much is put off before it is done.
    package static let maximumPutOff = 16
    /// How old what was put off first may be when it is looked at: a millisecond.
    static let longestPutOffNanoseconds: Int64 = 1_000_000

    /// Puts `work` off until the descriptors that are ready by now have been served: their callbacks may have more of the
    /// kind.
    ///
    /// It is done between two callbacks: before the loop serves anything else than sources, before it looks at the kernel
    /// again, before a run begins or returns, and when there are `maximumPutOff` of them. A millisecond is the longest that
    /// it waits, and what the loop serves in one pass.
    ///
    /// - Returns: False where it is to be done now: no descriptor waits to be served and nothing is put off, it would be too
    ///   much, or the run returns after each source.
    /// - Note: In a callback of this loop.
    package func putOff(_ work: any PutOffWork) -> Bool {
        guard owner.mayPutOff, let mode = state.withLock({ $0.activations.last?.mode }),
            let modeLoop = owner.modeLoops[mode]
        else { return false }
        if owner.putOff.isEmpty {
            if modeLoop.ready.isEmpty { return false }
        } else if owner.putOff.isFull {
            // In order: those before it first.
            doWhatWasPutOff()
            return false
        }
        owner.putOff.append(work, at: LoopClock.now)
        return true
    }

    @inline(__always)
    func doWhatWasPutOff() {
        if !owner.putOff.isEmpty { doAllThatWasPutOff() }
    }

    /// One after the other, since whatever is released by it may run the loop.
    private func doAllThatWasPutOff() {
        while let work = owner.putOff.popFirst() { work.doWhatWasPutOff() }
    }
}
