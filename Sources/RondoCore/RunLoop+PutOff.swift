// To send a request leads far into the kernel, and wakes whoever waits for it. Between two callbacks, whose code is
// somewhere else altogether, each way there begins with caches that have forgotten it, and a server that is quicker than
// the client goes to sleep before the next request. Several in a row take a third less of the processor's time.

/// Work that no callback waits for; see `RunLoop.putOff(_:)`.
package protocol PutOffWork: AnyObject {
    /// On the loop's thread, between two callbacks. It calls nothing of the user's.
    func doWhatWasPutOff()
}

/// What a loop has put off, in order. Loop's thread only.
struct PutOffList {
    private var works: [any PutOffWork] = []
    private var began = LoopInstant(nanoseconds: 0)

    var isEmpty: Bool { works.isEmpty }

    /// Whether it is enough, or has waited long enough.
    func isDue(at now: LoopInstant) -> Bool {
        works.count >= RunLoop.maximumPutOff
            || now.nanoseconds - began.nanoseconds >= RunLoop.longestPutOffNanoseconds
    }

    mutating func append(_ work: any PutOffWork, at now: @autoclosure () -> LoopInstant) {
        if works.isEmpty { began = now() }
        works.append(work)
    }

    /// Empties the list, whose room is kept.
    mutating func removeAll() { works.removeAll(keepingCapacity: true) }

    func forEach(_ body: (any PutOffWork) -> Void) { works.forEach(body) }
}

extension RunLoop {
    /// How much is put off before it is done.
    package static let maximumPutOff = 16
    /// How long the first may wait, and the callback that runs then: a millisecond.
    static let longestPutOffNanoseconds: Int64 = 1_000_000

    /// Puts `work` off until the descriptors that are ready by now have been served: their callbacks may have more of the
    /// kind.
    ///
    /// It is done between two callbacks: before the loop looks at the kernel again, before a run begins or ends, when
    /// there are `maximumPutOff` of them, and after a millisecond at the latest, if no callback takes longer.
    ///
    /// - Returns: False where no descriptor waits to be served, and nothing is put off: then it is to be done now.
    /// - Note: In a callback of this loop.
    package func putOff(_ work: any PutOffWork) -> Bool {
        guard let mode = state.withLock({ $0.activations.last?.mode }), let modeLoop = owner.modeLoops[mode],
            !modeLoop.ready.isEmpty || !owner.putOff.isEmpty
        else { return false }
        owner.putOff.append(work, at: LoopClock.now)
        return true
    }

    /// Whatever is released by it may run the loop.
    func doWhatWasPutOff() {
        var list = PutOffList()
        swap(&list, &owner.putOff)
        list.forEach { $0.doWhatWasPutOff() }
        list.removeAll()
        if owner.putOff.isEmpty { swap(&list, &owner.putOff) }
    }
}
