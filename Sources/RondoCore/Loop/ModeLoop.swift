internal import CRondoEv

/// The libev side of one mode of a run loop: owns the `ev_loop`, and is the only caller of `ev_run`.
///
/// It is a projection of the mode's members in `LoopState`, updated before each look at the kernel. Loop's
/// thread only.
///
/// If the kernel refuses the mode an epoll set, or to add the loop's own descriptors to it, the loop goes on:
/// the mode looks at its descriptors by `poll(2)` (`ModeLoop+WithoutEpoll`), and asks the kernel again at
/// each look.
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
    // Unchecked, like `refused` and `ready`: only one thread has access, and no access lasts while something
    // else is called. With the check bench-guard's pass.other-mode takes 7 % more instructions.
    @exclusivity(unchecked) private var started = StartedWatchers()
    private var paused: Set<ObjectIdentifier> = []
    private var interrupted: [AnyObject] = []
    /// Whether `interrupted` has elements. Each pass asks twice; asking the array itself takes 8 %
    /// more instructions in bench-guard's pass.other-mode.
    private(set) var hasInterrupted = false
    /// A watcher that is started only to see whether the kernel refuses it; it is not among `started`.
    private var tried: WatcherPointer?
    /// The watchers that libev has stopped in this look because the kernel refused their descriptors.
    // Unchecked: see `started`. With the check bench-guard's descriptor.event takes 4 % more instructions.
    @exclusivity(unchecked) private var refused: [(watcher: WatcherPointer, code: Int32)] = []
    /// Whether the mode has all its kernel objects.
    private(set) var hasKernelObjects = false
    /// The last look has failed: before the next look that sleeps, the thread rests for a moment.
    private var mustRest = false
    private(set) var mainQueue = MainQueueWatch()

    /// The sources that the kernel found ready and that no pass has served yet.
    // Unchecked: see `started`. With the check bench-guard's descriptor.event takes 34 % more instructions.
    @exclusivity(unchecked) private(set) var ready = ReadySet()
    /// The kind of event that the next pass looks for first in step (j).
    private(set) var nextKind = EventKind.timers
    /// The number of looks at the kernel so far.
    private(set) var looks = 0
    /// Changes whenever an activation begins or ends: readiness found in an earlier era is checked again.
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
    /// - Throws: The kernel's refusal: descriptors or `fs.epoll.max_user_watches` are used up.
    func acquireKernelObjects(with wakeUp: WakeUp) throws(SystemError) {
        guard !hasKernelObjects else { return }
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
        // In this look libev hands the two descriptors to the kernel.
        if let code = look(sleeps: false) { throw SystemError("epoll_ctl", code: code) }
        hasKernelObjects = hasOwnWatchers
    }

    private var hasOwnWatchers: Bool { wakeUpWatcher.pointee.isStarted && timerWatcher.pointee.isStarted }

    private func makeLoop() throws(SystemError) {
        // `Unmanaged` to pass through C, unretained: this object owns the `ev_loop`, which is destroyed in
        // `deinit`.
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

    /// From libev's callback: records a watcher that libev has stopped because the kernel refused its
    /// descriptor.
    func noteRefusal(of watcher: WatcherPointer, code: Int32) { refused.append((watcher, code)) }

    /// From libev's callback: a descriptor number stands for another file than libev assumed, and libev will
    /// add all descriptors to a new epoll set. It would abort the process if one of them is closed, which
    /// another thread may do at any moment, since no lock is held here. So libev keeps only the loop's own
    /// descriptors, and those of sources are watched again under the lock.
    func willBeRemade() {
        libev.beginRemaking()
        for watcher in watchers.values where watcher.pointee.isStarted { interrupt(watcher) }
        for watcher in [wakeUpWatcher, timerWatcher, mainQueueWatcher]
        where watcher.pointee.isStarted && rondo_descriptor_kind(watcher.pointee.io.fd) < 0 {
            watcher.stop(in: loop)
            hasKernelObjects = false
        }
    }

    /// Stops a watcher whose source has to be watched again: see `takeInterrupted()`.
    private func interrupt(_ watcher: WatcherPointer) {
        watcher.stop(in: loop)
        if watcher != tried { started.remove(watcher) }
        guard let source = watcher.pointee.source else { return }
        interrupted.append(source.takeUnretainedValue())
        hasInterrupted = true
    }

    /// Takes the sources that are no longer watched because libev has made a new epoll set, or its first one.
    /// They have to be watched again like newly added ones: by `WatcherUpdate`, under the lock that every
    /// removal needs.
    func takeInterrupted() -> [AnyObject] {
        defer { (interrupted, hasInterrupted) = ([], false) }
        return interrupted
    }

    /// Stops a watcher whose descriptor libev must not hand to the kernel, and reports that to its source.
    func stopRefused(_ watcher: WatcherPointer, code: Int32) {
        watcher.stop(in: loop)
        started.remove(watcher)
        listError(watcher, code)
    }

    /// Looks at the kernel once, through libev.
    ///
    /// - Returns: The errno with which the kernel has refused one of the loop's own descriptors; nil if it
    ///   refused none.
    private func look(sleeps: Bool) -> Int32? {
        guard let loop else { return nil }
        rondo_ev_poll(loop, sleeps ? 1 : 0)
        if refused.isEmpty, !libev.wasRemade, !SystemFailure.hasOccurred { return nil }
        return afterFailures(loop)
    }

    /// Starts each refused watcher once more, alone, so that the errno is certainly its own, and a refusal
    /// that no longer holds does no harm.
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
                // If it is not started, libev has made a new epoll set meanwhile, and the source will be
                // watched again.
                noteStarted(watcher)
            }
        }
        if own != nil { hasKernelObjects = false }
        if SystemFailure.take() != nil { lookHasFailed() }
        return own
    }

    /// - Returns: The errno with which the kernel refuses the watcher alone; nil if it accepts it.
    private func codeOfStarting(_ watcher: WatcherPointer, in loop: OpaquePointer) -> Int32? {
        if let code = refusal(of: watcher.pointee.io.fd), watcher.pointee.source != nil { return code }
        let others = refused
        refused = []
        // When the kernel refuses something, also a change of events, libev still records it as done; and if
        // libev finds the descriptor in the set, it trusts that record. So the descriptor is removed first.
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

    /// Called when `epoll_wait` has failed: the program may have closed libev's epoll set by its number.
    private func lookHasFailed() {
        let isWatched = wakeUpWatcher.pointee.isStarted
        guard let wakeUp, setDescriptor >= 0,
            !libev.setIsOpen(watched: wakeUp.eventDescriptor, isWatched: isWatched)
        else {
            // The set is still open: rest before the next sleep, so that a repeated failure does not use up
            // the processor.
            mustRest = true
            return
        }
        guard let loop else { return }
        table.forEach { if $0.pointee.isStarted { $0.unregister(from: loop) } }
        for watcher in [wakeUpWatcher, timerWatcher] { watcher.stop(in: nil) }
        hasKernelObjects = false
        libev.giveUp(closing: false)
    }

    // MARK: The look at the kernel

    /// Looks at the kernel once. With `mayBlock` it sleeps until something is reported, which need not be an
    /// event: a signal, a stale registration and libev's own limit of a minute also end the sleep.
    ///
    /// - Parameters:
    ///   - end: The instant at which the sleep ends at the latest.
    ///   - hasTimer: Whether the loop's timer is set to `end`.
    func poll(mayBlock: Bool, until end: LoopInstant = .never, hasTimer: Bool = true) {
        looks += 1
        mainQueue.beginLook()
        let sleeps = mayBlock && !ready.hasReport
        if mustRest, sleeps {
            mustRest = false
            SystemFailure.rest()
        }
        if hasKernelObjects, hasTimer || !sleeps {
            _ = look(sleeps: sleeps)
        } else {
            pollWithoutEpoll(until: sleeps ? end : nil)
        }
        ready.collect()
        if mainQueue.method == .byAsking { noteMainQueue(hasWork: MainQueue.hasWork) }
    }

    /// Informs the kernel of changes to watchers. May be called under the loop's lock, since it does not ask
    /// for objects that the mode lacks.
    func applyChanges() {
        looks += 1
        mainQueue.beginLook()
        _ = look(sleeps: false)
        ready.collect()
    }

    /// Asks the kernel for the objects that the mode lacks, and looks at the descriptors if it gets them.
    func askKernelForObjects() { kernel.acquireKernelObjects(for: self) }

    /// For `pollWithoutEpoll`: whether another thread has asked for attention since the loop has begun to
    /// wait.
    var wasAskedForAttention: Bool { kernel.wasAskedForAttention }

    /// For `pollWithoutEpoll`.
    func lookAtOnce() { _ = look(sleeps: false) }

    /// Looks at the kernel without sleeping, if the mode has descriptors. Without descriptors a look would
    /// find nothing: due timers are found by the clock, and requests of other threads in `LoopState`.
    func pollWatched() {
        if !started.isEmpty || ready.hasReport || !hasKernelObjects {
            poll(mayBlock: false)
        } else {
            askMainQueue()
        }
    }

    /// Asks the main queue itself whether it has work, if the mode drains it.
    func askMainQueue() {
        let mayHaveWork = mainQueueWatcher.pointee.isStarted || mainQueue.method == .byAsking
        noteMainQueue(hasWork: mayHaveWork && MainQueue.hasWork)
    }

    /// From libev's callback: records that the descriptor of `watcher` is ready.
    func report(_ watcher: WatcherPointer, events: Int32) {
        guard watcher.pointee.source != nil else {
            // The timerfd needs no action here: the pass compares the deadlines with the clock.
            if watcher == wakeUpWatcher { wakeUp?.drain() }
            if watcher == mainQueueWatcher { noteMainQueue(hasWork: true) }
            return
        }
        // A source that already waits to be served is not listed twice.
        guard !watcher.pointee.isListed else { return }
        watcher.pointee.isListed = true
        list(watcher, events: events)
    }

    /// Reports to the source that its descriptor is not watched, and why; also if the source already waits to
    /// be served.
    private func listError(_ watcher: WatcherPointer, _ code: Int32) {
        list(watcher, events: rondo_ev_error | code)
    }

    private func list(_ watcher: WatcherPointer, events: Int32) {
        ready.report(watcher, events: events, era: era)
    }

    /// Notes the kind that was served last: the next pass looks first for the kind after it.
    func noteServed(_ kind: EventKind) { nextKind = kind.next }

    /// Called when an activation has begun or ended, and this mode now runs.
    func begin(era: UInt32) { self.era = era }

    /// The next ready source, with the events it is ready for; nil when the set is exhausted. Its watcher
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
            // Set again in any case: the number may now stand for another file.
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
        // Entries of the ready set point to their watchers, so the table shrinks only if there are none.
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

    /// Whether `source` is paused. It stays paused until it is watched again.
    func hasPaused(_ source: AnyObject) -> Bool {
        !paused.isEmpty && paused.contains(ObjectIdentifier(source))
    }

    /// Reports to `source` that its descriptor is not watched: the kernel refuses the descriptor, or must not
    /// be asked.
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

    /// Stops `watcher`. If other watchers have the same descriptor, libev calls the kernel for them, and
    /// aborts the process if the descriptor is already closed; in that case these watchers are stopped too,
    /// and reported (rule SRC-27).
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

    /// Keeps the descriptors of `mirror` equal to the mode's from now on; nil ends that.
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

    func watchMainQueue(by method: MainQueueWatch.Method) {
        mainQueue.method = method
        if method == .byDescriptor, !mainQueueWatcher.pointee.isStarted {
            // Without a descriptor no block of the queue waits for this loop yet; the next look asks for the
            // descriptor again.
            guard let descriptor = MainQueue.descriptor else { return }
            mainQueueWatcher.set(descriptor, events: Int32(EV_READ), ioReadiness)
            mainQueueWatcher.start(in: loop)
            // This look does not sleep; it finds out whether the kernel refuses the descriptor.
            if hasKernelObjects { applyChanges() }
        } else if method != .byDescriptor, mainQueueWatcher.pointee.isStarted {
            mainQueueWatcher.stop(in: loop)
            mainQueue.forget()
        }
    }
}
