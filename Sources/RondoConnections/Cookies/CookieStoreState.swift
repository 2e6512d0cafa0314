internal import FoundationNetworking
internal import RondoCore
internal import RondoHTTP

/// The state of a cookie store behind its lock: the cookies, and what waits for the store's thread.
struct CookieStoreState {
    /// What the thread has still to process.
    enum Received {
        /// - Parameter tell: The call for which the end of a load waits.
        case cookies(ReceivedCookies, tell: (@Sendable () -> Void)?)
        /// - Parameter tell: Called when all that came before it has been written.
        case flush(tell: @Sendable () -> Void)
        /// All cookies that came before it are removed.
        case removal
    }

    /// A change to Foundation's storage.
    enum Step {
        case set(StoredCookie)
        /// - Parameter other: Another of the store's cookies that is in the storage.
        case delete(HTTPCookie, other: StoredCookie?)
        /// All cookies are in the storage, and Foundation is to write its file.
        case file

        /// Whether one of the store's cookies is in the storage afterwards, which reports changes by the program, and more
        /// steps follow.
        var leavesObserver: Bool {
            switch self {
            case .set: true
            case .delete(_, let other): other != nil
            case .file: false
            }
        }
    }

    var ledger = CookieLedger()
    /// Whether the contents of the file have been read.
    var isOpen: Bool
    /// Whether the thread works or was called, or a run loop does the work because no thread could be started.
    var isWorking = false
    /// Whether several loads were told of their end at once the last time.
    var hadSeveralWaiters = false
    /// Whether the requested work has not begun yet.
    var isAsked = false
    /// Whether the thread is changing Foundation's storage.
    var isStepping = false
    /// What the thread has still to process, in the order in which it came. No request is sent meanwhile, so there are at most
    /// as many as loads, and calls of `flush` and `removeAll`.
    var received: [Received] = []
    /// The number of the last storage key that the latest removal of all cookies has marked: up to it, cookies are only deleted,
    /// which the program's policy does not forbid.
    private var removalEnd = 0
    /// The number of the last storage key that is updated before Foundation's file is written.
    var batchEnd = 0
    /// Whether Foundation has written its file because of a change by the program.
    var hasProgramFiled = false
    /// The earliest time for Foundation's next write of its file.
    var filesAt = LoopInstant(nanoseconds: .min)
    /// Whether the program accepts no cookies, so that its storage refuses them too.
    var isRefused = false
    /// Whether there is a file: it is open, or has still to be opened.
    var hasFile: Bool
    /// Whether the last write failed: it is repeated when another cookie comes.
    var isBehind = false
    /// Counts the examinations of the storage that found a change, and the changes by the store. What a thread has read at an
    /// older count is discarded.
    var looks = 0
    /// Loads that wait until they may read.
    var readers: [@Sendable () -> Void] = []
    /// Loads whose end waits until the program can see their cookies, with the number of storage keys that must have been
    /// updated by then.
    var ends: [(count: Int, tell: @Sendable () -> Void)] = []
    /// The time of the last cookie. The next one gets a later time, even in the same field section, because
    /// cookies are sent in the order in which they came (RFC 6265 §5.4, step 2).
    var lastMoment = Date.distantPast

    var isReadable: Bool { isOpen && !isStepping && received.isEmpty }

    /// Whether the end of a load waits for the cookies that it has received.
    ///
    /// - Parameter count: How many cookies have come that are not in `received` yet.
    func isAwaited(with count: Int = 0) -> Bool {
        let waiting = received.reduce(count + ledger.waitingCount) { sum, next in
            if case .cookies(let cookies, _) = next { sum + cookies.count } else { sum }
        }
        return !isRefused && waiting <= CookieStore.maximumAwaited
    }

    var hasWork: Bool {
        !received.isEmpty || (hasFile && !isBehind && ledger.hasDirtyRows)
            || (!isRefused && ledger.waitingCount > 0)
            || (!isRefused && mustFile) || hasProgramFiled
    }

    /// Has the thread work, if it does not yet.
    ///
    /// - Returns: Whether it has to be called.
    mutating func beginWork() -> Bool {
        guard !isWorking else { return false }
        (isWorking, isAsked) = (true, true)
        return true
    }

    /// Takes cookies of a response into the ledger.
    mutating func take(_ cookies: some Collection<Cookie>, of received: ReceivedCookies, isAfterLook: Bool) {
        let stamped = cookies.map { given in
            var cookie = given
            // A smaller step would be lost in the precision of a Date.
            lastMoment = max(received.date, lastMoment.addingTimeInterval(1e-6))
            (cookie.createdAt, cookie.updatedAt) = (lastMoment, lastMoment)
            return cookie
        }
        ledger.receive(stamped, from: received.origin, isAfterLook: isAfterLook, now: received.date)
        // Another attempt, together with the rows that could not be written before.
        isBehind = false
    }

    /// Removes the first of what was received; the cookies of a response are in the ledger by now.
    mutating func endFirstReceived() {
        switch received.removeFirst() {
        case .cookies(_, let tell): if let tell { ends.append((ledger.askedCount, tell)) }
        case .flush(let tell): ends.append((ledger.askedCount, tell))
        case .removal:
            ledger.removeAll()
            removalEnd = ledger.askedCount
            isBehind = false
        }
    }

    // MARK: Steps

    /// The next step, the calls that tell of the steps done, and whether to go on.
    ///
    /// - Parameters:
    ///   - policyRefuses: Whether the program accepts no cookies.
    ///   - observer: That of the cookies which the storage gets.
    mutating func nextStep(
        policyRefuses: Bool, observer: StorageChangeObserver
    ) -> (Step?, [@Sendable () -> Void], Bool) {
        isStepping = false
        isRefused = policyRefuses && ledger.doneCount >= removalEnd
        // If the file is to be written now, loads are told only after that.
        var done = mustFile ? 0 : ledger.doneCount
        let step = isRefused ? nil : step(observer)
        // Without a step everything is finished.
        if step == nil { done = isRefused ? .max : ledger.doneCount }
        isStepping = step != nil
        // What a load has read before does not show the step.
        if isStepping { looks += 1 }
        let told = ends.filter { $0.count <= done }.map(\.tell)
        if !told.isEmpty { hadSeveralWaiters = told.count > 1 }
        ends.removeAll { $0.count <= done }
        let goesOn = step != nil || hasWork || !readers.isEmpty
        isWorking = goesOn
        return (step, told, goesOn)
    }

    /// The next step: what waits is brought to the storage, and then Foundation's file is written, once for
    /// all of it, if it is time for that.
    private mutating func step(_ observer: StorageChangeObserver) -> Step? {
        if ledger.doneCount >= batchEnd {
            if mustFile { return .file }
            batchEnd = ledger.askedCount
        }
        while ledger.doneCount < batchEnd, let next = ledger.nextStep(now: Date()) {
            switch next {
            case .set(let cookie):
                guard let object = StoredCookie(cookie, observer: observer) else { continue }
                ledger.willShow(object)
                return .set(object)
            case .delete(let object):
                ledger.willRemove(object)
                return .delete(object, other: ledger.anyShown(beside: object))
            }
        }
        return mustFile ? .file : nil
    }

    // MARK: Foundation's file

    /// The least number of seconds between two writes of Foundation's file. If a write takes long, writing is
    /// limited to a twentieth of the time: it costs 30 to 50 µs for each cookie in the file, and a wait for
    /// the disk.
    static let filingInterval = 1.0
    private static let filingShare = 20.0

    /// Whether Foundation's file is older than its storage, and is to be written now. At once, if the store has no file of
    /// its own: the cookies would be lost if the process ended.
    var mustFile: Bool {
        ledger.isUnfiled && (!hasFile || isBehind || filesAt <= LoopClock.systemNow)
    }

    /// Seconds until Foundation's file is to be written; nil if that is not necessary.
    var secondsUntilFiling: Double? {
        guard ledger.isUnfiled, !isRefused else { return nil }
        return mustFile ? 0 : max(0, filesAt.seconds(since: LoopClock.systemNow))
    }

    /// Notes that Foundation has written its file because of the store.
    mutating func noteFiled(from began: LoopInstant, to ended: LoopInstant) {
        ledger.noteFiled()
        let delay = max(Self.filingInterval, Self.filingShare * ended.seconds(since: began))
        filesAt = ended.advanced(bySeconds: delay)
    }
}
