internal import CEv

/// One mode of a run loop as libev knows it: owns the `ev_loop`, and is the only caller of `ev_run`.
///
/// It is a projection of what `LoopState` says the mode holds, brought up to date before each look at the
/// kernel. Loop's thread only.
///
/// `@exclusivity(unchecked)`, here and wherever else passes go by: one thread touches these, and no access lasts
/// while something else is called. The check would take a sixth of an empty pass.
final class ModeLoop {
    private let loop: OpaquePointer
    private let wakeUp: WakeUp
    @exclusivity(unchecked) private var table: WatcherTable
    // The loop's own descriptors, which take the table's first places: what ends a sleep, what ends it at a moment, and
    // what the main dispatch queue has.
    private static let ownWatchers = 3
    private let wakeUpWatcher: WatcherPointer
    private let timerWatcher: WatcherPointer
    private let mainQueueWatcher: WatcherPointer
    /// Of the sources that stand in the table.
    @exclusivity(unchecked) private var watchers: [ObjectIdentifier: WatcherPointer] = [:]
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
    /// How often libev has been asked.
    @exclusivity(unchecked) private(set) var looks = 0
    /// Changes with every activation that begins or ends: readiness found before is looked at again.
    @exclusivity(unchecked) var era: UInt32 = 0

    /// - Throws: The errno of whatever ran out: descriptors, as a rule.
    init(wakeUp: WakeUp) throws(SystemError) {
        errno = 0
        guard let loop = rondo_ev_loop_new() else {
            throw SystemError("ev_loop_new", code: errno == 0 ? EMFILE : errno)
        }
        var table = WatcherTable()
        (wakeUpWatcher, timerWatcher, mainQueueWatcher) = (table.take(), table.take(), table.take())
        self.table = table
        self.loop = loop
        self.wakeUp = wakeUp
        // Unretained: this object owns the loop and destroys it in `deinit`.
        ev_set_userdata(loop, Unmanaged.passUnretained(self).toOpaque())
        wakeUpWatcher.set(wakeUp.eventDescriptor, events: Int32(EV_READ))
        timerWatcher.set(wakeUp.timerDescriptor, events: Int32(EV_READ))
        wakeUpWatcher.start(in: loop)
        timerWatcher.start(in: loop)
    }

    deinit {
        table.forEach { $0.stop(in: loop) }
        ev_loop_destroy(loop)
        for watcher in watchers.values { watcher.pointee.source?.release() }
    }

    // MARK: The look at the kernel

    /// Asks the kernel once. With `mayBlock` it sleeps until something is reported, which need not mean
    /// anything real: a signal, a stale registration and libev's own minute end the sleep too.
    func poll(mayBlock: Bool) {
        looks += 1
        mainQueueIsReady = false
        rondo_ev_poll(loop, mayBlock && !ready.hasReport ? 1 : 0)
        ready.collect()
    }

    /// Asks the kernel without a sleep, if that may find something. In a mode without descriptors it cannot: of timers the
    /// clock tells, and of what other threads want `LoopState`.
    func pollWhatIsWatched() {
        if startedCount > 0 || ready.hasReport {
            poll(mayBlock: false)
        } else {
            mainQueueIsReady = mainQueueWatcher.pointee.isStarted && MainQueue.hasWork
        }
    }

    /// From libev's callback.
    func report(_ watcher: WatcherPointer, events: Int32) {
        guard watcher.pointee.source != nil else {
            // Of the timer there is nothing to note: whoever looked will compare the deadlines with the clock.
            if watcher == wakeUpWatcher { wakeUp.drain() }
            if watcher == mainQueueWatcher { mainQueueIsReady = true }
            return
        }
        // What waits to be served already is not listed twice.
        guard !watcher.pointee.isListed else { return }
        watcher.pointee.isListed = true
        list(watcher, events: events)
    }

    private func list(_ watcher: WatcherPointer, events: Int32) {
        ready.report(
            ReadySet.Entry(
                watcher: watcher, generation: watcher.pointee.generation, events: events, era: era))
    }

    /// The next source that is ready, with what it is ready for; nil when the set is exhausted.
    ///
    /// An entry of an earlier era is asked about again: a nested or ended run has had the time to serve it.
    /// Its watcher keeps the source, at least until somebody is called.
    func nextReady() -> (source: Unmanaged<RunLoop.Source>, events: Int32)? {
        while let entry = ready.popFirst() {
            guard let source = source(of: entry) else { continue }
            let watcher = entry.watcher
            watcher.pointee.isListed = false
            var events = entry.events
            if events & rondo_ev_error == 0 {
                events &= watcher.pointee.events
                if events != 0 && entry.era != era {
                    events = Self.readiness(of: watcher.pointee.io.fd, events: events)
                }
            }
            guard events != 0 else { continue }
            fetchNextReady()
            return (source, events)
        }
        return nil
    }

    /// Nil: whoever was found ready has been taken out since.
    private func source(of entry: ReadySet.Entry) -> Unmanaged<RunLoop.Source>? {
        entry.watcher.pointee.generation == entry.generation ? entry.watcher.pointee.source : nil
    }

    /// Has the next source brought into the cache while this one is served: among many they are far apart. It takes
    /// three lines of the cache, and what its callback holds was most often allocated just before it. Safe whatever lies
    /// there: a processor that is asked to fetch an address that is none does nothing.
    private func fetchNextReady() {
        guard let entry = ready.first, let source = source(of: entry) else { return }
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

    /// Whether `source` is watched for just these events.
    func watches(_ source: RunLoop.Source, events: Int32) -> Bool {
        guard let watcher = watchers[ObjectIdentifier(source)] else { return false }
        return watcher.pointee.isStarted && watcher.pointee.events == events
    }

    func watch(_ source: RunLoop.Source, descriptor: Int32, events: Int32) {
        let key = ObjectIdentifier(source)
        if let watcher = watchers[key] {
            // Set anew in any case: the number may stand for another file than it did.
            stop(watcher)
            paused.remove(key)
            watcher.set(descriptor, events: events)
            if events != 0 { start(watcher) }
            return
        }
        guard events != 0 else { return }
        let watcher = table.take()
        watcher.set(descriptor, events: events)
        // Until `unwatch`, or the end of this object.
        watcher.pointee.source = .passRetained(source)
        watchers[key] = watcher
        start(watcher)
    }

    func unwatch(_ source: RunLoop.Source) {
        let key = ObjectIdentifier(source)
        guard let watcher = watchers.removeValue(forKey: key) else { return }
        stop(watcher)
        paused.remove(key)
        let kept = watcher.pointee.source
        table.giveBack(watcher)
        // What is listed knows its place.
        if watchers.isEmpty, ready.isEmpty, !ready.hasReport { table.shrink(to: Self.ownWatchers) }
        kept?.release()
    }

    /// While a callback of `source` is on the stack, a nested run must not find it ready: it could not serve
    /// it (rule SRC-26) and would spin.
    func pause(_ source: RunLoop.Source) {
        guard let watcher = watchers[ObjectIdentifier(source)] else { return }
        stop(watcher)
        paused.insert(ObjectIdentifier(source))
    }

    /// Whether `source` is paused; it is until it is watched again.
    func hasPaused(_ source: RunLoop.Source) -> Bool {
        !paused.isEmpty && paused.contains(ObjectIdentifier(source))
    }

    private func start(_ watcher: WatcherPointer) {
        guard !watcher.pointee.isStarted else { return }
        let descriptor = Int(watcher.pointee.io.fd)
        while startedCounts.count <= descriptor { startedCounts.append(0) }
        startedCounts[descriptor] += 1
        startedCount += 1
        watcher.start(in: loop)
        mirror?.add(watcher.pointee.io.fd, RunLoop.Source.Interest(events: watcher.pointee.events))
    }

    /// Stops `watcher`. libev will tell the kernel what others want of its descriptor, and aborts the process
    /// if that is closed by now; so they are stopped as well then, and reported (rule SRC-27).
    private func stop(_ watcher: WatcherPointer) {
        guard watcher.pointee.isStarted else { return }
        let descriptor = watcher.pointee.io.fd
        watcher.stop(in: loop)
        mirror?.remove(descriptor, RunLoop.Source.Interest(events: watcher.pointee.events))
        startedCounts[Int(descriptor)] -= 1
        startedCount -= 1
        guard startedCounts[Int(descriptor)] > 0, fcntl(descriptor, F_GETFD) == -1 else { return }
        startedCounts[Int(descriptor)] = 0
        for other in watchers.values where other.pointee.isStarted && other.pointee.io.fd == descriptor {
            other.stop(in: loop)
            startedCount -= 1
            mirror?.remove(descriptor, RunLoop.Source.Interest(events: other.pointee.events))
            list(other, events: rondo_ev_error)
        }
    }

    /// Keeps `mirror` equal to what is watched here, from now on; nil ends it.
    func setMirror(_ mirror: DescriptorMirror?) {
        self.mirror = mirror
        guard let mirror else { return }
        for watcher in watchers.values where watcher.pointee.isStarted {
            mirror.add(watcher.pointee.io.fd, RunLoop.Source.Interest(events: watcher.pointee.events))
        }
    }

    func mainQueueWasDrained() {
        mainQueueIsReady = false
    }

    /// Whether the main dispatch queue's descriptor is watched in this mode.
    func setWatchesMainQueue(_ watches: Bool) {
        if watches, !mainQueueWatcher.pointee.isStarted {
            mainQueueWatcher.set(MainQueue.descriptor, events: Int32(EV_READ))
            mainQueueWatcher.start(in: loop)
        } else if !watches, mainQueueWatcher.pointee.isStarted {
            mainQueueWatcher.stop(in: loop)
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
