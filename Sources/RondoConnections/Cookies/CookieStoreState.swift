internal import RondoCore

/// The state of a cookie store behind its lock. `CookieStore` changes it; only the ledger has rules of its own.
struct CookieStoreState {
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
    /// The cookies of responses that the thread still has to process, in the order in which they came, each
    /// with the call for which the end of a load waits. No request is sent meanwhile, so there are at most as
    /// many as loads.
    ///
    /// An entry without cookies is that of a `flush`: its call is made when all earlier entries have been written.
    var received: [(cookies: ReceivedCookies?, tell: (@Sendable () -> Void)?)] = []
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
    var isAwaited: Bool {
        let count = received.reduce(ledger.waitingCount) { $0 + ($1.cookies?.count ?? 0) }
        return !isRefused && count <= CookieStore.maximumAwaited
    }

    var hasWork: Bool {
        !received.isEmpty || (hasFile && !isBehind && ledger.hasDirtyRows)
            || (!isRefused && ledger.waitingCount > 0)
            || (!isRefused && mustFile) || hasProgramFiled
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
