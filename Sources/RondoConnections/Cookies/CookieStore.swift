internal import FoundationNetworking
internal import RondoCore
internal import RondoHTTP
internal import RondoMutex

internal import struct Synchronization.Atomic

/// The cookies of one `HTTPCookieStorage`, in memory. Loads read the cookies that they send from here, and
/// add those that they receive.
///
/// Foundation's storage examines all its cookies for each one that is set, and then writes them all to a
/// file, while every other access waits. So no run loop changes the storage, or begins to read it while it is
/// being changed. A thread of the store's own brings received cookies into the store's file and then into
/// Foundation's storage, so that the program sees them there, and finds the changes that the program has made
/// there. If a load depends on these, it waits for the thread, and its loop goes on. Foundation's file is
/// written when everything that waited is in the storage, and not again for a second or more: until then the
/// store's own file has the newer state. If a response sets many cookies, the thread parses them too.
///
/// All state is behind one lock, which a request takes only if the store or the program has cookies. It is
/// never held while Foundation's storage is called, which lets every reader wait while a program sets a
/// cookie; and the thread holds it for at most `maximumAtOnce` cookies at a time.
final class CookieStore: Sendable {
    /// The end of a load waits until its cookies are in Foundation's storage, as long as no more than this
    /// many cookies wait. One response may set `CookieRules.maximumPerDomain` cookies, which the program
    /// expects in the storage at the end of the load, as on Apple's systems. Foundation takes 0.05 to 0.2 ms
    /// for each, and some more to write its file; no loop is blocked meanwhile. Beside 3,000 cookies that
    /// Foundation has read from its own file it takes 50 ms for each.
    static let maximumAwaited = 400

    let state: UnfairMutex<CookieStoreState>
    /// Held by a load that reads Foundation's storage, whose own lock is handed from one waiting thread to
    /// the next: with 8 loops that queue for it instead, a request takes 50 µs of CPU in place of 38 (W5 of
    /// Benchmarks/, on a slow machine).
    private let reading = UnfairMutex(())
    /// The state's outline, which only `change` sets.
    private let outlineWord: Atomic<UInt>
    let visible: any VisibleCookies
    /// The file for cookies that outlive the process; nil if there is none.
    let disk: CookieDisk?
    let observer: StorageChangeObserver
    private let isShared: Bool
    private let thread: StandbyThread

    /// - Parameters:
    ///   - visible: The storage in which the program sees the cookies.
    ///   - file: The file for cookies that outlive the process; nil to rely on `visible` for that.
    convenience init(_ visible: any VisibleCookies, file: URL?) {
        let locate: @Sendable () -> URL? = { file }
        self.init(visible, locatingFile: file == nil ? nil : locate, isShared: false)
    }

    /// - Parameters:
    ///   - visible: The storage in which the program sees the cookies.
    ///   - locate: Finds the file for cookies that outlive the process; nil if there is none.
    init(_ visible: any VisibleCookies, locatingFile locate: (@Sendable () -> URL?)?, isShared: Bool) {
        self.visible = visible
        disk = locate.map { CookieDisk(locating: $0) }
        self.isShared = isShared
        let state = CookieStoreState(hasFile: locate != nil)
        outlineWord = Atomic(state.outline.word)
        self.state = UnfairMutex(state)
        let reference = Reference()
        observer = StorageChangeObserver { [reference] in reference.store?.programHasChanged() }
        thread = StandbyThread("rondo.cookies") { [reference] in reference.store?.workIfCalled() }
        // A strong reference to the shared store, which is never freed: the references to an object are
        // counted more slowly once it has had a weak one. One of the five things that are together worth 5 %
        // of http.request: see `LoopThreadState.attach(_:)`.
        if isShared { reference.lasting = self } else { reference.passing = self }
    }

    /// The reference of the observer and of the thread to their store, which is made after them.
    ///
    /// `@unchecked Sendable`: it is set once, in the store's initializer. Neither closure runs before that:
    /// the observer needs a cookie of the store, the thread needs work. Reading a weak reference is atomic.
    private final class Reference: @unchecked Sendable {
        var lasting: CookieStore?
        weak var passing: CookieStore?
        var store: CookieStore? { lasting ?? passing }
    }

    // MARK: The state

    /// Every change of the state goes through here: loads read its outline without the lock.
    private func change<Result>(_ body: (inout CookieStoreState) -> Result) -> Result {
        state.withLock { state in
            let result = body(&state)
            outlineWord.store(state.outline.word, ordering: .releasing)
            return result
        }
    }

    /// While the lock is held, this is the outline of the current state.
    private var outline: CookieStoreState.Outline {
        CookieStoreState.Outline(word: outlineWord.load(ordering: .acquiring))
    }

    // MARK: For the loads

    /// Asks for reading the cookies. If that has to wait, the result of `tell` is called by another thread
    /// when they can be read.
    ///
    /// - Returns: Whether they can be read at once.
    func prepareReading(orTell tell: () -> @Sendable () -> Void) -> Bool {
        if outline.isReadable { return true }
        let mustWork = change { state -> Bool? in
            if state.isReadable { return nil }
            state.addReader(tell())
            return state.beginWork()
        }
        guard let mustWork else { return true }
        if mustWork { callThread() }
        return false
    }

    /// Reads the cookies that go to `origin`, in their order, after what the program has changed in its
    /// storage. The thread is called if that leaves work to it.
    ///
    /// - Parameter origin: Asked for only where there are cookies.
    func readCookies(for origin: @autoclosure () -> CookieOrigin?) -> [Cookie] {
        if isEmpty { return [] }
        let (cookies, mustWork) = withExamination(if: { $0.isExaminable }) { state, _ in
            var cookies: [Cookie] = []
            if state.ledger.table.count > 0, let origin = origin() {
                cookies = state.ledger.table.cookies(for: origin, now: Date())
            }
            return (cookies, state.hasWork && state.beginWork())
        }
        if mustWork { callThread() }
        return cookies
    }

    /// Whether neither the store nor the program has a cookie, and there is no work to begin.
    private var isEmpty: Bool {
        guard outline.isEmpty, reading.withLock({ _ in visible.cookies.isEmpty }) else { return false }
        // The store may have got a cookie since, and brought it to the storage after that was read.
        return outline.isEmpty
    }

    /// How many cookies of a response a run loop processes itself; larger responses are left to the thread.
    static let maximumOnLoop = 8
    /// The microseconds for which the thread gathers the cookies of further loads, while several end at a
    /// time.
    private static let gatheringTime: UInt32 = 300
    /// The number of cookies for which the thread holds the lock: run loops need it in between.
    static let maximumAtOnce = 32

    /// Takes the cookies that a response has set.
    ///
    /// - Parameter tell: Its result is called by another thread when the program can see them in its storage.
    /// - Returns: Whether that call will come.
    func receive(
        _ fields: some Collection<String>, from origin: CookieOrigin, tell: () -> @Sendable () -> Void
    ) -> Bool {
        let received = ReceivedCookies(Array(fields), from: origin, at: Date())
        var cookies: [Cookie]?
        if received.count <= Self.maximumOnLoop, received.isQuick { cookies = received.cookies() }
        if cookies?.isEmpty ?? false { return false }
        let isQuick = cookies != nil
        let (mustWork, mustWait) = withExamination(
            asksPolicy: true, if: { isQuick && $0.isReadable }
        ) { state, hasExamined in
            guard let cookies, state.isOpen, state.received.isEmpty else {
                // It counts as one of those that wait.
                let mustWait = state.isAwaited(with: received.count)
                state.enqueue(.cookies(received, tell: mustWait ? tell() : nil))
                return (state.beginWork(), mustWait)
            }
            let before = state.ledger.askedCount
            state.take(cookies, of: received, isAfterExamination: hasExamined)
            guard state.hasWork || state.isWorking else { return (false, false) }
            // The load also waits if another load is already waiting for the same cookie.
            let mustWait = (state.ledger.askedCount > before || state.isWorking) && state.isAwaited()
            if mustWait { state.addEnd(tell()) }
            return (state.beginWork(), mustWait)
        }
        if mustWork { callThread() }
        return mustWait
    }

    /// Has what was received, and the changes that the program has made until now, written to the file.
    ///
    /// - Parameter tell: Called by another thread when that is done; at once if there is nothing to write.
    func flush(then tell: @escaping @Sendable () -> Void) {
        let mustWork = change { state -> Bool? in
            // A store that no load has used keeps nothing.
            guard state.isOpen || state.isWorking || !state.received.isEmpty else { return nil }
            state.enqueue(.flush(tell: tell))
            return state.beginWork()
        }
        guard let mustWork else { return tell() }
        if mustWork { callThread() }
    }

    /// Removes all cookies that have been received until now, and those that the program has set before the
    /// store's thread examines its storage. Requests that begin later send none of them; the program sees
    /// them in its storage until the thread has removed them there.
    ///
    /// A closure that a later `flush` calls finds none of them in the storage.
    func removeAll() {
        let mustWork = change { state in
            state.enqueue(.removal)
            return state.beginWork()
        }
        if mustWork { callThread() }
    }

    /// Finds the program's changes and runs `body`, with the lock held. The storage is read before, without
    /// it, and again if its state has changed meanwhile.
    ///
    /// - Parameters:
    ///   - isWanted: Whether to find them.
    ///   - body: Its second argument says whether they were found. If the thread is changing the storage, it
    ///     finds them afterwards.
    private func withExamination<Result>(
        asksPolicy: Bool = false, if isWanted: (CookieStoreState.Outline) -> Bool,
        _ body: (inout CookieStoreState, Bool) -> Result
    ) -> Result {
        while true {
            let before = outline
            var seen: (cookies: [HTTPCookie], isRefused: Bool?)?
            if isWanted(before) { seen = readStorage(asksPolicy: asksPolicy || before.hasWaiting) }
            let result = change { state -> Result? in
                let current = outline
                guard isWanted(current) else { return body(&state, false) }
                guard let seen, current.version == before.version else { return nil }
                state.examine(seen.cookies, isRefused: seen.isRefused)
                return body(&state, true)
            }
            if let result { return result }
        }
    }

    private func readStorage(asksPolicy: Bool) -> (cookies: [HTTPCookie], isRefused: Bool?) {
        reading.withLock { _ in (visible.cookies, asksPolicy ? visible.policy == .never : nil) }
    }

    // MARK: The thread

    private func callThread() {
        do throws(SystemError) {
            try thread.call(keeping: self)
        } catch {
            // No thread could be started: this run loop does the work itself, since loads would wait for ever
            // otherwise.
            workIfCalled()
        }
    }

    /// Called while the program changes Foundation's storage, under the storage's lock.
    private func programHasChanged() {
        // If no thread can be started, the next load finds the change.
        try? thread.call(keeping: self)
    }

    /// - Returns: The seconds until there is more to do; nil if there is nothing.
    @discardableResult
    private func workIfCalled() -> Double? {
        let hasProgramFiled = observer.hasNoticed && observer.rearm()
        let (isCalled, hadSeveralWaiters) = change { state in
            if hasProgramFiled { state.noteProgramsFiling() }
            if state.hasWork { _ = state.beginWork() }
            return (state.takeCall(), state.hadSeveralWaiters)
        }
        if isCalled {
            // The cost of changing Foundation's storage is then shared by several loads.
            if hadSeveralWaiters { usleep(Self.gatheringTime) }
            work()
        }
        return state.withLock { $0.secondsUntilFiling }
    }

    private func work() {
        var hasFiled = false
        if !state.withLock({ $0.isOpen }) {
            open()
        }
        var mustExamine = true
        while true {
            let receivedCount = state.withLock { $0.received.count }
            if mustExamine || receivedCount > 0 || hasNews { examineStorage() }
            takeReceived(receivedCount)
            tellReaders()
            hasFiled = change { $0.takeProgramsFiling() } || hasFiled
            write()
            let (step, told, goesOn) = nextStep()
            for tell in told { tell() }
            guard goesOn else { break }
            // If a cookie of the store's own is in the storage, it reports changes of the program between two
            // steps: then the storage need not be examined again.
            mustExamine = step.map { !$0.leavesObserver } ?? true
            if let step { hasFiled = perform(step) || hasFiled }
        }
        if hasFiled { CookieFolder.hideFiles() }
    }

    /// Whether the program has changed the storage, or loads wait to read it.
    private var hasNews: Bool {
        observer.hasNoticed || state.withLock { $0.hasProgramFiled || !$0.readers.isEmpty }
    }

    private func examineStorage() {
        while true {
            let hasProgramFiled = observer.rearm()
            let version = change { state in
                if hasProgramFiled { state.noteProgramsFiling() }
                return state.storageVersion
            }
            // Without the lock: the program may be changing the storage, which takes long.
            let seen = visible.cookies
            if change({ $0.examine(seen, readAt: version) }) { return }
        }
    }

    /// Processes what had been received when the storage was examined.
    private func takeReceived(_ count: Int) {
        for _ in 0..<count {
            guard let next = state.withLock({ $0.received.first }) else { return }
            // Outside the lock: this is the slow part.
            if case .cookies(let received, _) = next {
                var rest = received.cookies()[...]
                while !rest.isEmpty {
                    let some = rest.prefix(Self.maximumAtOnce)
                    rest = rest.dropFirst(Self.maximumAtOnce)
                    change { $0.take(some, of: received, isAfterExamination: true) }
                }
            }
            change { $0.endFirstReceived() }
        }
    }

    private func tellReaders() {
        for tell in change({ $0.takeReaders() }) { tell() }
    }

    /// - Returns: The next step, the calls that tell of the steps done, and whether to go on.
    private func nextStep() -> (CookieStoreState.Step?, [@Sendable () -> Void], Bool) {
        let policyRefuses = visible.policy == .never
        return change { $0.nextStep(policyRefuses: policyRefuses, observer: observer) }
    }

    /// - Returns: Whether Foundation may have written its file.
    private func perform(_ step: CookieStoreState.Step) -> Bool {
        var hasFiled = false
        switch step {
        case .set(let cookie):
            observer.keepingFile(by: cookie) { visible.set(cookie) }
        case .delete(let object, let other):
            observer.keepingFile(by: other) { visible.delete(object) }
            // None of the store's cookies is left in the storage then.
            hasFiled = other == nil
        case .file:
            let began = LoopClock.systemNow
            observer.keepingFile(by: nil) { visible.write() }
            change { $0.noteFiled(from: began, to: LoopClock.systemNow) }
            hasFiled = true
        }
        if isShared, hasFiled { CookieFolder.hideFile() }
        return hasFiled
    }

    // MARK: The file

    private func open() {
        let now = Date()
        let file = disk?.open(now: now)
        let rows = file?.rows ?? []
        let isLost = isShared && !rows.isEmpty && CookieFolder.isWrittenByThisProcess
        let seen = visible.cookies
        let bring = { (ledger: inout CookieLedger) in
            ledger.examine(seen, now: now)
            ledger.merge(rows, now: now) { _ in isLost }
            if file?.wasBroken ?? false { ledger.markAllDirty() }
        }
        // Outside the lock, which loops need: loads wait for the store to open before they use cookies.
        var opened = CookieLedger()
        bring(&opened)
        change { [opened] in $0.opened(hasFile: file != nil, opened, orBy: bring) }
        if isShared { CookiesAtExit.register(self) }
    }

    /// Writes what has changed, in one transaction.
    private func write() {
        var rows: [CookieRow] = []
        var hasFile = false
        while true {
            let some = change { state in
                hasFile = state.hasFile
                return state.takeRows(atMost: Self.maximumAtOnce)
            }
            if some.isEmpty { break }
            rows += some
        }
        guard hasFile, !rows.isEmpty, let disk else { return }
        if disk.write(rows, orAll: { change { $0.takeAllRows() } }) { return }
        if change({ $0.writeFailed(rows) }) { disk.close() }
    }

    // MARK: The end of the program

    /// Writes the program's last changes. Call it when the program ends in an orderly way.
    func writeLast() {
        for _ in 0..<Self.patience {
            guard state.withLock({ $0.isWorking }) else { break }
            _ = poll(nil, 0, 1)
        }
        if state.withLock({ $0.work == .changingStorage }) { return }
        examineStorage()
        write()
        guard change({ $0.beginLastFiling() }) else { return }
        _ = perform(.file)
        change { $0.endLastFiling() }
        tellReaders()
    }

    /// The milliseconds for which the end of the program waits for running work.
    private static let patience = 2_000
}
