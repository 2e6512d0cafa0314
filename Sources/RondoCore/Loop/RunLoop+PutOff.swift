// What is done between two callbacks begins with caches that have forgotten it: the code of a callback, of the load that it
// ends and of the next one that it starts does not fit into them together, and to send a request leads far into the kernel
// and wakes whoever waits for it, who is asleep again before the next request if he is quicker. So what follows from the
// callbacks of descriptors that are ready together is done together: loads begin in a row (their turns come late), and then
// send in a row (that is put off). Of 64 small requests in flight each takes two fifths less of the processor's time by that.

/// Work that no callback waits for; see `RunLoop.putOff(_:)`.
package protocol PutOffWork: AnyObject {
    /// On the loop's thread, between two callbacks. It calls nothing of the user's.
    ///
    /// - Parameter isOld: It may have waited for longer than `RunLoop.longestPutOffNanoseconds`.
    func doWhatWasPutOff(isOld: Bool)

    /// It may wait longer than the turn in which it was put off, as what is put off in the callback of a descriptor does; in
    /// any order with the others; and is done even if the thread ends before.
    var outlastsTurn: Bool { get }
}

extension PutOffWork {
    package var outlastsTurn: Bool { false }
}

/// What is in a loop without need; see `RunLoop.leaveLater(_:)`.
package protocol LoopLeaver: AnyObject {
    /// On any thread, with no lock held. It does nothing where somebody else has it by now.
    func leave()
}

/// What a loop has put off, in order. Loop's thread only.
struct PutOffList {
    /// Nil where one is done: what is released with it may put something off.
    private var works: [(any PutOffWork)?] = []
    private var first = 0
    private var began = LoopInstant(nanoseconds: 0)
    /// Some of it is done at the end of a turn.
    private(set) var waitsForTurn = false

    var isEmpty: Bool { works.isEmpty }

    var isFull: Bool { works.count - first >= RunLoop.maximumPutOff }

    /// Whether it is enough, or has waited long enough.
    func isDue(at now: @autoclosure () -> LoopInstant) -> Bool { isFull || isOld(at: now()) }

    /// Whether that which was put off first has waited long enough.
    func isOld(at now: LoopInstant) -> Bool {
        now.nanoseconds - began.nanoseconds >= RunLoop.longestPutOffNanoseconds
    }

    mutating func append(_ work: any PutOffWork, at now: @autoclosure () -> LoopInstant) {
        if works.isEmpty { began = now() }
        works.append(work)
        if !work.outlastsTurn { waitsForTurn = true }
    }

    mutating func popFirst() -> (any PutOffWork)? {
        guard first < works.count else {
            works.removeAll(keepingCapacity: true)
            first = 0
            waitsForTurn = false
            return nil
        }
        defer { first += 1 }
        return works[first].take()
    }
}

/// Turns of sources that may come late. Loop's thread only.
struct LateTurns {
    private var count = 0
    /// The mode that ran when they were asked for. (The sources may be in others, where they are served as any signal is.)
    private var mode = 0
    private var began = LoopInstant(nanoseconds: 0)

    /// Whether they are enough, or have waited long enough.
    func areDue(at now: @autoclosure () -> LoopInstant) -> Bool {
        count >= RunLoop.maximumPutOff
            || now().nanoseconds - began.nanoseconds >= RunLoop.longestPutOffNanoseconds
    }

    /// Whether some wait for a pass of `mode`.
    func wait(for mode: Int) -> Bool { count > 0 && mode == self.mode }

    mutating func addOne(in mode: Int, at now: @autoclosure () -> LoopInstant) {
        if count == 0 {
            self.mode = mode
            began = now()
        }
        if mode == self.mode { count += 1 }
    }

    mutating func take() { count = 0 }
}

/// Whether the program runs the loop again and again in one mode, with nothing in between that takes time. Loop's thread only.
struct RunHabit {
    /// As many runs in a row make it.
    static let leastRuns = 16
    /// What is between two of them at most: 50 us.
    static let longestPauseNanoseconds: Int64 = 50_000

    private var mode = -1
    private var endedAt = LoopInstant(nanoseconds: 0)
    private var runs = 0

    /// - Returns: Whether there is the habit.
    mutating func begin(_ mode: Int, at now: LoopInstant) -> Bool {
        let isAnother =
            mode != self.mode || now.nanoseconds - endedAt.nanoseconds > Self.longestPauseNanoseconds
        runs = isAnother ? 0 : min(runs + 1, Self.leastRuns)
        self.mode = mode
        return runs == Self.leastRuns
    }

    mutating func end(at now: LoopInstant) { endedAt = now }
}

/// What is known of a run while it is under way. Loop's thread only.
struct RunOnStack {
    /// Without this there is none.
    var isUnderWay = false
    /// How many of `LoopOwner.serving` were on the stack when it began.
    var servedFurtherOut = 0
    /// It does not return for a while, or another one follows at once.
    var mayPutOff: Bool { returnsLate || hasHabit }
    var returnsLate = false
    /// See `RunHabit`.
    var hasHabit = false
    /// See `RunLoop.servesSeveral`.
    var servesSeveral = false

    mutating func mayNotPutOff() { (returnsLate, hasHabit) = (false, false) }
}

extension RunLoop {
    /// How much is put off before it is done, and how many turns come late.
    package static let maximumPutOff = 16
    /// How old what was put off first may be when it is looked at, and what comes late: a millisecond.
    static let longestPutOffNanoseconds: Int64 = 1_000_000

    /// Puts `work` off until the descriptors that are ready by now have been served: their callbacks may have more of the
    /// kind.
    ///
    /// It is done between two callbacks: before the loop serves anything else than sources, before it looks at the kernel
    /// again, before a run begins or returns, and when there are `maximumPutOff` of them. A millisecond is the longest that
    /// it waits, and a callback that is longer.
    ///
    /// - Returns: False where it is to be done now: no descriptor waits to be served, the source that is being served does
    ///   not serve several and nothing is put off, it would be too much, or the run returns after each source.
    /// - Note: In a callback of this loop.
    package func putOff(_ work: any PutOffWork) -> Bool {
        guard owner.innermost.mayPutOff, let mode = state.withLock({ $0.activations.last?.mode }),
            let modeLoop = owner.modeLoops[mode]
        else { return false }
        if owner.putOff.isEmpty {
            let waitsForReady = owner.innermost.returnsLate && !modeLoop.ready.isEmpty
            guard waitsForReady || owner.innermost.servesSeveral && !work.outlastsTurn else { return false }
        } else if owner.putOff.isFull {
            // In order: those before it first.
            if !work.outlastsTurn { doWhatWasPutOff() }
            return false
        }
        owner.putOff.append(work, at: LoopClock.now)
        return true
    }

    /// Whether what begins in this callback may have its turn after the callbacks of the other descriptors that are ready:
    /// those may begin more of the kind. The source for it is signalled by `Source.signalForLater()`, and the turn counted by
    /// `noteLateTurn(in:)`.
    ///
    /// It is served by the first pass of the mode that finds none ready any more, `maximumPutOff` turns, or one that has
    /// waited for a millisecond; by the last one before the limit of a run; and together with any other signalled source.
    /// If no run follows, it waits, as what is signalled in the last callback does. Where the run returns after a source it
    /// may be served by the next run, but only if the program has run the loop again at once so far. Where somebody
    /// observes the loop every signal is served in the next pass.
    ///
    /// - Parameter mode: The source's.
    /// - Returns: The index of the mode that runs; nil: it may not.
    /// - Note: In a callback of this loop.
    package func letsTurnComeLate(in mode: Mode) -> Int? {
        guard owner.innermost.mayPutOff, !isWatched else { return nil }
        let running = state.withLock { state -> Int? in
            guard let running = state.activations.last?.mode else { return nil }
            let isThere =
                state.modes[running].name == mode || mode == .common && state.modes[running].isCommon
            return isThere ? running : nil
        }
        guard let running, let modeLoop = owner.modeLoops[running], !modeLoop.ready.isEmpty else {
            return nil
        }
        return running
    }

    package func noteLateTurn(in mode: Int) { owner.lateTurns.addOne(in: mode, at: LoopClock.now) }

    /// Those that wait come now, or have come.
    package func takeLateTurns() { owner.lateTurns.take() }

    /// Lets them come that wait no longer. At the beginning of a pass of `mode`, so that none is left where the loop may
    /// sleep.
    ///
    /// - Parameter hasReady: Descriptors are ready, and more passes follow.
    @inline(__always)
    func takeLateTurnsThatAreDue(in mode: Int, hasReady: @autoclosure () -> Bool) {
        guard owner.lateTurns.wait(for: mode) else { return }
        let mayWait = owner.innermost.mayPutOff && !isWatched && hasReady()
        if !mayWait || owner.lateTurns.areDue(at: now) { owner.lateTurns.take() }
    }

    private var isWatched: Bool { mayBeObserved(.allActivities) || Self.isTraced }

    /// Whether the source that is being served serves several things one after the other, so that what one puts off may be
    /// done with what the others do. Loop's thread only.
    package var servesSeveral: Bool {
        get { owner.innermost.servesSeveral }
        set { owner.innermost.servesSeveral = newValue }
    }

    /// To be called between two of several.
    package func doWhatIsOverdue() {
        if !owner.putOff.isEmpty, owner.putOff.isDue(at: LoopClock.now) { doAllThatWasPutOff() }
    }

    /// To be called at the end of the turn of several.
    package func endTurnOfSeveral() {
        servesSeveral = false
        if owner.putOff.waitsForTurn { doWhatWasPutOff() }
    }

    @inline(__always)
    package func doWhatWasPutOff() {
        if !owner.putOff.isEmpty { doAllThatWasPutOff() }
    }

    /// Whether what belongs to `source` may stay in this loop when it is done with, until the turns that were asked for have
    /// come: whoever begins in them may have use for it where it stands. (A connection leaves the loop and comes back to it
    /// otherwise, between two requests.)
    ///
    /// Only while the callback of `source` is on the stack: nothing else may come from it meanwhile, or a nested run would
    /// find it ready again and again, with nobody to hear it.
    ///
    /// - Returns: False also where the run returns after each source, or somebody observes the loop.
    /// - Note: On this loop's thread.
    package func letsStay(_ source: Source) -> Bool {
        owner.innermost.returnsLate && !isWatched && owner.serving.contains { $0 === source }
    }

    /// Has `leaver` leave before the loop looks at the kernel again, in whatever run, and before a run returns; at once, where
    /// this is not the calling thread's loop, or does not run.
    package func leaveLater(_ leaver: any LoopLeaver) {
        guard isCurrent, owner.innermost.isUnderWay else { return leaver.leave() }
        owner.leavers.append(leaver)
    }

    func haveLeaversLeave() {
        var leavers: [any LoopLeaver] = []
        swap(&leavers, &owner.leavers)
        for leaver in leavers { leaver.leave() }
        leavers.removeAll(keepingCapacity: true)
        // What is released may have run the loop.
        if owner.leavers.isEmpty { swap(&leavers, &owner.leavers) }
    }

    /// Before a run returns.
    func leaveNothingUndone() {
        doWhatWasPutOff()
        if !owner.leavers.isEmpty { haveLeaversLeave() }
    }

    /// The thread has ended inside a callback, and the loop is not run any more.
    func dropWhatWasPutOff() {
        while let work = owner.putOff.popFirst() {
            if work.outlastsTurn { work.doWhatWasPutOff(isOld: true) }
        }
    }

    /// One after the other, since whatever is released by it may run the loop.
    private func doAllThatWasPutOff() {
        let isOld = owner.putOff.isOld(at: LoopClock.now)
        while let work = owner.putOff.popFirst() { work.doWhatWasPutOff(isOld: isOld) }
    }
}
