package import RondoCore
internal import RondoMutex

internal import struct Synchronization.Atomic

/// The registration of a channel with run loops: its modes, and the sources and timers that are in each of
/// them.
///
/// Run loops know this object and not the channel, which their callbacks reach through the gate of the
/// channel's owner. Any thread may ask for a pass of it, suspend and resume it, and set its label. Modes,
/// sources, timers and the gate are changed by one thread at a time: inside the gate, or, of a channel
/// without one, by its owner. (A source that is made while another thread removes a mode could stay in that
/// mode.)
///
/// A source's interest is changed under the lock of this object, which is taken before the source's own: so
/// it always agrees with the state.
package final class ChannelRegistration: SharedQueueClient {
    private struct WatchedSource {
        let source: RunLoop.Source
        /// The events that the channel wants; nil for a source that watches no socket of the channel, which
        /// is not suspended with the others.
        var interest: RunLoop.Source.Interest?
    }

    /// The sources and timers that are in each of the channel's modes.
    private struct Members {
        /// Nearly every channel has one source and no timer, and needs no array.
        var first: WatchedSource?
        /// While connecting, the sockets of further attempts.
        var others: [WatchedSource] = []
        var timers: [Timer] = []

        func forEachSource(_ body: (WatchedSource) -> Void) {
            if let first { body(first) }
            for entry in others { body(entry) }
        }

        func add(to queue: SharedQueue) {
            forEachSource { queue.loop.add($0.source, forMode: queue.mode) }
            for timer in timers { queue.loop.add(timer, forMode: queue.mode) }
        }

        /// - Parameter modes: The channel's other modes.
        func remove(from loop: RunLoop, _ mode: RunLoop.Mode, keeping modes: [LoopMode] = []) {
            forEachSource { loop.remove($0.source, forMode: mode, keeping: modes) }
            for timer in timers { loop.remove(timer, forMode: mode) }
        }

        /// Makes the kernel watch for what the channel wants, or for nothing.
        ///
        /// - Returns: The loops that the caller must wake up, with no lock held.
        func watch(_ watches: Bool) -> [RunLoop] {
            var loops: [RunLoop] = []
            forEachSource { entry in
                guard let interest = entry.interest else { return }
                loops += entry.source.changeInterest(to: watches ? interest : [])
            }
            return loops
        }

        mutating func insert(_ entry: WatchedSource) {
            if first == nil { first = entry } else { others.append(entry) }
        }

        mutating func setInterest(_ interest: RunLoop.Source.Interest, of source: RunLoop.Source) {
            if first?.source === source {
                first?.interest = interest
            } else if let index = others.firstIndex(where: { $0.source === source }) {
                others[index].interest = interest
            }
        }

        mutating func remove(_ source: RunLoop.Source) {
            if first?.source === source {
                first = others.popLast()
            } else {
                others.removeAll { $0.source === source }
            }
        }
    }

    /// How the callbacks of run loops reach the channel.
    ///
    /// `@unchecked Sendable`: the channel is used inside the gate, or, without one, by the one thread of its
    /// loop.
    private enum Access: @unchecked Sendable {
        /// The channel is retained until its owner ends the access, or the channel is closed.
        /// (`UnservedWatch` says what a weak reference would cost.)
        case gated(by: any ChannelGate, SocketChannel, use: UInt32)
        case ungated(WeakChannel)
    }

    private struct State: ~Copyable {
        /// `isWanted` in it means: a pass was requested and has not come yet. That is remembered while there
        /// is no mode, like the signal of a source.
        var schedule = ClientSchedule()
        /// True while no socket is watched and no callback is let in: the gate has refused an event, or the
        /// owner has suspended the channel.
        var isSuspended = false
        var members = Members()
        /// Nil: no event is let in.
        var access: Access?
        var label: String?
    }

    private let state = Mutex(State())
    /// Counts the beginnings of gated accesses and the ends of all. Changed only with the lock of the state,
    /// and inside the gate whose access begins or ends.
    private let currentUse = Atomic<UInt32>(0)

    // No queue can still refer to this object: a queue retains its waiting clients.
    deinit { state.withLock { $0.schedule.takeAll(of: nil) }.leave() }

    // MARK: - The way to the channel

    /// Lets callbacks of run loops reach `channel` through `gate`, until `endAccess()` or the end of the
    /// channel. Inside the gate.
    package func beginAccess(to channel: SocketChannel, by gate: any ChannelGate) {
        let old = state.withLock { state in
            let old = takeAccess(&state)
            state.access = .gated(by: gate, channel, use: use)
            return old
        }
        withExtendedLifetime(old) {}
    }

    /// Lets callbacks of run loops reach `channel`, if its owner has set no gate.
    func beginAccess(to channel: SocketChannel) {
        state.withLock { if $0.access == nil { $0.access = .ungated(WeakChannel(channel)) } }
    }

    /// Ends the access of the channel's owner, so that no callback gets in, and undoes `suspend()` for the
    /// next owner. Inside the gate.
    package func endAccess() {
        var old: Access?
        resume { old = takeAccess(&$0) }
        withExtendedLifetime(old) {}
    }

    /// - Returns: The access that ends. The caller must release it without the lock, because that may run
    ///   code in a deinit.
    private func takeAccess(_ state: inout State) -> Access? {
        currentUse.wrappingAdd(1, ordering: .relaxed)
        return state.access.take()
    }

    /// Changes whenever a gated access begins, or any access ends, so that a late callback knows that its
    /// access is over. Inside the gate.
    var use: UInt32 { currentUse.load(ordering: .relaxed) }

    /// Lets a callback in, unless the channel is suspended: `resume()` requests a pass in place of it.
    private func enter(_ body: (SocketChannel) -> Void) {
        guard let access = state.withLock({ $0.isSuspended ? nil : $0.access }) else { return }
        enter(by: access, body)
    }

    /// A callback that has begun on a loop's thread may be late: the channel may have another owner by now,
    /// perhaps in other loops. Then nothing is done: the gate of the earlier owner admits it, and inside that
    /// gate the use has ended. No event is lost: a ready descriptor is also reported to the loops that watch
    /// it now.
    private func enter(by access: Access, _ body: (SocketChannel) -> Void) {
        switch access {
        case .gated(let gate, let channel, let accessed):
            gate.admit({ if use == accessed { body(channel) } }, onRefusal: { suspend(ifUseIs: accessed) })
        case .ungated(let reference):
            if let channel = reference.channel { body(channel) }
        }
    }

    /// Requests a pass of the channel in one of its modes: a call of its `servePass()`. Any thread.
    ///
    /// - Parameter first: Whether it comes before the other channels and loads that wait.
    private func requestPass(first: Bool = false) {
        let queues = state.withLock { state in
            state.schedule.isWanted = true
            return state.schedule.startWaiting()
        }
        queues.enqueue(self, first: first)
    }

    package func serve(by queue: SharedQueue) -> Bool {
        let access = state.withLock { state -> Access? in
            guard state.schedule.endWaiting(servedBy: queue, self) else { return nil }
            defer { state.schedule.isWanted = false }
            return state.schedule.isWanted && !state.isSuspended ? state.access : nil
        }
        // Without an access, or suspended, the channel calls no program.
        guard let access else { return false }
        enter(by: access) { $0.servePass() }
        return true
    }

    // MARK: - Modes

    var modes: [LoopMode] { state.withLock { $0.schedule.modes } }

    func contains(_ mode: LoopMode) -> Bool { state.withLock { $0.schedule.contains(mode) } }

    /// The name of the channel's sources in traces.
    package var label: String? {
        get { state.withLock { $0.label } }
        set {
            let members = state.withLock { state -> Members? in
                guard newValue != state.label else { return nil }
                state.label = newValue
                return state.members
            }
            members?.forEachSource { $0.source.label = newValue }
        }
    }

    /// - Parameter queue: Must have been joined for the channel; the registration leaves it.
    func add(_ queue: SharedQueue) {
        let added = state.withLock { state -> (ClientSchedule.Queues, [SharedQueue], Members)? in
            guard !state.schedule.contains(queue) else { return nil }
            let ended = state.schedule.removeEnded(of: self)
            state.schedule.insert(queue)
            return (state.schedule.isWanted ? state.schedule.startWaiting() : .none, ended, state.members)
        }
        guard let (queues, ended, members) = added else { return queue.leave() }
        for queue in ended { queue.leave() }
        queues.enqueue(self)
        members.add(to: queue)
    }

    func remove(_ mode: LoopMode) {
        let (queue, members, modes) = state.withLock { state in
            (state.schedule.remove(mode, of: self), state.members, state.schedule.modes)
        }
        queue?.leave()
        members.remove(from: mode.loop, mode.mode, keeping: modes)
        // A timer is in modes of one loop only (rule TM-13). Where that was the loop of this mode, another
        // one takes the timer. A mode that another name stands for too takes it back.
        for remaining in modes {
            for timer in members.timers where timer.isValid {
                remaining.loop.add(timer, forMode: remaining.mode)
            }
        }
    }

    /// Takes the channel out of all modes, for a caller that may hold a lock.
    ///
    /// - Returns: The queues, which the caller must leave, with no lock held.
    package func removeAll() -> ClientSchedule.RemovedQueues {
        let (left, members) = state.withLock { ($0.schedule.takeAll(of: self), $0.members) }
        left.forEach { members.remove(from: $0.loop, $0.mode) }
        return left
    }

    /// True if a callback of the channel's source is on this thread's stack, in an outer run of the loop: an
    /// inner run would not deliver its events.
    package var isServedInOuterRun: Bool { source.map { RunLoop.isServedInOuterRun($0) } ?? false }

    /// True if a callback of the channel's source is on this thread's stack, in a run of `loop` after which
    /// the open connection may stay registered for the next request; see `RunLoop.mayUnregisterLater(_:)`.
    /// `loop` must be this thread's.
    package func mayStayRegistered(in loop: RunLoop) -> Bool {
        source.map { loop.mayUnregisterLater($0) } ?? false
    }

    /// The only source of a channel that is open.
    private var source: RunLoop.Source? { state.withLock { $0.members.first?.source } }

    /// Takes the channel out of all modes for good, and ends the access to it.
    func end() {
        let (left, old) = state.withLock { state in
            state.schedule.isWanted = false
            return (state.schedule.takeAll(of: self), takeAccess(&state))
        }
        left.leave()
        withExtendedLifetime(old) {}
    }

    // MARK: - Suspending

    /// Stops watching, because the gate has refused an event: a level-triggered descriptor would report it
    /// again at once, over and over.
    ///
    /// - Parameter refused: The access during which the gate refused the event. If it has ended, nothing is
    ///   suspended, because the next owner would never resume. Nil suspends the current access.
    package func suspend(ifUseIs refused: UInt32? = nil) {
        let loops = state.withLock { state -> [RunLoop] in
            if let refused, refused != use { return [] }
            state.isSuspended = true
            return state.members.watch(false)
        }
        for loop in loops { loop.wakeUp() }
    }

    /// Undoes `suspend()`, and requests a pass in place of the events that were refused.
    package func resume() {
        resume { _ in }
    }

    /// - Parameter change: A further change of the state, under the lock.
    private func resume(_ change: (inout State) -> Void) {
        let loops = state.withLock { state -> [RunLoop]? in
            change(&state)
            guard state.isSuspended else { return nil }
            state.isSuspended = false
            return state.members.watch(true)
        }
        guard let loops else { return }
        for loop in loops { loop.wakeUp() }
        requestPass()
    }
}

extension ChannelRegistration: ChannelSources {
    var askForPass: @Sendable () -> Void { { [self] in requestPass() } }

    var askForPassFirst: @Sendable () -> Void { { [self] in requestPass(first: true) } }

    // MARK: - Sources

    func makeSource(_ descriptor: Int32, interest: RunLoop.Source.Interest) -> RunLoop.Source {
        // The callback reaches the channel through this object, and so needs no memory of its own.
        let source = RunLoop.Source(fileDescriptor: descriptor, keepsFile: true, interest: interest) {
            [self] source, ready in
            enter { $0.sourceIsReady(source, ready) }
        }
        add(WatchedSource(source: source, interest: interest))
        return source
    }

    func add(_ source: RunLoop.Source) { add(WatchedSource(source: source)) }

    private func add(_ entry: WatchedSource) {
        let (label, modes) = state.withLock { state in
            state.members.insert(entry)
            // It is in no loop yet, so there is none to wake up.
            if state.isSuspended, entry.interest != nil { _ = entry.source.changeInterest(to: []) }
            return (state.label, state.schedule.modes)
        }
        if let label { entry.source.label = label }
        for mode in modes { mode.loop.add(entry.source, forMode: mode.mode) }
    }

    func setInterest(_ interest: RunLoop.Source.Interest, of source: RunLoop.Source) {
        let loops = state.withLock { state -> [RunLoop] in
            state.members.setInterest(interest, of: source)
            return state.isSuspended ? [] : source.changeInterest(to: interest)
        }
        for loop in loops { loop.wakeUp() }
    }

    func remove(_ source: RunLoop.Source) {
        state.withLock { $0.members.remove(source) }
        source.invalidate()
    }

    // MARK: - Timers

    func startTimers(after seconds: Double) -> [Timer] {
        let modes = modes
        let started = Set(modes.map(\.loop)).map { loop in
            let timer = makeTimer(after: seconds)
            for mode in modes where mode.loop == loop { loop.add(timer, forMode: mode.mode) }
            return timer
        }
        state.withLock { $0.members.timers += started }
        return started
    }

    private func makeTimer(after seconds: Double) -> Timer {
        Timer(timeInterval: max(0, seconds), repeats: false) { [self] timer in
            // The channel recognizes a fired timer by this, even in a later pass if the gate refuses this
            // one.
            timer.invalidate()
            enter { $0.servePass() }
        }
    }

    func stop(_ stopped: [Timer]) {
        guard !stopped.isEmpty else { return }
        for timer in stopped { timer.invalidate() }
        state.withLock { $0.members.timers.removeAll { timer in stopped.contains { $0 === timer } } }
    }
}
