internal import CEv

/// One mode of a run loop as libev knows it: owns the `ev_loop`, and is the only caller of `ev_run`.
///
/// It is a projection of what `LoopState` says the mode holds, brought up to date before each look at the
/// kernel. Loop's thread only.
///
/// `@exclusivity(unchecked)`, here and wherever else passes go by: one thread touches these, and no access lasts
/// while something else is called. The check would take a sixth of an empty pass.
///
/// What the kernel refuses a mode (an epoll set, a place for the loop's own descriptors in it) ends no loop: such a mode
/// looks without it (`ModeLoop+Bare`), and asks for it again at each look.
final class ModeLoop {
    /// Owns this object.
    private unowned let kernel: LoopKernel
    /// Nil: the kernel has had no epoll set for it so far.
    private(set) var loop: OpaquePointer?
    private(set) var wakeUp: WakeUp?
    private var table: WatcherTable
    // The loop's own descriptors, which take the table's first places: what ends a sleep, what ends it at a moment, and
    // what the main dispatch queue has.
    private static let ownWatchers = 3
    let wakeUpWatcher: WatcherPointer
    let timerWatcher: WatcherPointer
    let mainQueueWatcher: WatcherPointer
    /// Of the sources that stand in the table.
    private(set) var watchers: [ObjectIdentifier: WatcherPointer] = [:]
    /// Watchers of sources that are started, by descriptor, and all of them.
    private var startedCounts: [UInt16] = []
    private var startedCount = 0
    private var paused: Set<ObjectIdentifier> = []
    /// The same descriptors in an epoll set of our own, while the mode is embedded in a foreign loop.
    private var mirror: DescriptorMirror?
    /// The number of libev's epoll set, as `OwnDescriptors` knows it.
    private(set) var setDescriptor: Int32 = -1
    /// What libev has stopped in this look, since the kernel has refused it.
    // To check exclusivity of this and of `mustRest` takes 67 of a descriptor event's 2,116 instructions (the guard's
    // descriptor.event).
    @exclusivity(unchecked) private var refused: [(watcher: WatcherPointer, code: Int32)] = []
    /// The kernel has everything that the mode needs of it.
    private(set) var isWhole = false
    /// Called before libev makes its epoll set anew, and in that look only started, so that it does not sleep.
    let remaking = UnsafeMutablePointer<ev_fork>.allocate(capacity: 1)
    let sleepless = UnsafeMutablePointer<ev_idle>.allocate(capacity: 1)
    private var wasRemade = false
    /// The last look has failed: the next one that sleeps rests for a moment first.
    @exclusivity(unchecked) private var mustRest = false
    private(set) var watchesMainQueue = false

    /// What the kernel found ready and nobody has served yet.
    @exclusivity(unchecked) var ready = ReadySet()
    /// Whose turn it is among the kinds of step (j).
    var nextKind = EventKind.timers
    /// The main dispatch queue has work; only ever true in the main loop's common modes.
    var mainQueueIsReady = false
    /// How often libev has been asked.
    private(set) var looks = 0
    /// Changes with every activation that begins or ends: readiness found before is looked at again.
    var era: UInt32 = 0

    init(of kernel: LoopKernel) {
        self.kernel = kernel
        var table = WatcherTable()
        (wakeUpWatcher, timerWatcher, mainQueueWatcher) = (table.take(), table.take(), table.take())
        self.table = table
        rondo_ev_fork_init(remaking) { loop, _, _ in
            guard let userdata = ev_userdata(loop) else { return }
            // As in `ioReadiness`.
            Unmanaged<ModeLoop>.fromOpaque(userdata)._withUnsafeGuaranteedRef { $0.willBeRemade() }
        }
        rondo_ev_idle_init(sleepless)
    }

    deinit {
        table.forEach { $0.stop(in: loop) }
        giveUpLoop(closing: true)
        remaking.deallocate()
        sleepless.deallocate()
        for watcher in watchers.values { watcher.pointee.source?.release() }
    }

    // MARK: What the kernel gives

    /// Asks the kernel for what the mode lacks.
    ///
    /// - Throws: The errno of what is not to be had: descriptors have run out, or places in epoll sets.
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
        SystemFailure.beginThread()
        var code: Int32 = 0
        var made: OpaquePointer?
        OwnDescriptors.add {
            errno = 0
            made = rondo_ev_loop_new()
            code = errno
            guard let made else { return nil }
            setDescriptor = rondo_ev_epoll_descriptor(made)
            return setDescriptor
        }
        guard let made else { throw SystemError("epoll_create1", code: code == 0 ? EMFILE : code) }
        loop = made
        // Unretained: this object owns the loop and destroys it in `deinit`.
        ev_set_userdata(made, Unmanaged.passUnretained(self).toOpaque())
        ev_fork_start(made, remaking)
        for watcher in watchers.values where watcher.pointee.isStarted {
            if let code = refusal(of: watcher.pointee.io.fd) {
                stopRefused(watcher, code: code)
            } else {
                watcher.register(with: made)
            }
        }
        if mainQueueWatcher.pointee.isStarted { mainQueueWatcher.register(with: made) }
    }

    /// - Parameter closing: Not where the number of its epoll set may stand for a file of the program by now: then some
    ///   memory is lost instead.
    private func giveUpLoop(closing: Bool) {
        isWhole = false
        guard let loop else { return }
        ev_fork_stop(loop, remaking)
        ev_idle_stop(loop, sleepless)
        self.loop = nil
        OwnDescriptors.remove(setDescriptor)
        setDescriptor = -1
        if closing { ev_loop_destroy(loop) }
    }

    /// The errno with which the kernel would refuse `descriptor`, in ways that libev, as Debian builds it, aborts the
    /// process for; nil: there is none. A number that belongs to a run loop itself was closed, or it could not have got it.
    func refusal(of descriptor: Int32) -> Int32? {
        let kind = rondo_descriptor_kind(descriptor)
        if kind == 0 { return nil }
        if kind < 0 { return errno }
        if OwnDescriptors.contains(descriptor) { return EBADF }
        // An epoll set may be nested too deeply.
        guard setDescriptor >= 0 else { return nil }
        let code = rondo_epoll_refusal(setDescriptor, descriptor)
        return [EBADF, EINVAL, ELOOP].contains(code) ? code : nil
    }

    // MARK: In libev's callbacks

    /// From libev's callback: it has stopped the watcher.
    func noteRefusal(of watcher: WatcherPointer, code: Int32) { refused.append((watcher, code)) }

    /// libev has met a number that stands for another file than it thought, and will hand all its descriptors to a new
    /// epoll set. It aborts the process if one of them is closed.
    private func willBeRemade() {
        guard let loop else { return }
        wasRemade = true
        ev_idle_start(loop, sleepless)
        for watcher in watchers.values where watcher.pointee.isStarted {
            if let code = refusal(of: watcher.pointee.io.fd) { stopRefused(watcher, code: code) }
        }
        for watcher in [wakeUpWatcher, timerWatcher, mainQueueWatcher]
        where watcher.pointee.isStarted && rondo_descriptor_kind(watcher.pointee.io.fd) < 0 {
            watcher.stop(in: loop)
            isWhole = false
        }
    }

    /// Takes out of libev what it must not hand to the kernel, and has its source told.
    func stopRefused(_ watcher: WatcherPointer, code: Int32) {
        watcher.stop(in: loop)
        noteStopped(watcher)
        listError(watcher, code)
    }

    /// One look of libev's.
    ///
    /// - Returns: Why the kernel has refused one of the loop's own descriptors; nil: it has not.
    private func look(sleeps: Bool) -> Int32? {
        guard let loop else { return nil }
        rondo_ev_poll(loop, sleeps ? 1 : 0)
        if refused.isEmpty, !wasRemade, !SystemFailure.hasOccurred { return nil }
        return afterFailures(loop)
    }

    /// What was refused is asked for once more, by itself: then the errno is its own, and one that has passed does no
    /// harm.
    private func afterFailures(_ loop: OpaquePointer) -> Int32? {
        if wasRemade {
            wasRemade = false
            ev_idle_stop(loop, sleepless)
            let number = rondo_ev_epoll_descriptor(loop)
            if number != setDescriptor {
                OwnDescriptors.remove(setDescriptor)
                setDescriptor = number
                OwnDescriptors.add { number }
            }
        }
        var own: Int32?
        while let (watcher, code) = refused.popLast() {
            guard watcher.pointee.isStarted else { continue }
            watcher.stop(in: loop)
            if watcher.pointee.source != nil { noteStopped(watcher) }
            if let again = codeOfStarting(watcher, in: loop) {
                if watcher.pointee.source == nil {
                    own = again == 0 ? code : again
                } else {
                    listError(watcher, again == 0 ? code : again)
                }
            } else if watcher.pointee.source != nil {
                noteStarted(watcher)
            }
        }
        if own != nil { isWhole = false }
        if let code = SystemFailure.take() { lookHasFailed(code) }
        return own
    }

    /// - Returns: The errno with which the kernel refuses it alone; nil: it does not.
    private func codeOfStarting(_ watcher: WatcherPointer, in loop: OpaquePointer) -> Int32? {
        if let code = refusal(of: watcher.pointee.io.fd), watcher.pointee.source != nil { return code }
        let others = refused
        refused = []
        watcher.startAnew(watcher.pointee.io.fd, events: watcher.pointee.events, in: loop, ioReadiness)
        errno = 0
        rondo_ev_poll(loop, 0)
        defer { refused = others + refused.filter { $0.watcher != watcher } }
        guard let code = refused.first(where: { $0.watcher == watcher })?.code else { return nil }
        watcher.stop(in: loop)
        return code
    }

    /// `epoll_wait` has failed, which takes that the program has closed libev's epoll set by its number.
    private func lookHasFailed(_ code: Int32) {
        guard let wakeUp, setDescriptor >= 0,
            rondo_epoll_watches(setDescriptor, wakeUp.eventDescriptor) == 0
        else {
            // It is there: not at full speed, should that go on.
            mustRest = true
            return
        }
        guard let loop else { return }
        table.forEach { if $0.pointee.isStarted { $0.unregister(from: loop) } }
        for watcher in [wakeUpWatcher, timerWatcher] { watcher.stop(in: nil) }
        giveUpLoop(closing: false)
    }

    // MARK: The look at the kernel

    /// Asks the kernel once. With `mayBlock` it sleeps until something is reported, which need not mean
    /// anything real: a signal, a stale registration and libev's own minute end the sleep too.
    ///
    /// - Parameters:
    ///   - end: When a sleep ends that nothing ends before.
    ///   - hasTimer: Whether the loop's timer is set to it.
    func poll(mayBlock: Bool, until end: LoopInstant = .never, hasTimer: Bool = true) {
        looks += 1
        mainQueueIsReady = false
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
    }

    /// Has the kernel know what has changed about watchers. Under the loop's lock too: nothing is asked for that is
    /// lacking.
    func applyChanges() {
        looks += 1
        mainQueueIsReady = false
        _ = look(sleeps: false)
        ready.collect()
    }

    /// Asks for what the mode lacks. It looks at its descriptors on the way, if it gets it.
    func askForWhatIsLacking() { kernel.equip(self) }

    /// Of `pollBare`.
    func lookAtOnce() { _ = look(sleeps: false) }

    /// Asks the kernel without a sleep, if that may find something. In a mode without descriptors it cannot: of timers the
    /// clock tells, and of what other threads want `LoopState`.
    func pollWhatIsWatched() {
        if startedCount > 0 || ready.hasReport || !isWhole {
            poll(mayBlock: false)
        } else {
            mainQueueIsReady = mainQueueWatcher.pointee.isStarted && MainQueue.hasWork
        }
    }

    /// From libev's callback.
    func report(_ watcher: WatcherPointer, events: Int32) {
        guard watcher.pointee.source != nil else {
            // Of the timer there is nothing to note: whoever looked will compare the deadlines with the clock.
            if watcher == wakeUpWatcher { wakeUp?.drain() }
            if watcher == mainQueueWatcher { mainQueueIsReady = true }
            return
        }
        // What waits to be served already is not listed twice.
        guard !watcher.pointee.isListed else { return }
        watcher.pointee.isListed = true
        list(watcher, events: events)
    }

    /// Has the source told that its descriptor is not watched, and why. Also if it waits to be served already.
    private func listError(_ watcher: WatcherPointer, _ code: Int32) {
        list(watcher, events: rondo_ev_error | code)
    }

    private func list(_ watcher: WatcherPointer, events: Int32) {
        ready.report(watcher, events: events, era: era)
    }

    /// The next source that is ready, with what it is ready for; nil when the set is exhausted. Its watcher retains the
    /// source, at least until something is called.
    func nextReady() -> (source: Unmanaged<AnyObject>, events: Int32)? { ready.popNext(in: era) }

    // MARK: Watchers

    /// Whether `source` is watched for just these events.
    func watches(_ source: AnyObject, events: Int32) -> Bool {
        guard let watcher = watchers[ObjectIdentifier(source)] else { return false }
        return watcher.pointee.isStarted && watcher.pointee.events == events
    }

    func watch(_ source: AnyObject, descriptor: Int32, events: Int32) {
        let key = ObjectIdentifier(source)
        if let watcher = watchers[key] {
            // Set anew in any case: the number may stand for another file than it did.
            stop(watcher)
            paused.remove(key)
            watcher.set(descriptor, events: events, ioReadiness)
            if events != 0 { start(watcher) }
            return
        }
        guard events != 0 else { return }
        let watcher = table.take()
        watcher.set(descriptor, events: events, ioReadiness)
        // Until `unwatch`, or the end of this object.
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
        // What is listed knows its place.
        if watchers.isEmpty, ready.isEmpty, !ready.hasReport { table.shrink(to: Self.ownWatchers) }
        kept?.release()
    }

    /// While a callback of `source` is on the stack, a nested run must not find it ready: it could not serve
    /// it (rule SRC-26) and would spin.
    func pause(_ source: AnyObject) {
        guard let watcher = watchers[ObjectIdentifier(source)] else { return }
        stop(watcher)
        paused.insert(ObjectIdentifier(source))
    }

    /// Whether `source` is paused; it is until it is watched again.
    func hasPaused(_ source: AnyObject) -> Bool {
        !paused.isEmpty && paused.contains(ObjectIdentifier(source))
    }

    /// The kernel will not have the descriptor of `source`, or must not be asked: it is told so in its turn.
    func refuse(_ source: AnyObject, code: Int32) {
        let key = ObjectIdentifier(source)
        let watcher = watchers[key] ?? table.take()
        if watcher.pointee.source == nil {
            // Until `unwatch`, or the end of this object.
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
        let descriptor = Int(watcher.pointee.io.fd)
        while startedCounts.count <= descriptor { startedCounts.append(0) }
        startedCounts[descriptor] += 1
        startedCount += 1
        let refusal = mirror?.add(watcher.pointee.io.fd, events: watcher.pointee.events)
        if let refusal { listError(watcher, refusal.code) }
    }

    private func noteStopped(_ watcher: WatcherPointer) {
        let descriptor = watcher.pointee.io.fd
        mirror?.remove(descriptor, events: watcher.pointee.events)
        startedCounts[Int(descriptor)] -= 1
        startedCount -= 1
    }

    /// Stops `watcher`. libev will tell the kernel what others want of its descriptor, and aborts the process
    /// if that is closed by now; so they are stopped as well then, and reported (rule SRC-27).
    private func stop(_ watcher: WatcherPointer) {
        guard watcher.pointee.isStarted else { return }
        let descriptor = watcher.pointee.io.fd
        watcher.stop(in: loop)
        noteStopped(watcher)
        guard startedCounts[Int(descriptor)] > 0, let code = refusal(of: descriptor) else { return }
        for other in watchers.values where other.pointee.isStarted && other.pointee.io.fd == descriptor {
            stopRefused(other, code: code)
        }
    }

    /// Keeps `mirror` equal to what is watched here, from now on; nil ends it.
    func setMirror(_ mirror: DescriptorMirror?) {
        self.mirror = mirror
        guard let mirror else { return }
        for watcher in watchers.values where watcher.pointee.isStarted {
            let refusal = mirror.add(watcher.pointee.io.fd, events: watcher.pointee.events)
            if let refusal { listError(watcher, refusal.code) }
        }
    }

    func mainQueueWasDrained() {
        mainQueueIsReady = false
    }

    /// Whether the main dispatch queue's descriptor is watched in this mode.
    func setWatchesMainQueue(_ watches: Bool) {
        watchesMainQueue = watches
        if watches, !mainQueueWatcher.pointee.isStarted {
            // Where there is none, no block of the queue waits for this loop yet; it is asked for again at the next look.
            guard let descriptor = MainQueue.descriptor else { return }
            mainQueueWatcher.set(descriptor, events: Int32(EV_READ), ioReadiness)
            mainQueueWatcher.start(in: loop)
            // A refusal shows in a look that does not sleep.
            if isWhole { applyChanges() }
        } else if !watches, mainQueueWatcher.pointee.isStarted {
            mainQueueWatcher.stop(in: loop)
            mainQueueIsReady = false
        }
    }
}

/// libev's callback for every descriptor: notes what is ready and returns. User code is called by the pass.
///
/// `ev_userdata` is the `ModeLoop`, unretained: it owns the `ev_loop` and outlives it.
private func ioReadiness(loop: OpaquePointer, io: UnsafeMutablePointer<ev_io>, events: Int32) {
    // The kernel has refused a descriptor; what libev has done since has left the reason.
    let code = events & rondo_ev_error == 0 ? 0 : errno
    guard let userdata = ev_userdata(loop) else { return }
    Unmanaged<ModeLoop>.fromOpaque(userdata)._withUnsafeGuaranteedRef {
        if events & rondo_ev_error == 0 {
            $0.report(WatcherPointer(io), events: events)
        } else {
            $0.noteRefusal(of: WatcherPointer(io), code: code)
        }
    }
}
