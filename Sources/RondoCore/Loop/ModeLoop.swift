internal import CRondoEv

/// One mode of a run loop as libev knows it: owns the `ev_loop`, and is the only caller of `ev_run`.
///
/// It is a projection of what `LoopState` says the mode holds, brought up to date before each look at the
/// kernel. Loop's thread only.
///
/// If the kernel refuses a mode something (an epoll set, or to add the loop's own descriptors to it), the
/// loop goes on: the mode looks at its descriptors by `poll(2)` (`ModeLoop+Bare`), and asks the kernel again
/// at each look.
final class ModeLoop {
    /// `unowned`: the kernel owns this object.
    private unowned let kernel: LoopKernel
    private let libev = LibevLoop()
    private(set) var wakeUp: WakeUp?
    private var table: WatcherTable
    // The watchers of the loop's own descriptors, the first in the table: the eventfd, the timerfd, and the
    // eventfd of the main dispatch queue.
    private static let ownWatchers = 3
    let wakeUpWatcher: WatcherPointer
    let timerWatcher: WatcherPointer
    let mainQueueWatcher: WatcherPointer
    /// The watchers of sources.
    private(set) var watchers: [ObjectIdentifier: WatcherPointer] = [:]
    // Unchecked, as `refused` and `ready` are: one thread has access, and no access lasts while something
    // else is called. With the check of this the guard's pass.other-mode takes 1,466 instructions instead of
    // 1,384; with that of `refused` descriptor.event takes 2,312 instead of 2,210, and with that of `ready`
    // 2,953.
    @exclusivity(unchecked) private var started = StartedWatchers()
    private var paused: Set<ObjectIdentifier> = []
    private var interrupted: [AnyObject] = []
    /// Whether `takeInterrupted()` has some. Each pass asks twice: of the array itself that takes the guard's
    /// pass.other-mode 79 instructions more.
    private(set) var hasInterrupted = false
    /// It is started to see whether the kernel refuses it, and is not among `started`.
    private var tried: WatcherPointer?
    /// The watchers that libev has stopped in this look, since the kernel has refused their descriptors.
    // Unchecked: see `started`.
    @exclusivity(unchecked) private var refused: [(watcher: WatcherPointer, code: Int32)] = []
    /// The kernel has refused the mode nothing.
    private(set) var isWhole = false
    /// The last look has failed: the next one that sleeps rests for a moment first.
    private var mustRest = false
    private(set) var mainQueue = MainQueueWatch()

    /// The sources that the kernel found ready and that were not served yet.
    // Unchecked: see `started`.
    @exclusivity(unchecked) private(set) var ready = ReadySet()
    /// The kind of event that the next pass looks for first in step (j).
    private(set) var nextKind = EventKind.timers
    /// How often libev has been asked.
    private(set) var looks = 0
    /// Changes with every activation that begins or ends: readiness found before is looked at again.
    private(set) var era: UInt32 = 0

    init(of kernel: LoopKernel) {
        self.kernel = kernel
        var table = WatcherTable()
        (wakeUpWatcher, timerWatcher, mainQueueWatcher) = (table.take(), table.take(), table.take())
        self.table = table
    }

    deinit {
        table.forEach { $0.stop(in: loop) }
        libev.giveUp(closing: true)
        for watcher in watchers.values { watcher.pointee.source?.release() }
    }

    // MARK: Kernel objects

    /// Asks the kernel for the objects that the mode lacks.
    ///
    /// - Throws: The kernel's refusal: descriptors have run out, or `fs.epoll.max_user_watches`.
    func becomeWhole(_ wakeUp: WakeUp) throws(SystemError) {
        guard !isWhole else { return }
        if self.wakeUp !== wakeUp {
            wakeUpWatcher.stop(in: loop)
            timerWatcher.stop(in: loop)
            self.wakeUp = wakeUp
        }
        if loop == nil { try makeLoop() }
        guard let loop else { return }
        wakeUpWatcher.startAnew(wakeUp.eventDescriptor, events: Int32(EV_READ), in: loop, ioReadiness)
        timerWatcher.startAnew(
            wakeUp.timerDescriptor, events: Int32(EV_READ), in: loop, ioReadiness)
        // libev hands them to the kernel in this look.
        if let code = look(sleeps: false) { throw SystemError("epoll_ctl", code: code) }
        isWhole = hasOwnWatchers
    }

    private var hasOwnWatchers: Bool { wakeUpWatcher.pointee.isStarted && timerWatcher.pointee.isStarted }

    private func makeLoop() throws(SystemError) {
        // `Unmanaged` to pass through C, unretained: this object owns libev's, which is destroyed in `deinit`.
        let made = try libev.make(for: Unmanaged.passUnretained(self).toOpaque())
        // See `willBeRemade()`.
        for watcher in watchers.values where watcher.pointee.isStarted { interrupt(watcher) }
        if mainQueueWatcher.pointee.isStarted { mainQueueWatcher.register(with: made) }
    }

    /// See `LibevLoop`.
    var loop: OpaquePointer? { libev.pointer }
    var setDescriptor: Int32 { libev.setDescriptor }
    func refusal(of descriptor: Int32) -> Int32? { libev.refusal(of: descriptor) }

    // MARK: In libev's callbacks

    /// From libev's callback: libev has stopped the watcher, whose descriptor the kernel has refused.
    func noteRefusal(of watcher: WatcherPointer, code: Int32) { refused.append((watcher, code)) }

    /// From libev's callback: a descriptor stands for another file than libev thought, and libev will add all
    /// descriptors to a new epoll set. It would abort the process if one of them is closed, which another
    /// thread may do at any moment, now that no lock is held: so it gets the loop's own alone, and those of
    /// sources are watched anew under the lock.
    func willBeRemade() {
        libev.beginRemaking()
        for watcher in watchers.values where watcher.pointee.isStarted { interrupt(watcher) }
        for watcher in [wakeUpWatcher, timerWatcher, mainQueueWatcher]
        where watcher.pointee.isStarted && rondo_descriptor_kind(watcher.pointee.io.fd) < 0 {
            watcher.stop(in: loop)
            isWhole = false
        }
    }

    /// Stops a watcher, whose source is to be watched anew: see `takeInterrupted()`.
    private func interrupt(_ watcher: WatcherPointer) {
        watcher.stop(in: loop)
        if watcher != tried { started.remove(watcher) }
        guard let source = watcher.pointee.source else { return }
        interrupted.append(source.takeUnretainedValue())
        hasInterrupted = true
    }

    /// The sources that are not watched since libev has made a new epoll set, or the first one. They have to be
    /// watched anew like those that were just added: by `WatcherUpdate`, under the lock that every removal
    /// needs.
    func takeInterrupted() -> [AnyObject] {
        defer { (interrupted, hasInterrupted) = ([], false) }
        return interrupted
    }

    /// Stops a watcher whose descriptor libev must not hand to the kernel, and has its source informed.
    func stopRefused(_ watcher: WatcherPointer, code: Int32) {
        watcher.stop(in: loop)
        started.remove(watcher)
        listError(watcher, code)
    }

    /// Asks the kernel once, by libev.
    ///
    /// - Returns: The errno with which the kernel has refused one of the loop's own descriptors; nil: it has
    ///   not.
    private func look(sleeps: Bool) -> Int32? {
        guard let loop else { return nil }
        rondo_ev_poll(loop, sleeps ? 1 : 0)
        if refused.isEmpty, !libev.wasRemade, !SystemFailure.hasOccurred { return nil }
        return afterFailures(loop)
    }

    /// Starts each refused watcher once more, alone: the errno is its own then, and a refusal that has passed
    /// does no harm.
    private func afterFailures(_ loop: OpaquePointer) -> Int32? {
        libev.endRemaking()
        var own: Int32?
        while let (watcher, code) = refused.popLast() {
            guard watcher.pointee.isStarted else { continue }
            watcher.stop(in: loop)
            if watcher.pointee.source != nil { started.remove(watcher) }
            if let again = codeOfStarting(watcher, in: loop) {
                if watcher.pointee.source == nil {
                    own = again == 0 ? code : again
                } else {
                    listError(watcher, again == 0 ? code : again)
                }
            } else if watcher.pointee.source != nil, watcher.pointee.isStarted {
                // Or else libev has made a new epoll set meanwhile, and the source is watched anew.
                noteStarted(watcher)
            }
        }
        if own != nil { isWhole = false }
        if let code = SystemFailure.take() { lookHasFailed(code) }
        return own
    }

    /// - Returns: The errno with which the kernel refuses the watcher alone; nil: it does not.
    private func codeOfStarting(_ watcher: WatcherPointer, in loop: OpaquePointer) -> Int32? {
        if let code = refusal(of: watcher.pointee.io.fd), watcher.pointee.source != nil { return code }
        let others = refused
        refused = []
        // Of what the kernel has refused, a change of events too, libev notes that it was done; and where it finds a
        // descriptor in the set already, it trusts that note.
        _ = rondo_epoll_remove(setDescriptor, watcher.pointee.io.fd)
        watcher.startAnew(watcher.pointee.io.fd, events: watcher.pointee.events, in: loop, ioReadiness)
        errno = 0
        tried = watcher
        rondo_ev_poll(loop, 0)
        tried = nil
        defer { refused = others + refused.filter { $0.watcher != watcher } }
        guard let code = refused.first(where: { $0.watcher == watcher })?.code else { return nil }
        watcher.stop(in: loop)
        return code
    }

    /// To be called when `epoll_wait` has failed: the program may have closed libev's epoll set by its
    /// number.
    private func lookHasFailed(_ code: Int32) {
        let isWatched = wakeUpWatcher.pointee.isStarted
        guard let wakeUp, setDescriptor >= 0,
            !libev.setIsOpen(watched: wakeUp.eventDescriptor, isWatched: isWatched)
        else {
            // The set is still open: if that goes on, the loop does not repeat it at full speed.
            mustRest = true
            return
        }
        guard let loop else { return }
        table.forEach { if $0.pointee.isStarted { $0.unregister(from: loop) } }
        for watcher in [wakeUpWatcher, timerWatcher] { watcher.stop(in: nil) }
        isWhole = false
        libev.giveUp(closing: false)
    }

    // MARK: The look at the kernel

    /// Asks the kernel once. With `mayBlock` it sleeps until something is reported, which need not be an
    /// event: a signal, a stale registration and libev's own limit of a minute end the sleep too.
    ///
    /// - Parameters:
    ///   - end: When the sleep ends at the latest.
    ///   - hasTimer: Whether the loop's timer is set to it.
    func poll(mayBlock: Bool, until end: LoopInstant = .never, hasTimer: Bool = true) {
        looks += 1
        mainQueue.beginLook()
        let sleeps = mayBlock && !ready.hasReport
        if mustRest, sleeps {
            mustRest = false
            SystemFailure.rest()
        }
        if isWhole, hasTimer || !sleeps {
            _ = look(sleeps: sleeps)
        } else {
            pollBare(until: sleeps ? end : nil)
        }
        ready.collect()
        if mainQueue.way == .byAsking { noteMainQueue(hasWork: MainQueue.hasWork) }
    }

    /// Informs the kernel of changes to watchers. Allowed under the loop's lock: it does not ask for objects
    /// that the mode lacks.
    func applyChanges() {
        looks += 1
        mainQueue.beginLook()
        _ = look(sleeps: false)
        ready.collect()
    }

    /// Asks for the objects that the mode lacks, and looks at its descriptors if it gets them.
    func askForWhatIsLacking() { kernel.equip(self) }

    /// For `pollBare`: whether another thread has asked for attention since the loop has begun to wait.
    var wasAskedForAttention: Bool { kernel.wasAskedForAttention }

    /// For `pollBare`.
    func lookAtOnce() { _ = look(sleeps: false) }

    /// Asks the kernel without a sleep, if the mode has descriptors. Without, there is nothing to find: due
    /// timers are found by the clock, and requests of other threads in `LoopState`.
    func pollWhatIsWatched() {
        if !started.isEmpty || ready.hasReport || !isWhole {
            poll(mayBlock: false)
        } else {
            let mayHaveWork = mainQueueWatcher.pointee.isStarted || mainQueue.way == .byAsking
            noteMainQueue(hasWork: mayHaveWork && MainQueue.hasWork)
        }
    }

    /// From libev's callback.
    func report(_ watcher: WatcherPointer, events: Int32) {
        guard watcher.pointee.source != nil else {
            // For the timerfd there is nothing to do: the pass compares the deadlines with the clock.
            if watcher == wakeUpWatcher { wakeUp?.drain() }
            if watcher == mainQueueWatcher { noteMainQueue(hasWork: true) }
            return
        }
        // A source that waits to be served already is not listed twice.
        guard !watcher.pointee.isListed else { return }
        watcher.pointee.isListed = true
        list(watcher, events: events)
    }

    /// Has the source informed that its descriptor is not watched, and why. Also if it waits to be served
    /// already.
    private func listError(_ watcher: WatcherPointer, _ code: Int32) {
        list(watcher, events: rondo_ev_error | code)
    }

    private func list(_ watcher: WatcherPointer, events: Int32) {
        ready.report(watcher, events: events, era: era)
    }

    /// Kinds of events take turns: the next pass looks first for the one after `kind`, which was served last.
    func noteServed(_ kind: EventKind) { nextKind = kind.next }

    /// An activation has begun or ended, and this mode runs.
    func begin(era: UInt32) { self.era = era }

    /// The next source that is ready, with what it is ready for; nil when the set is exhausted. Its watcher
    /// retains the source, at least until something is called.
    func nextReady() -> (source: Unmanaged<AnyObject>, events: Int32)? { ready.popNext(in: era) }

    // MARK: Watchers

    /// Whether `source` is watched for exactly these events.
    func watches(_ source: AnyObject, events: Int32) -> Bool {
        guard let watcher = watchers[ObjectIdentifier(source)] else { return false }
        return watcher.pointee.isStarted && watcher.pointee.events == events
    }

    func watch(_ source: AnyObject, descriptor: Int32, events: Int32) {
        let key = ObjectIdentifier(source)
        if let watcher = watchers[key] {
            // Set again in any case: the number may stand for another file by now.
            stop(watcher)
            paused.remove(key)
            watcher.set(descriptor, events: events, ioReadiness)
            if events != 0 { start(watcher) }
            return
        }
        guard events != 0 else { return }
        let watcher = table.take()
        watcher.set(descriptor, events: events, ioReadiness)
        // Released by `unwatch`, or by `deinit`.
        watcher.pointee.source = .passRetained(source)
        watchers[key] = watcher
        start(watcher)
    }

    func unwatch(_ source: AnyObject) {
        let key = ObjectIdentifier(source)
        guard let watcher = watchers.removeValue(forKey: key) else { return }
        stop(watcher)
        paused.remove(key)
        let kept = watcher.pointee.source
        table.giveBack(watcher)
        // An entry of the ready set has a pointer to its watcher.
        if watchers.isEmpty, ready.isEmpty, !ready.hasReport { table.shrink(to: Self.ownWatchers) }
        kept?.release()
    }

    /// Stops watching `source` while its callback is on the stack: a nested run must not find it ready, since
    /// it could not serve it (rule SRC-26) and would spin.
    func pause(_ source: AnyObject) {
        guard let watcher = watchers[ObjectIdentifier(source)] else { return }
        stop(watcher)
        paused.insert(ObjectIdentifier(source))
    }

    /// Whether `source` is paused; it is until it is watched again.
    func hasPaused(_ source: AnyObject) -> Bool {
        !paused.isEmpty && paused.contains(ObjectIdentifier(source))
    }

    /// Does not watch `source`, whose descriptor the kernel refuses or must not be asked for, and has the
    /// source informed.
    func refuse(_ source: AnyObject, code: Int32) {
        let key = ObjectIdentifier(source)
        let watcher = watchers[key] ?? table.take()
        if watcher.pointee.source == nil {
            // Released by `unwatch`, or by `deinit`.
            watcher.pointee.source = .passRetained(source)
            watchers[key] = watcher
        }
        stop(watcher)
        paused.remove(key)
        listError(watcher, code)
    }

    private func start(_ watcher: WatcherPointer) {
        guard !watcher.pointee.isStarted else { return }
        watcher.start(in: loop)
        noteStarted(watcher)
    }

    private func noteStarted(_ watcher: WatcherPointer) {
        if let refusal = started.add(watcher) { listError(watcher, refusal.code) }
    }

    /// Stops `watcher`. For other watchers of the same descriptor libev calls the kernel, and aborts the
    /// process if the descriptor is closed by now; in that case they are stopped as well, and reported (rule
    /// SRC-27).
    private func stop(_ watcher: WatcherPointer) {
        guard watcher.pointee.isStarted else { return }
        let descriptor = watcher.pointee.io.fd
        watcher.stop(in: loop)
        started.remove(watcher)
        guard started.contains(descriptor), let code = refusal(of: descriptor) else { return }
        for other in watchers.values where other.pointee.isStarted && other.pointee.io.fd == descriptor {
            stopRefused(other, code: code)
        }
    }

    /// Keeps the descriptors of `mirror` the same as the mode's, from now on; nil ends that.
    func setMirror(_ mirror: DescriptorMirror?) {
        started.mirror = mirror
        guard let mirror else { return }
        for watcher in watchers.values where watcher.pointee.isStarted {
            let refusal = mirror.add(watcher.pointee.io.fd, events: watcher.pointee.events)
            if let refusal { listError(watcher, refusal.code) }
        }
    }

    // MARK: The main dispatch queue

    func oweDrain() { mainQueue.oweDrain() }

    func mainQueueWasDrained() { mainQueue.drained() }

    private func noteMainQueue(hasWork: Bool) { mainQueue.note(hasWork: hasWork) }

    func watchMainQueue(_ way: MainQueueWatch.Way) {
        mainQueue.way = way
        if way == .byDescriptor, !mainQueueWatcher.pointee.isStarted {
            // Without a descriptor no block of the queue waits for this loop yet; the next look asks for it
            // again.
            guard let descriptor = MainQueue.descriptor else { return }
            mainQueueWatcher.set(descriptor, events: Int32(EV_READ), ioReadiness)
            mainQueueWatcher.start(in: loop)
            // This look does not sleep, and finds out if the kernel refuses the descriptor.
            if isWhole { applyChanges() }
        } else if way != .byDescriptor, mainQueueWatcher.pointee.isStarted {
            mainQueueWatcher.stop(in: loop)
            mainQueue.forget()
        }
    }
}
