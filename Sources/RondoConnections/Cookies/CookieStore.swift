internal import FoundationNetworking
internal import RondoCore
internal import RondoHTTP
internal import RondoMutex

internal import struct Synchronization.Atomic

/// The cookies of one `HTTPCookieStorage`: what loads send comes from here, and what they receive goes here, in memory.
///
/// Foundation's storage writes a whole file, and waits for the disk, with each cookie that is set, while all others wait
/// for it. So no run loop changes it, or reads it while it is being changed: a thread of the store's own brings what was
/// received into the file and then into Foundation's storage, so that the program sees it there, and finds what the
/// program has changed there. Where a load needs to know that, it waits for the thread, and its loop goes on.
///
/// All state is behind one lock, which is never held while Foundation's storage is being changed.
final class CookieStore: Sendable {
    struct State {
        var ledger = CookieLedger()
        /// What the file holds has been read.
        var isOpen: Bool
        /// A thread works, or a run loop where none could be made.
        var isWorking = false
        /// Foundation's storage is being changed by the thread.
        var isStepping = false
        /// Its file is not written whole before the last that waits is there.
        var isBatch = false
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

        var hasWork: Bool {
            (hasFile && !isBehind && ledger.hasDirtyRows) || (!isRefused && ledger.waitingCount > 0)
        }
    }

    /// The end of a load waits for its cookies to be seen in Foundation's storage while no more of them wait than so many.
    /// One response may set `CookieRules.maximumPerDomain`, which the program expects there at the end of the load, as on
    /// Apple's systems; Foundation takes 3 to 20 ms for each, during which no loop is held.
    static let maximumAwaited = 400

    /// Foundation's file is written with each cookie that is set, with all cookies in it, 30 to 50 µs each: where more
    /// than so many wait, or it holds more than `maximumWrittenEachTime`, only when the last of them is set. Until then
    /// ours are not in it.
    static let maximumWaitingWritten = 16
    static let maximumWrittenEachTime = 500

    let state: UnfairMutex<State>
    let visible: any VisibleCookies
    private let locate: (@Sendable () -> URL?)?
    /// Nil: it is not open, or cannot be used.
    let disk = Mutex<CookieFile?>(nil)
    let observer: StorageChangeObserver
    private let isShared: Bool

    /// - Parameters:
    ///   - visible: Where the program sees the cookies.
    ///   - file: What outlives the process; nil: what `visible` itself keeps.
    convenience init(_ visible: any VisibleCookies, file: URL?) {
        let locate: @Sendable () -> URL? = { file }
        self.init(visible, locatingFile: file == nil ? nil : locate, isShared: false)
    }

    /// - Parameters:
    ///   - visible: Where the program sees the cookies.
    ///   - locate: Finds the file that outlives the process, when it is to be opened: a program without cookies does not
    ///     wait for that (0.4 ms of W16). Nil: there is none.
    init(_ visible: any VisibleCookies, locatingFile locate: (@Sendable () -> URL?)?, isShared: Bool) {
        self.visible = visible
        self.locate = locate
        self.isShared = isShared
        state = UnfairMutex(State(isOpen: locate == nil, hasFile: locate != nil))
        let owner = Owner()
        observer = StorageChangeObserver { [owner] in owner.store?.programHasChanged() }
        owner.store = self
    }

    /// `@unchecked Sendable`: it is set once, before anybody has it.
    private final class Owner: @unchecked Sendable {
        weak var store: CookieStore?
    }

    // MARK: For the loads

    /// Whether the cookies can be read at once.
    ///
    /// - Parameter tell: Called by another thread when they can, if not.
    func isReady(orTell tell: () -> @Sendable () -> Void) -> Bool {
        let mustWork = state.withLock { state -> Bool? in
            if state.isOpen, !state.isStepping { return nil }
            state.readers.append(tell())
            return beginsWork(&state)
        }
        guard let mustWork else { return true }
        if mustWork { startWork() }
        return false
    }

    /// The cookies that go to `origin`, in their order.
    ///
    /// - Parameter origin: Asked for only where there are cookies.
    func cookies(for origin: @autoclosure () -> CookieOrigin?) -> [Cookie] {
        let now = Date()
        let (cookies, mustWork) = state.withLock { state in
            lookIfPossible(&state, now)
            var cookies: [Cookie] = []
            if state.ledger.table.count > 0, let origin = origin() {
                cookies = state.ledger.table.cookies(for: origin, now: now)
            }
            return (cookies, state.hasWork && beginsWork(&state))
        }
        if mustWork { startWork() }
        return cookies
    }

    /// Takes what a response has set.
    ///
    /// - Parameter tell: Called by another thread when the program can see it in its storage.
    /// - Returns: Whether that is to come.
    func receive(
        _ fields: some Collection<String>, from origin: CookieOrigin, tell: () -> @Sendable () -> Void
    ) -> Bool {
        let now = Date()
        var cookies: [Cookie] = []
        for text in fields {
            guard let field = SetCookie(text), let cookie = CookieRules.cookie(field, from: origin, now: now)
            else { continue }
            if !cookie.isHostOnly, !PublicSuffixes.hasList { Log.missingSuffixList }
            cookies.append(cookie)
        }
        if cookies.isEmpty { return false }
        let (mustWork, mustWait) = state.withLock { state in
            for index in cookies.indices {
                // Less is lost in a Date's number.
                state.lastMoment = max(now, state.lastMoment.addingTimeInterval(1e-6))
                cookies[index].createdAt = state.lastMoment
                cookies[index].updatedAt = state.lastMoment
            }
            let hasLooked = lookIfPossible(&state, now, asksPolicy: true)
            let before = state.ledger.askedCount
            state.ledger.receive(cookies, from: origin, isAfterLook: hasLooked, now: now)
            // Once more, with what could not be written before.
            state.isBehind = false
            guard state.hasWork || state.isWorking else { return (false, false) }
            // Of one that another load is waiting for already, too.
            let mustWait =
                (state.ledger.askedCount > before || state.isWorking) && !state.isRefused
                && state.ledger.waitingCount <= Self.maximumAwaited
            if mustWait { state.ends.append((state.ledger.askedCount, tell())) }
            return (beginsWork(&state), mustWait)
        }
        if mustWork { startWork() }
        return mustWait
    }

    /// Finds what the program has changed, unless the thread is changing the storage, and finds it afterwards.
    @discardableResult
    private func lookIfPossible(_ state: inout State, _ now: Date, asksPolicy: Bool = false) -> Bool {
        guard state.isOpen, !state.isStepping else { return false }
        state.looks += 1
        // It matters to cookies that wait to be shown alone.
        if asksPolicy || state.ledger.waitingCount > 0 { state.isRefused = visible.policy == .never }
        state.ledger.look(at: visible.cookies, now: now)
        return true
    }

    /// - Returns: Whether a thread has to be started.
    private func beginsWork(_ state: inout State) -> Bool {
        defer { state.isWorking = true }
        return !state.isWorking
    }

    // MARK: The thread

    private func startWork() {
        do throws(SystemError) {
            try SystemThread.start(name: "rondo.cookies") { [self] in work() }
        } catch {
            // Without a thread this run loop waits: better than that the loads wait for ever.
            work()
        }
    }

    /// The program is changing Foundation's storage at this moment, under the storage's lock.
    private func programHasChanged() {
        // Without a thread the next load finds it.
        try? SystemThread.start(name: "rondo.cookies") { [self] in
            observer.rearm()
            if state.withLock({ beginsWork(&$0) }) { work() }
        }
    }

    private func work() {
        if !state.withLock({ $0.isOpen }) { open() }
        while true {
            look()
            write()
            let (step, told, goesOn) = nextStep()
            for tell in told { tell() }
            guard goesOn else { break }
            if let step { perform(step) }
        }
        CookieFolder.hideFiles()
    }

    private func look() {
        observer.rearm()
        let looks = state.withLock { $0.looks }
        // Without the lock: the program may be changing it, which takes its time.
        let seen = visible.cookies
        let readers = state.withLock { state in
            if state.looks == looks {
                state.looks += 1
                state.ledger.look(at: seen, now: Date())
            }
            defer { state.readers = [] }
            return state.readers
        }
        for tell in readers { tell() }
    }

    private enum Step {
        /// - Parameter leavesOut: Foundation's file is to be written without ours.
        case set(StoredCookie, leavesOut: Bool)
        case delete(HTTPCookie, leavesOut: Bool)
        /// All is there, and Foundation's file is to be written whole.
        case write
    }

    /// - Returns: The next step, the calls that tell of the steps done, and whether to go on.
    private func nextStep() -> (Step?, [@Sendable () -> Void], Bool) {
        let isRefused = visible.policy == .never
        return state.withLock { state in
            state.isStepping = false
            state.isRefused = isRefused
            var step: Step?
            let done = isRefused ? .max : state.ledger.doneCount
            while !isRefused, step == nil, let next = state.ledger.nextStep(now: Date()) {
                switch next {
                case .set(let cookie):
                    guard let object = StoredCookie(cookie, observer: observer) else { continue }
                    state.ledger.willShow(object)
                    step = .set(object, leavesOut: leavesOut(&state))
                case .delete(let object):
                    state.ledger.willRemove(object)
                    step = .delete(object, leavesOut: leavesOut(&state))
                }
            }
            if step == nil, state.isBatch {
                state.isBatch = false
                step = .write
            }
            state.isStepping = step != nil
            // Without a step all is done that there was.
            let count = step == nil && !isRefused ? state.ledger.doneCount : done
            let told = state.ends.filter { $0.count <= count }.map(\.tell)
            state.ends.removeAll { $0.count <= count }
            let goesOn = step != nil || state.hasWork || !state.readers.isEmpty
            state.isWorking = goesOn
            return (step, told, goesOn)
        }
    }

    private func leavesOut(_ state: inout State) -> Bool {
        let waiting = state.ledger.waitingCount
        if waiting > Self.maximumWaitingWritten || state.ledger.shownCount > Self.maximumWrittenEachTime {
            state.isBatch = true
        }
        if waiting == 0 { state.isBatch = false }
        return state.isBatch
    }

    private func perform(_ step: Step) {
        switch step {
        case .set(let cookie, let leavesOut):
            observer.withoutNotice(leavesOut: leavesOut) { visible.set(cookie) }
        case .delete(let object, let leavesOut):
            observer.withoutNotice(leavesOut: leavesOut) { visible.delete(object) }
        case .write:
            observer.withoutNotice(leavesOut: false) { visible.write() }
        }
        if isShared { CookieFolder.hideFile() }
    }

    // MARK: The file

    private var file: URL? { locate?() }

    private func open() {
        let now = Date()
        var rows: [CookieRow] = []
        var (isOpen, wasBroken) = (false, false)
        if let url = file {
            disk.withLock { disk in
                do throws(DatabaseError) {
                    let opened = try CookieFile(url)
                    (rows, wasBroken) = opened.read(now: now)
                    disk = opened
                    isOpen = true
                } catch {
                    Self.tell(error, url)
                }
            }
        }
        let isLost = isShared && CookieFolder.isWrittenByThisProcess
        let seen = visible.cookies
        state.withLock { [isOpen, wasBroken, rows] state in
            state.looks += 1
            state.ledger.look(at: seen, now: now)
            state.ledger.merge(rows, now: now) { _ in isLost }
            if wasBroken { state.ledger.markAllDirty() }
            state.isOpen = true
            state.hasFile = isOpen
        }
        if isShared { AtExit.register(self) }
    }

    /// Writes what has changed, in one transaction.
    private func write() {
        let (rows, hasFile) = state.withLock { ($0.ledger.takeRows(now: Date()), $0.hasFile) }
        if !hasFile || rows.isEmpty { return }
        let error: DatabaseError? = disk.withLock { disk in
            guard let file = disk else { return nil }
            do throws(DatabaseError) {
                try file.write(rows)
                return nil
            } catch {
                guard error.saysThatFileIsBroken else { return error }
                // What is broken is as if it had never been there; what is remembered is written anew.
                do throws(DatabaseError) {
                    try file.makeAnew()
                    try file.write(
                        state.withLock { state in
                            state.ledger.markAllDirty()
                            return state.ledger.takeRows(now: Date())
                        })
                    return nil
                } catch {
                    return error
                }
            }
        }
        guard let error, let file else { return }
        Self.tell(error, file)
        let isGivenUp = state.withLock { state in
            state.ledger.putBack(rows)
            state.isBehind = true
            state.hasFile = state.ledger.dirtyCount <= Self.maximumUnwritten
            return !state.hasFile
        }
        if isGivenUp { disk.withLock { $0 = nil } }
    }

    /// A file that cannot be written is given up when it is behind by more rows.
    static let maximumUnwritten = 2 * CookieFile.maximumCount

    private static let hasTold = Atomic(false)

    /// Once a process.
    private static func tell(_ error: DatabaseError, _ url: URL) {
        if hasTold.exchange(true, ordering: .relaxed) { return }
        Log.connections.warning(
            "\(url.path) cannot be used (\(error)): cookies that loads receive are remembered until the program ends"
        )
    }

    /// When the program ends in an orderly way: what it has changed last is written.
    private enum AtExit {
        private static let stores = Mutex<[CookieStore]>([])
        private static let registration: Void = { atexit { AtExit.flush() } }()

        static func register(_ store: CookieStore) {
            _ = registration
            stores.withLock { $0.append(store) }
        }

        /// The end of the program waits so long for what is under way, in milliseconds.
        private static let patience = 2_000

        private static func flush() {
            for store in stores.withLock({ $0 }) {
                for _ in 0..<patience {
                    guard store.state.withLock({ $0.isWorking }) else { break }
                    _ = poll(nil, 0, 1)
                }
                if store.state.withLock({ $0.isStepping }) { continue }
                store.look()
                store.write()
            }
        }
    }
}
