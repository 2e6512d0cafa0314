internal import RondoCore

/// What a cookie store has behind its lock.
struct CookieStoreState {
    var ledger = CookieLedger()
    /// What the file holds has been read.
    var isOpen: Bool
    /// A thread works, or a run loop where none could be made.
    var isWorking = false
    /// Foundation's storage is being changed by the thread.
    var isStepping = false
    /// What responses have set and the thread has still to take in, in the order of their coming; with the call that tells
    /// of it, where a load waits for its end. No request is sent meanwhile, so that there are no more than loads.
    var received: [(cookies: ReceivedCookies, tell: (@Sendable () -> Void)?)] = []
    /// The places up to this one are brought to Foundation's storage before its file is written.
    var batchEnd = 0
    /// Foundation has written its file for the program.
    var hasProgramFiled = false
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
            || (!isRefused && ledger.isUnfiled) || hasProgramFiled
    }
}
