internal import CRondoEv

/// An event that is ready and that its loop cannot serve now, because the loop runs in another mode or not at
/// all: the program waits for a callback that cannot come.
///
/// A recorder looks for such events now and then; a pass does no work for them.
package struct HeldBackEvent: Sendable {
    package let subject: ObjectIdentifier
    /// The call-out that would be made.
    package let kind: RunLoopEvent.CallOut
    package let label: String?
    /// A mode of the member; none of its modes is running.
    package let mode: RunLoop.Mode
    /// The instant at which the event became ready, on the monotonic clock in nanoseconds; nil if not known.
    /// It is known for timers.
    package let since: Int64?

    /// The most descriptors that one call asks the kernel about; sources beyond that count as idle.
    package static let maximumDescriptors = 256

    /// The events that `loop` would serve if it ran in other modes. Any thread.
    ///
    /// Events of the running mode are never included, even if their callbacks have to wait for another one.
    ///
    /// - Parameter members: Gets the members that were looked at, for the caller to release: that may run
    ///   code of the program.
    package static func all(of loop: RunLoop, keeping members: inout [Any]) -> [HeldBackEvent] {
        let now = loop.nowByItsClock
        let waiting = loop.state.withLock { [loop] state in
            state.collectBlocks(from: loop.intake)
            return OtherModeMembers(
                of: state, now: now, mainQueueWaits: loop.leavesMainQueueWaiting(state))
        }
        members.append(waiting)
        var found = waiting.blocks.map {
            HeldBackEvent(subject: ObjectIdentifier(loop), kind: .block, label: nil, mode: $0, since: nil)
        }
        found += waiting.executors.filter(\.hasWaitingJobs).map {
            HeldBackEvent(
                subject: ObjectIdentifier($0), kind: .block, label: $0.traceLabel, mode: $0.mode, since: nil)
        }
        found += waiting.notifications.map {
            HeldBackEvent(
                subject: ObjectIdentifier(loop), kind: .notification("several"), label: nil, mode: $0,
                since: nil)
        }
        // The locks of members are taken before the loop's, which has been released.
        found += waiting.timers.map { date, mode in
            HeldBackEvent(
                subject: ObjectIdentifier(date.timer), kind: .timer, label: date.timer.label, mode: mode,
                since: date.deadline.nanoseconds)
        }
        found += waiting.signalled.filter { $0.source.isSignalled }.map { source, mode in
            HeldBackEvent(
                subject: ObjectIdentifier(source), kind: .signalledSource, label: source.label, mode: mode,
                since: nil)
        }
        found += readyDescriptors(among: waiting.descriptors, of: loop)
        if waiting.mainQueueWaits, MainQueue.waitsForMainThread {
            found.append(
                HeldBackEvent(
                    subject: ObjectIdentifier(loop), kind: .mainQueue, label: nil, mode: .default, since: nil)
            )
        }
        return found
    }

    private static func readyDescriptors(
        among sources: [(source: RunLoop.Source, mode: RunLoop.Mode)], of loop: RunLoop
    ) -> [HeldBackEvent] {
        let asked = sources.prefix(maximumDescriptors).compactMap { source, mode in
            source.kind.behaviour.descriptor.map {
                (source: source, mode: mode, descriptor: $0, events: source.interest.pollEvents)
            }
        }.filter { $0.events != 0 }
        guard !asked.isEmpty else { return [] }
        var requests = asked.map { pollfd(fd: $0.descriptor, events: $0.events, revents: 0) }
        let isMember = loop.state.withLock { state -> [Bool] in
            // A source is removed before its descriptor is closed, and removal needs this lock: so the
            // descriptor of a member cannot stand for another file while the lock is held.
            let isMember = asked.map { entry in
                state.existingIndex(of: entry.mode).map { state.modes[$0].holds(entry.source) }
                    ?? false
            }
            for index in requests.indices where !isMember[index] { requests[index].fd = -1 }
            _ = poll(&requests, nfds_t(requests.count), 0)
            return isMember
        }
        return zip(asked, zip(requests, isMember)).compactMap { entry, answer in
            guard answer.1, answer.0.revents != 0 else { return nil }
            let found = answer.0.revents & entry.events
            let interest = RunLoop.Source.Interest(pollEvents: found)
            return HeldBackEvent(
                subject: ObjectIdentifier(entry.source),
                kind: .descriptorSource(interest.isEmpty ? entry.source.interest : interest),
                label: entry.source.label, mode: entry.mode, since: nil)
        }
    }
}

extension RunLoop {
    /// Whether this is the main loop and runs in no common mode, so that it does not drain the main queue.
    /// Called under the loop's lock.
    ///
    /// False while another loop may be the one that drains the queue: while Foundation's main loop runs, and
    /// for an embedded loop that was never run.
    func leavesMainQueueWaiting(_ state: borrowing LoopState) -> Bool {
        guard isMain, state.isAlive else { return false }
        if let running = state.activations.last?.mode { return !state.modes[running].isCommon }
        guard state.history.count > 0 || !attention.isEmbedded else { return false }
        return Foundation.RunLoop.main.currentMode == nil
    }
}

/// The members and the work that wait in modes of a loop that do not run, and in no running mode too.
private struct OtherModeMembers {
    private(set) var blocks: [RunLoop.Mode] = []
    /// The executors of actors; their jobs run inside a block.
    private(set) var executors: [RunLoop.ModeExecutor] = []
    /// The modes with notifications to be posted as soon as possible.
    private(set) var notifications: [RunLoop.Mode] = []
    private(set) var timers: [(date: TimerDate<Timer>, mode: RunLoop.Mode)] = []
    private(set) var signalled: [(source: RunLoop.Source, mode: RunLoop.Mode)] = []
    private(set) var descriptors: [(source: RunLoop.Source, mode: RunLoop.Mode)] = []
    private(set) var mainQueueWaits = false

    /// Called under the loop's lock.
    init(of state: borrowing LoopState, now: LoopInstant, mainQueueWaits: Bool) {
        guard state.isAlive else { return }
        let runningIndex = state.activations.last?.mode
        let running = runningIndex.map { state.modes[$0] }
        let isCommon = running?.isCommon ?? false
        let isServed = { (mode: RunLoop.Mode) in mode == running?.name || (mode == .common && isCommon) }
        self.mainQueueWaits = mainQueueWaits
        if !state.commonBlocks.isEmpty, !isCommon { blocks.append(.common) }
        executors = state.executors.values.filter { !isServed($0.mode) }
        if let queued = state.notifications {
            notifications = queued.modes.map { RunLoop.Mode($0) }.filter {
                queued.count(.asap, named: $0.rawValue) > 0 && !isServed($0)
            }
        }
        // Each member is listed once, under the first of its modes.
        var seen = Set(running.map { $0.timers.dueTimers(at: now).map { ObjectIdentifier($0.timer) } } ?? [])
        for (index, mode) in state.modes.enumerated() where index != runningIndex {
            if !mode.blocks.isEmpty { blocks.append(mode.name) }
            let signalledHere = Set(mode.signalled.all)
            for date in mode.timers.dueTimers(at: now)
            where seen.insert(ObjectIdentifier(date.timer)).inserted {
                timers.append((date, mode.name))
            }
            for source in mode.sources
            where !(running?.holds(source) ?? false)
                && seen.insert(ObjectIdentifier(source)).inserted
            {
                if signalledHere.contains(source) { signalled.append((source, mode.name)) }
                if source.kind.behaviour.descriptor != nil { descriptors.append((source, mode.name)) }
            }
        }
    }
}
