internal import CEv

/// One mode of a run loop as libev knows it: owns the `ev_loop`, and is the only caller of `ev_run`.
///
/// It is a projection of what `LoopState` says the mode holds, brought up to date before each look at the
/// kernel. Loop's thread only.
///
/// `@exclusivity(unchecked)`, here and wherever else passes go by: one thread touches these, and no access lasts
/// while something else is called. The check would take a sixth of an empty pass.
final class ModeLoop {
    private enum Token {
        static let wakeUp = WatcherToken(index: 0, generation: 0)
        static let timer = WatcherToken(index: 1, generation: 0)
        static let mainQueue = WatcherToken(index: 2, generation: 0)
        static let count: UInt32 = 3
    }

    private let loop: OpaquePointer
    private let wakeUp: WakeUp
    @exclusivity(unchecked) private var watchers: [IOWatcher?] = []
    /// By index, what tells the watchers apart that have stood there.
    @exclusivity(unchecked) private var generations: [UInt32] = []
    @exclusivity(unchecked) private var free: [UInt32] = []
    @exclusivity(unchecked) private var tokens: [ObjectIdentifier: WatcherToken] = [:]
    /// Watchers of sources that are started, by descriptor, and all of them.
    @exclusivity(unchecked) private var startedCounts: [UInt16] = []
    @exclusivity(unchecked) private var startedCount = 0
    @exclusivity(unchecked) private var paused: Set<ObjectIdentifier> = []
    /// The same descriptors in an epoll set of our own, while the mode is embedded in a foreign loop.
    @exclusivity(unchecked) private var mirror: DescriptorMirror?

    /// What the kernel found ready and nobody has served yet.
    @exclusivity(unchecked) var ready = ReadySet()
    /// Whose turn it is among the kinds of step (j).
    @exclusivity(unchecked) var turn = EventKind.timers
    /// The main dispatch queue has work; only ever true in the main loop's common modes.
    @exclusivity(unchecked) private(set) var mainQueueIsReady = false
    /// How often the kernel has been asked.
    @exclusivity(unchecked) private(set) var looks = 0
    /// Changes with every activation that begins or ends: readiness found before is looked at again.
    @exclusivity(unchecked) var era: UInt32 = 0

    /// - Throws: The errno of whatever ran out: descriptors, as a rule.
    init(wakeUp: WakeUp) throws(SystemError) {
        errno = 0
        guard let loop = rondo_ev_loop_new() else {
            throw SystemError("ev_loop_new", code: errno == 0 ? EMFILE : errno)
        }
        self.loop = loop
        self.wakeUp = wakeUp
        // Unretained: this object owns the loop and destroys it in `deinit`.
        ev_set_userdata(loop, Unmanaged.passUnretained(self).toOpaque())
        for (token, descriptor) in [
            (Token.wakeUp, wakeUp.eventDescriptor), (Token.timer, wakeUp.timerDescriptor),
        ] {
            let watcher = IOWatcher.make(
                loop: loop, descriptor: descriptor, events: Int32(EV_READ), token: token, source: nil)
            watchers.append(watcher)
            generations.append(0)
            watcher.start()
        }
        watchers.append(nil)
        generations.append(0)
    }

    deinit {
        for watcher in watchers { watcher?.stop() }
        watchers.removeAll()
        ev_loop_destroy(loop)
    }

    // MARK: The look at the kernel

    /// Whether a look at the kernel that does not sleep may find something. In a mode without descriptors it
    /// cannot: of timers the clock tells, and of what other threads want `LoopState`.
    var mayFindMore: Bool {
        startedCount > 0 || ready.hasReport || watchers[Token.mainQueue.index] != nil
    }

    /// Asks the kernel once. With `mayBlock` it sleeps until something is reported, which need not mean
    /// anything real: a signal, a stale registration and libev's own minute end the sleep too.
    func poll(mayBlock: Bool) {
        looks += 1
        mainQueueIsReady = false
        rondo_ev_poll(loop, mayBlock && !ready.hasReport ? 1 : 0)
        ready.collect()
    }

    /// From libev's callback.
    func report(_ token: WatcherToken, events: Int32) {
        switch token {
        case Token.wakeUp: wakeUp.drain()
        case Token.timer: break  // whoever looked will compare the deadlines with the clock
        case Token.mainQueue: mainQueueIsReady = true
        default:
            // What waits to be served already is not listed twice.
            let isNew = withWatcher(token) { watcher -> Bool? in
                defer { watcher.isListed = true }
                return !watcher.isListed
            }
            if isNew ?? false { ready.report(ReadySet.Entry(token: token, events: events, era: era)) }
        }
    }

    /// The next source that is ready, with what it is ready for; nil when the set is exhausted.
    ///
    /// An entry of an earlier era is asked about again: a nested or ended run has had the time to serve it.
    /// Its watcher keeps the source, at least until somebody is called.
    func nextReady() -> (source: Unmanaged<RunLoop.Source>, events: Int32)? {
        while let entry = ready.popFirst() {
            let found = withWatcher(entry.token) { watcher -> (Unmanaged<RunLoop.Source>, Int32)? in
                watcher.isListed = false
                guard let source = watcher.source else { return nil }
                if entry.events & rondo_ev_error != 0 { return (source, entry.events) }
                var events = entry.events & watcher.events
                if events != 0 && entry.era != era {
                    events = Self.readiness(of: watcher.descriptor, events: events)
                }
                return events != 0 ? (source, events) : nil
            }
            if let found {
                fetchNextReady()
                return found
            }
        }
        return nil
    }

    /// Has the next source brought into the cache while this one is served: among many they are far apart. It takes
    /// three lines of the cache, and what its callback holds was most often allocated just before it. Safe whatever lies
    /// there: a processor that is asked to fetch an address that is none does nothing.
    private func fetchNextReady() {
        guard let entry = ready.first, let source = withWatcher(entry.token, { $0.source }) else { return }
        for offset in [-64, 0, 64, 112] { rondo_prefetch(source.toOpaque() + offset) }
    }

    private static func readiness(of descriptor: Int32, events: Int32) -> Int32 {
        let read = Int32(EV_READ)
        let write = Int32(EV_WRITE)
        var request = pollfd(fd: descriptor, events: 0, revents: 0)
        if events & read != 0 { request.events |= Int16(POLLIN) }
        if events & write != 0 { request.events |= Int16(POLLOUT) }
        // A failed look counts as "ready": the source will find out for itself.
        guard let count = try? systemCall("poll", { CEv.poll(&request, 1, 0) }) else { return events }
        if count == 0 { return 0 }
        let broken = request.revents & Int16(POLLERR | POLLHUP | POLLNVAL) != 0
        var found: Int32 = 0
        if broken || request.revents & Int16(POLLIN) != 0 { found |= read }
        if broken || request.revents & Int16(POLLOUT) != 0 { found |= write }
        return found & events
    }

    // MARK: Watchers

    private func watcher(_ token: WatcherToken) -> IOWatcher? { withWatcher(token) { $0 } }

    /// Without counting a reference, since `body` changes nothing about what is watched.
    ///
    /// - Returns: Nil: there is none of this name any more.
    @inline(__always)
    private func withWatcher<Result>(_ token: WatcherToken, _ body: (IOWatcher) -> Result?) -> Result? {
        guard token.index < watchers.count, let watcher = watchers[token.index] else { return nil }
        return Unmanaged.passUnretained(watcher)._withUnsafeGuaranteedRef {
            $0.token == token ? body($0) : nil
        }
    }

    /// Whether `source` is watched for just these events.
    func watches(_ source: RunLoop.Source, events: Int32) -> Bool {
        guard let token = tokens[ObjectIdentifier(source)], let watcher = watcher(token) else { return false }
        return watcher.isStarted && watcher.events == events
    }

    func watch(_ source: RunLoop.Source, descriptor: Int32, events: Int32) {
        if let token = tokens[ObjectIdentifier(source)], let watcher = watcher(token) {
            // Set anew in any case: the number may stand for another file than it did.
            stop(watcher)
            paused.remove(ObjectIdentifier(source))
            watcher.set(events: events)
            if events != 0 { start(watcher) }
            return
        }
        guard events != 0 else { return }
        let index: UInt32
        if let reused = free.popLast() {
            index = reused
        } else {
            index = UInt32(watchers.count)
            watchers.append(nil)
            generations.append(1)
        }
        let token = WatcherToken(index: index, generation: generations[Int(index)])
        let watcher = IOWatcher.make(
            loop: loop, descriptor: descriptor, events: events, token: token, source: source)
        watchers[Int(index)] = watcher
        tokens[ObjectIdentifier(source)] = token
        start(watcher)
    }

    func unwatch(_ source: RunLoop.Source) {
        guard let token = tokens.removeValue(forKey: ObjectIdentifier(source)) else { return }
        if let watcher = watchers[token.index] { stop(watcher) }
        paused.remove(ObjectIdentifier(source))
        watchers[token.index] = nil
        generations[token.index] &+= 1
        free.append(UInt32(token.index))
    }

    /// While a callback of `source` is on the stack, a nested run must not find it ready: it could not serve
    /// it (rule SRC-26) and would spin.
    func pause(_ source: RunLoop.Source) {
        guard let token = tokens[ObjectIdentifier(source)], let watcher = watcher(token) else { return }
        stop(watcher)
        paused.insert(ObjectIdentifier(source))
    }

    /// Whether `source` is paused; it is until it is watched again.
    func hasPaused(_ source: RunLoop.Source) -> Bool {
        !paused.isEmpty && paused.contains(ObjectIdentifier(source))
    }

    private func start(_ watcher: IOWatcher) {
        guard !watcher.isStarted else { return }
        let descriptor = Int(watcher.descriptor)
        while startedCounts.count <= descriptor { startedCounts.append(0) }
        startedCounts[descriptor] += 1
        startedCount += 1
        watcher.start()
        mirror?.add(watcher.descriptor, RunLoop.Source.Interest(events: watcher.events))
    }

    /// Stops `watcher`. libev will tell the kernel what others want of its descriptor, and aborts the process
    /// if that is closed by now; so they are stopped as well then, and reported (rule SRC-27).
    private func stop(_ watcher: IOWatcher) {
        guard watcher.isStarted else { return }
        let descriptor = watcher.descriptor
        watcher.stop()
        mirror?.remove(descriptor, RunLoop.Source.Interest(events: watcher.events))
        startedCounts[Int(descriptor)] -= 1
        startedCount -= 1
        guard startedCounts[Int(descriptor)] > 0, fcntl(descriptor, F_GETFD) == -1 else { return }
        startedCounts[Int(descriptor)] = 0
        for case .some(let other) in watchers where other.isStarted && other.descriptor == descriptor {
            other.stop()
            startedCount -= 1
            mirror?.remove(descriptor, RunLoop.Source.Interest(events: other.events))
            ready.report(ReadySet.Entry(token: other.token, events: rondo_ev_error, era: era))
        }
    }

    /// Keeps `mirror` equal to what is watched here, from now on; nil ends it.
    func setMirror(_ mirror: DescriptorMirror?) {
        self.mirror = mirror
        guard let mirror else { return }
        for case .some(let watcher) in watchers where watcher.isStarted && watcher.source != nil {
            mirror.add(watcher.descriptor, RunLoop.Source.Interest(events: watcher.events))
        }
    }

    func mainQueueWasDrained() {
        mainQueueIsReady = false
    }

    /// Whether the main dispatch queue's descriptor is watched in this mode.
    func setWatchesMainQueue(_ watches: Bool) {
        let index = Token.mainQueue.index
        if watches, watchers[index] == nil {
            let watcher = IOWatcher.make(
                loop: loop, descriptor: _dispatch_get_main_queue_handle_4CF(), events: Int32(EV_READ),
                token: Token.mainQueue, source: nil)
            watchers[index] = watcher
            watcher.start()
        } else if !watches, let watcher = watchers[index] {
            watcher.stop()
            watchers[index] = nil
            mainQueueIsReady = false
        }
    }
}

/// The kinds of event of step (j); they take turns from pass to pass, so that none starves the others.
enum EventKind: CaseIterable {
    case timers, mainQueue, descriptors

    var next: EventKind {
        switch self {
        case .timers: .mainQueue
        case .mainQueue: .descriptors
        case .descriptors: .timers
        }
    }
}

/// The kinds that a pass serves, in order: a list without an array, which would be an allocation a pass.
struct EventKinds: Sequence, IteratorProtocol {
    private var kinds: (EventKind?, EventKind?, EventKind?) = (nil, nil, nil)
    private(set) var last: EventKind?

    mutating func append(_ kind: EventKind) {
        last = kind
        switch kinds {
        case (nil, _, _): kinds.0 = kind
        case (_, nil, _): kinds.1 = kind
        default: kinds.2 = kind
        }
    }

    mutating func next() -> EventKind? {
        defer { kinds = (kinds.1, kinds.2, nil) }
        return kinds.0
    }
}
