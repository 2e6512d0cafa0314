internal import CRondoEv

/// An event that is ready and that its loop cannot serve just now, because it runs in another mode or not at all: a
/// program waits for a callback that cannot come.
///
/// A recorder asks for them now and then; the pass knows nothing of it.
package struct HeldBack: Sendable {
    package let subject: ObjectIdentifier
    /// The call-out that would be made.
    package let kind: RunLoopEvent.CallOut
    package let label: String?
    /// A mode that it is in; none of its modes runs.
    package let mode: RunLoop.Mode
    /// Since when, on the monotonic clock in nanoseconds, where that is known: of timers it is.
    package let since: Int64?

    /// How many descriptors one call asks the kernel about; sources beyond that count as idle.
    package static let maximumDescriptors = 256

    /// The events that `loop` would serve if it ran in other modes. Any thread.
    ///
    /// Events of the running mode are never among them, though their callbacks may have to wait for another
    /// one.
    package static func all(of loop: RunLoop) -> [HeldBack] {
        let now = LoopClock.now
        let waiting = loop.state.withLock { [loop] state in
            state.collectBlocks(from: loop.intake)
            return state.waitingElsewhere(now: now, isMain: loop.isMain)
        }
        var found = waiting.blocks.map {
            HeldBack(subject: ObjectIdentifier(loop), kind: .block, label: nil, mode: $0, since: nil)
        }
        found += waiting.executors.filter(\.hasWaitingJobs).map {
            HeldBack(
                subject: ObjectIdentifier($0), kind: .block, label: $0.traceLabel, mode: $0.mode, since: nil)
        }
        found += waiting.notifications.map {
            HeldBack(
                subject: ObjectIdentifier(loop), kind: .notification("several"), label: nil, mode: $0,
                since: nil)
        }
        // The locks of members come before that of the loop, which is free again.
        found += waiting.timers.map { date, mode in
            HeldBack(
                subject: ObjectIdentifier(date.timer), kind: .timer, label: date.timer.label, mode: mode,
                since: date.deadline.nanoseconds)
        }
        found += waiting.signalled.filter { $0.source.isSignalled }.map { source, mode in
            HeldBack(
                subject: ObjectIdentifier(source), kind: .signalledSource, label: source.label, mode: mode,
                since: nil)
        }
        found += readyDescriptors(among: waiting.descriptors, of: loop)
        if waiting.mainQueueWaits, let descriptor = MainQueue.descriptor, hasInput(descriptor) {
            found.append(
                HeldBack(
                    subject: ObjectIdentifier(loop), kind: .mainQueue, label: nil, mode: .default, since: nil)
            )
        }
        return found
    }

    private static func readyDescriptors(
        among sources: [(source: RunLoop.Source, mode: RunLoop.Mode)], of loop: RunLoop
    ) -> [HeldBack] {
        let asked = sources.prefix(maximumDescriptors).compactMap { source, mode in
            source.kind.behaviour.descriptor.map {
                (source: source, mode: mode, descriptor: $0, events: source.interest.pollEvents)
            }
        }.filter { $0.events != 0 }
        guard !asked.isEmpty else { return [] }
        var requests = asked.map { pollfd(fd: $0.descriptor, events: $0.events, revents: 0) }
        let isMember = loop.state.withLock { state -> [Bool] in
            // Before a descriptor is closed its source is removed, which needs this lock: so no descriptor of
            // a member can stand for another file by now.
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
            return HeldBack(
                subject: ObjectIdentifier(entry.source),
                kind: .descriptorSource(interest.isEmpty ? entry.source.interest : interest),
                label: entry.source.label, mode: entry.mode, since: nil)
        }
    }

    private static func hasInput(_ descriptor: Int32) -> Bool {
        var request = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        return poll(&request, 1, 0) > 0
    }
}

extension LoopState {
    /// Members of modes that do not run, and of none that does.
    fileprivate struct WaitingElsewhere {
        var blocks: [RunLoop.Mode] = []
        /// Those of actors, whose jobs run inside a block.
        var executors: [RunLoop.ModeExecutor] = []
        /// The modes of notifications that are to be posted as soon as possible.
        var notifications: [RunLoop.Mode] = []
        var timers: [(date: TimerDate<Timer>, mode: RunLoop.Mode)] = []
        var signalled: [(source: RunLoop.Source, mode: RunLoop.Mode)] = []
        var descriptors: [(source: RunLoop.Source, mode: RunLoop.Mode)] = []
        var mainQueueWaits = false
    }

    fileprivate func waitingElsewhere(now: LoopInstant, isMain: Bool) -> WaitingElsewhere {
        var found = WaitingElsewhere()
        guard isAlive else { return found }
        let running = activations.last.map { modes[$0.mode] }
        if isMain, hasRun { found.mainQueueWaits = !(running?.isCommon ?? false) }
        if !commonBlocks.isEmpty, !(running?.isCommon ?? false) { found.blocks.append(.common) }
        let isCommon = running?.isCommon ?? false
        found.executors = executors.values.filter {
            $0.mode != running?.name && !($0.mode == .common && isCommon)
        }
        found.notifications = (notifications?.modes ?? []).map { RunLoop.Mode($0) }.filter {
            (notifications?.count(.asap, named: $0.rawValue) ?? 0) > 0 && $0 != running?.name
                && !($0 == .common && isCommon)
        }
        // Each is listed once, under the first of its modes.
        var seen = Set(running.map { $0.timers.dueTimers(at: now).map { ObjectIdentifier($0.timer) } } ?? [])
        for (index, mode) in modes.enumerated() where index != activations.last?.mode {
            if !mode.blocks.isEmpty { found.blocks.append(mode.name) }
            for date in mode.timers.dueTimers(at: now)
            where seen.insert(ObjectIdentifier(date.timer)).inserted {
                found.timers.append((date, mode.name))
            }
            for source in mode.sources
            where !(running?.holds(source) ?? false)
                && seen.insert(ObjectIdentifier(source)).inserted
            {
                if mode.signalled.contains(source) { found.signalled.append((source, mode.name)) }
                if source.kind.behaviour.descriptor != nil { found.descriptors.append((source, mode.name)) }
            }
        }
        return found
    }
}
