internal import FoundationNetworking
internal import RondoCore
internal import RondoHTTP

/// The state of a cookie store behind its lock: the cookies, and what waits for the store's thread.
struct CookieStoreState {
    /// An input that the thread has still to process.
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

        /// Whether one of the store's cookies is in the storage afterwards, which reports changes by the
        /// program, and more steps follow.
        var leavesObserver: Bool {
            switch self {
            case .set: true
            case .delete(_, let other): other != nil
            case .file: false
            }
        }
    }

    /// The activity of the store's thread. A run loop does its work where no thread could be started.
    enum Work {
        case idle
        /// The thread was called, and has not begun.
        case called
        case working
        /// It is changing Foundation's storage, which is not examined meanwhile.
        case changingStorage
    }

    /// The file for cookies that outlive the process.
    enum File {
        case unread
        /// There is none: none is wanted, it cannot be used, or too many rows could not be written to it.
        case absent
        case open
        /// The last write failed: it is repeated when another cookie comes.
        case failing
    }

    private(set) var ledger = CookieLedger()
    private(set) var work = Work.idle
    private(set) var file: File
    /// Whether several loads were told of their end at once the last time.
    private(set) var hadSeveralWaiters = false
    /// What the thread has still to process, in the order in which it came. No request is sent meanwhile, so
    /// there are at most as many as loads, and calls of `flush` and `removeAll`.
    private(set) var received: [Received] = []
    /// Storage keys up to this number were marked by `removeAll()`. Their cookies are deleted even while the
    /// accept policy is `.never`: the policy forbids setting cookies, not deleting them.
    private var removalEnd = 0
    /// The number of the last storage key that is updated before Foundation's file is written.
    private var batchEnd = 0
    /// Whether Foundation has written its file because of a change by the program.
    private(set) var hasProgramFiled = false
    /// The earliest time for Foundation's next write of its file.
    private var filesAt = LoopInstant(nanoseconds: .min)
    /// Whether the program accepts no cookies, so that its storage refuses them too.
    private var isRefused = false
    /// Counts the changes of the storage: those that examinations have found, and the store's own. What a
    /// thread has read of an older version is discarded.
    private(set) var storageVersion = 0
    /// Loads that wait until they may read.
    private(set) var readers: [@Sendable () -> Void] = []
    /// Loads whose end waits until the program can see their cookies, with the number of storage keys that
    /// must have been updated by then.
    private var ends: [(count: Int, tell: @Sendable () -> Void)] = []
    /// The time of the last cookie. The next one gets a later time, even in the same field section, because
    /// cookies are sent in the order in which they came (RFC 6265 §5.4, step 2).
    private var lastMoment = Date.distantPast

    /// - Parameter hasFile: Whether there is a file to be read.
    init(hasFile: Bool) { file = hasFile ? .unread : .absent }

    /// Whether the contents of the file, if there is one, have been read.
    var isOpen: Bool { file != .unread }
    /// Whether there is a file: it is open, or has still to be opened.
    var hasFile: Bool { file != .absent }
    /// Whether the thread works or was called.
    var isWorking: Bool { work != .idle }
    /// Whether a load may examine the storage.
    var isExaminable: Bool { isOpen && work != .changingStorage }
    var isReadable: Bool { isExaminable && received.isEmpty }

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
        !received.isEmpty || (hasFile && file != .failing && ledger.hasDirtyRows)
            || (!isRefused && ledger.waitingCount > 0)
            || (!isRefused && mustFile) || hasProgramFiled
    }

    /// Has the thread work, if it does not yet.
    ///
    /// - Returns: Whether it has to be called.
    mutating func beginWork() -> Bool {
        guard work == .idle else { return false }
        work = .called
        return true
    }

    /// Begins the work that the thread was called for.
    ///
    /// - Returns: False if it was not called, or the work has begun already.
    mutating func takeCall() -> Bool {
        guard work == .called else { return false }
        work = .working
        return true
    }

    // MARK: Loads

    /// Keeps the call of a load that waits until it may read.
    mutating func addReader(_ tell: @escaping @Sendable () -> Void) { readers.append(tell) }

    /// The calls of the loads that may read now.
    mutating func takeReaders() -> [@Sendable () -> Void] {
        guard received.isEmpty else { return [] }
        defer { readers = [] }
        return readers
    }

    /// Keeps the call of a load whose end waits for all changes that have been marked until now.
    mutating func addEnd(_ tell: @escaping @Sendable () -> Void) { ends.append((ledger.askedCount, tell)) }

    /// Leaves something to the thread.
    mutating func enqueue(_ next: Received) { received.append(next) }

    /// Takes cookies of a response into the ledger.
    mutating func take(
        _ cookies: some Collection<Cookie>, of received: ReceivedCookies, isAfterExamination: Bool
    ) {
        let stamped = cookies.map { given in
            var cookie = given
            // A smaller step would be lost in the precision of a Date.
            lastMoment = max(received.date, lastMoment.addingTimeInterval(1e-6))
            (cookie.createdAt, cookie.updatedAt) = (lastMoment, lastMoment)
            return cookie
        }
        ledger.receive(
            stamped, from: received.origin, isAfterExamination: isAfterExamination, now: received.date)
        // Another attempt, together with the rows that could not be written before.
        if file == .failing { file = .open }
    }

    /// Removes the first of what was received; the cookies of a response are in the ledger by now.
    mutating func endFirstReceived() {
        switch received.removeFirst() {
        case .cookies(_, let tell): if let tell { addEnd(tell) }
        case .flush(let tell): addEnd(tell)
        case .removal:
            ledger.removeAll(now: Date())
            removalEnd = ledger.askedCount
            if file == .failing { file = .open }
        }
    }

    // MARK: Examining the storage

    /// Applies the program's changes that a load has found in the storage.
    ///
    /// - Parameter isRefused: Whether the program accepts no cookies; nil if the load has not asked.
    mutating func examine(_ cookies: [HTTPCookie], isRefused: Bool?) {
        if let isRefused { self.isRefused = isRefused }
        if ledger.examine(cookies, now: Date()) { storageVersion += 1 }
    }

    /// Applies the program's changes that the thread has found in the storage.
    ///
    /// - Parameter version: The version before the storage was read.
    /// - Returns: False if a load has found changes meanwhile, but perhaps not the last ones.
    mutating func examine(_ cookies: [HTTPCookie], readAt version: Int) -> Bool {
        guard storageVersion == version else { return false }
        storageVersion += 1
        ledger.examine(cookies, now: Date())
        return true
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
        isRefused = policyRefuses && ledger.doneCount >= removalEnd
        // If the file is to be written now, loads are told only after that.
        var done = mustFile ? 0 : ledger.doneCount
        let step = isRefused ? nil : step(observer, policyRefuses: policyRefuses)
        // Without a step everything is finished.
        if step == nil { done = isRefused ? .max : ledger.doneCount }
        // What a load has read before does not show the step.
        if step != nil { storageVersion += 1 }
        let told = ends.filter { $0.count <= done }.map(\.tell)
        if !told.isEmpty { hadSeveralWaiters = told.count > 1 }
        ends.removeAll { $0.count <= done }
        let goesOn = step != nil || hasWork || !readers.isEmpty
        work = step != nil ? .changingStorage : goesOn ? .working : .idle
        return (step, told, goesOn)
    }

    /// The next step: what waits is brought to the storage, and then Foundation's file is written, once for
    /// all of it, if it is time for that.
    ///
    /// - Parameter policyRefuses: Only deletions are made: the storage would not take a cookie.
    private mutating func step(_ observer: StorageChangeObserver, policyRefuses: Bool) -> Step? {
        if ledger.doneCount >= batchEnd {
            if mustFile { return .file }
            batchEnd = ledger.askedCount
        }
        while ledger.doneCount < batchEnd, let next = ledger.nextStep(now: Date()) {
            switch next {
            case .set(let cookie) where policyRefuses:
                // A session's own policy may accept cookies. They come after the batch, so that this loop
                // ends.
                guard let object = ledger.postpone(cookie) else { continue }
                return delete(object)
            case .set(let cookie):
                guard let object = StoredCookie(cookie, observer: observer) else { continue }
                ledger.willShow(object)
                return .set(object)
            case .delete(let object): return delete(object)
            }
        }
        return mustFile ? .file : nil
    }

    private mutating func delete(_ object: HTTPCookie) -> Step {
        ledger.willRemove(object)
        return .delete(object, other: ledger.anyShown(beside: object))
    }

    // MARK: The file

    /// Notes that the file has been read, or cannot be used.
    ///
    /// - Parameters:
    ///   - opened: The ledger with the contents of the file and the storage.
    ///   - bring: Brings these contents into the ledger of a store that has received cookies meanwhile, which
    ///     are newer.
    mutating func opened(hasFile: Bool, _ opened: CookieLedger, orBy bring: (inout CookieLedger) -> Void) {
        storageVersion += 1
        if ledger.askedCount == 0 { ledger = opened } else { bring(&ledger) }
        file = hasFile ? .open : .absent
    }

    /// Takes the rows that have to be written since the last time, at most `maximum` of them.
    mutating func takeRows(atMost maximum: Int) -> [CookieRow] {
        // Nearly always there are none, and the first call of the ledger's search takes 670,000 instructions.
        ledger.hasDirtyRows ? ledger.takeRows(atMost: maximum, now: Date()) : []
    }

    /// Takes all rows, for a new file.
    mutating func takeAllRows() -> [CookieRow] {
        ledger.markAllDirty()
        return ledger.takeRows(now: Date())
    }

    /// Keeps rows that could not be written.
    ///
    /// - Returns: Whether there are too many of them, so that the file is not used any more.
    mutating func writeFailed(_ rows: [CookieRow]) -> Bool {
        ledger.putBack(rows)
        file = ledger.dirtyCount <= CookieDisk.maximumUnwritten ? .failing : .absent
        return file == .absent
    }

    // MARK: Foundation's file

    /// The least number of seconds between two writes of Foundation's file. If a write takes long, writing is
    /// limited to a twentieth of the time: it costs 30 to 50 µs for each cookie in the file, and a wait for
    /// the disk.
    static let filingInterval = 1.0
    private static let filingShare = 20.0

    /// Whether Foundation's file is older than its storage, and is to be written now. At once, if the store
    /// has no file of its own: the cookies would be lost if the process ended.
    private var mustFile: Bool {
        ledger.isUnfiled && (file == .absent || file == .failing || filesAt <= LoopClock.systemNow)
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

    /// Notes that Foundation has written its file because of a change by the program.
    mutating func noteProgramsFiling() { hasProgramFiled = true }

    /// - Returns: Whether Foundation has written its file for the program since the last time.
    mutating func takeProgramsFiling() -> Bool {
        guard hasProgramFiled else { return false }
        hasProgramFiled = false
        ledger.noteFiled()
        return true
    }

    /// Begins the last write of Foundation's file, at the end of the program.
    ///
    /// - Returns: False if the file needs none, or the thread still works.
    mutating func beginLastFiling() -> Bool {
        guard work == .idle, !isRefused, ledger.isUnfiled else { return false }
        work = .changingStorage
        return true
    }

    mutating func endLastFiling() { work = .idle }
}
