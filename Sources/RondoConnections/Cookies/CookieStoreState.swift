internal import RondoCore

/// What a cookie store has behind its lock.
struct CookieStoreState {
    var ledger = CookieLedger()
    /// What the file holds has been read.
    var isOpen: Bool
    /// The thread works, or is called to do so, or a run loop works where no thread could be made.
    var isWorking = false
    /// Several loads were told of their end at once the last time.
    var isCrowded = false
    /// It has not begun yet.
    var isAsked = false
    /// Foundation's storage is being changed by the thread.
    var isStepping = false
    /// What responses have set and the thread has still to take in, in the order of their coming; with the call that tells
    /// of it, where a load waits for its end. No request is sent meanwhile, so that there are no more than loads.
    var received: [(cookies: ReceivedCookies, tell: (@Sendable () -> Void)?)] = []
    /// The places up to this one are brought to Foundation's storage before its file is written.
    var batchEnd = 0
    /// Foundation has written its file for the program.
    var hasProgramFiled = false
    /// Before this time the store does not have Foundation write its file again.
    var filesAt = LoopInstant(nanoseconds: .min)
    /// The program accepts no cookies, and nor would its storage.
    var isRefused = false
    /// The file is open, or has still to be opened.
    var hasFile: Bool
    /// The last write failed: the next one is tried when another cookie comes.
    var isBehind = false
    /// How often the storage was looked at. A thread that has looked before another one did throws away what it saw.
    var looks = 0
    /// Loads that wait until they may read.
    var readers: [@Sendable () -> Void] = []
    /// Loads that end when what they have received can be seen, by how many places have to be done with.
    var ends: [(count: Int, tell: @Sendable () -> Void)] = []
    /// When the last cookie came. The next one came later, be it in the same field section: the order in which
    /// they are sent is that of their coming (RFC 6265 §5.4, step 2).
    var lastMoment = Date.distantPast

    var isReadable: Bool { isOpen && !isStepping && received.isEmpty }

    /// The end of a load waits for what it has received.
    var isAwaited: Bool {
        let count = received.reduce(ledger.waitingCount) { $0 + $1.cookies.count }
        return !isRefused && count <= CookieStore.maximumAwaited
    }

    var hasWork: Bool {
        !received.isEmpty || (hasFile && !isBehind && ledger.hasDirtyRows)
            || (!isRefused && ledger.waitingCount > 0)
            || (!isRefused && mustFile) || hasProgramFiled
    }

    // MARK: Foundation's file

    /// Foundation's file is written once in so many seconds, for all that has changed meanwhile, and by one that takes long
    /// for a twentieth of the time at most: it costs 30 to 50 µs for each cookie that it holds, and a wait for the disk.
    static let filingInterval = 1.0
    private static let filingShare = 20.0

    /// Foundation's file is behind its storage, and is to be written now. Without a file of the store's own nothing else keeps
    /// what has come, should the process end.
    var mustFile: Bool {
        ledger.isUnfiled && (!hasFile || isBehind || filesAt <= LoopClock.machineNow)
    }

    /// Seconds until Foundation's file is to be written; nil: it need not be.
    var secondsUntilFiling: Double? {
        guard ledger.isUnfiled, !isRefused else { return nil }
        return mustFile ? 0 : max(0, filesAt.seconds(since: LoopClock.machineNow))
    }

    /// Foundation has written its file for the store.
    mutating func hasFiled(from began: LoopInstant, to ended: LoopInstant) {
        ledger.hasFiled()
        let delay = max(Self.filingInterval, Self.filingShare * ended.seconds(since: began))
        filesAt = ended.advanced(bySeconds: delay)
    }
}
