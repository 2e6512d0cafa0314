internal import CRondoEv

extension RunLoop {
    /// Lets a foreign event loop drive `mode` of this loop: a loop that uses `poll(2)`, a Dispatch source, or
    /// another library.
    ///
    /// The foreign loop waits until `fileDescriptor` can be read, and then calls `turn()` on this loop's
    /// thread:
    ///
    /// ```swift
    /// let embedding = try RunLoop.current.embed(mode: .default)
    /// var request = pollfd(fd: embedding.fileDescriptor, events: Int16(POLLIN), revents: 0)
    /// while poll(&request, 1, -1) >= 0 { embedding.turn() }
    /// ```
    ///
    /// - Throws: A POSIX error if descriptors have run out.
    /// - Note: On the loop's own thread. One mode of a loop at a time.
    public func embed(mode: Mode) throws -> Embedding {
        requireOwnThread()
        // No preconditions: in release builds their messages would be lost.
        if mode == .common { fatalError("The common name is not a mode: embed one of the common modes.") }
        if threadState.isEmbedded {
            fatalError("One mode of a run loop is embedded at a time; invalidate the first embedding.")
        }
        return try Embedding(self, mode, mirrorsMainQueue: true)
    }

    /// One mode of a run loop that a foreign loop drives. See `RunLoop.embed(mode:)`.
    ///
    /// It belongs to the loop's thread.
    public final class Embedding {
        public let loop: RunLoop
        public let mode: Mode
        private let mirror: DescriptorMirror
        private let modeLoop: ModeLoop
        private let wakeUp: WakeUp
        /// Whether work of the main queue makes `fileDescriptor` readable while the mode is a common one.
        private let mayMirrorMainQueue: Bool
        private var mirrorsMainQueue = false
        private var isValid = true

        /// - Parameter mirrorsMainQueue: False if the foreign loop drains the main queue itself.
        init(_ loop: RunLoop, _ mode: Mode, mirrorsMainQueue: Bool) throws {
            let index = loop.state.withLock { $0.index(of: mode) }
            let modeLoop = loop.threadState.kernel.modeLoop(index)
            if !modeLoop.hasKernelObjects { loop.threadState.kernel.acquireKernelObjects(for: modeLoop) }
            guard modeLoop.hasKernelObjects, let wakeUp = loop.threadState.kernel.wakeUp else {
                throw Self.error(loop.threadState.kernel.refusal?.code ?? EMFILE)
            }
            let mirror: DescriptorMirror
            do {
                mirror = try DescriptorMirror()
            } catch {
                throw Self.error(error.code)
            }
            let refusal =
                mirror.add(wakeUp.eventDescriptor, events: Int32(EV_READ))
                ?? mirror.add(wakeUp.timerDescriptor, events: Int32(EV_READ))
            if let refusal { throw Self.error(refusal.code) }
            self.mirror = mirror
            self.loop = loop
            self.mode = mode
            self.modeLoop = modeLoop
            self.wakeUp = wakeUp
            mayMirrorMainQueue = mirrorsMainQueue
            refuseStaleSources()
            mirrorMainQueue()
            modeLoop.setMirror(mirror)
            loop.threadState.beginEmbedding()
            // Makes the first turn happen, which finds the members that the mode already has.
            wakeUp.wake()
        }

        /// Readable when a turn has something to do: a descriptor of the mode is ready, a timer is due, or
        /// another thread asks for attention. The loop owns the descriptor; do not close it.
        public var fileDescriptor: Int32 { mirror.descriptor }

        /// The date of the next due timer; nil if there is no timer. A foreign loop that waits for
        /// `fileDescriptor` does not need it: the descriptor becomes readable at that date.
        public var nextDeadline: Date? { loop.nextTimerDate(forMode: mode) }

        /// Makes one pass of the mode that does not sleep: serves everything that is due, and one ready
        /// descriptor. While more is ready, `fileDescriptor` stays readable.
        @discardableResult
        public func turn() -> RunResult {
            wakeUp.drain()
            // A run that does not start clears no request for attention, and each turn would cause another
            // one.
            loop.attention.forgetUnlessRunning()
            let result = loop.threadState.turn { loop.run(in: mode, for: 0, returnAfterSourceHandled: false) }
            mirrorMainQueue()
            // A run does not look at an empty mode, so a source that was removed last would stay in the
            // mirror. A source whose callback has run the mode is not in the mirror until it is watched
            // again.
            updateWatchers()
            mirror.removeStrays()
            let now = LoopClock.now
            let (nearest, hasMore) = loop.state.withLock { [loop, mode] state -> (LoopInstant?, Bool) in
                guard let index = state.existingIndex(of: mode) else { return (nil, false) }
                // A request that another thread made during the pass wrote no wake-up, because the loop was
                // awake.
                state.collectBlocks(from: loop.intake)
                // In an empty mode no turn would post a notification (rule NQ-19).
                let mayPost =
                    !state.isEmpty(index, loop.intake) || loop.drainsMainQueue(in: state.modes[index])
                let hasMore =
                    loop.attention.wasAskedWhileEnding || state.hasWork(for: index)
                    || state.hasOrderedPerforms(for: index)
                    || mayPost && state.hasNotifications(for: index)
                return (state.modes[index].timers.nearest, hasMore)
            }
            let hasTimer = loop.threadState.kernel.armTimer(noLaterThan: nearest ?? .never, now: now)
            // Sources that libev watches no more, because it has just made a new epoll set, are not in the
            // mirror either.
            if hasMore || !hasTimer || !modeLoop.ready.isEmpty || modeLoop.hasInterrupted
                || mirror.isAlwaysReady
            {
                wakeUp.wake()
            }
            return result
        }

        /// Adds the main queue's descriptor to the mirror if the mode drains the queue. Checked in each turn,
        /// since the mode may have become a common one.
        private func mirrorMainQueue() {
            guard mayMirrorMainQueue, !mirrorsMainQueue else { return }
            mirrorsMainQueue = loop.state.withLock { state in
                loop.drainsMainQueue(in: state.modes[state.index(of: mode)])
            }
            guard mirrorsMainQueue else { return }
            // If the kernel refuses the descriptor, the next turn tries again.
            guard let descriptor = MainQueue.descriptor, mirror.add(descriptor, events: Int32(EV_READ)) == nil
            else {
                mirrorsMainQueue = false
                return
            }
        }

        private static func error(_ code: Int32) -> NSError {
            NSError(domain: NSPOSIXErrorDomain, code: Int(code))
        }

        /// Refuses sources whose descriptor has the number of the mirror: their own descriptor was closed
        /// before the mirror got the number (rule SRC-27).
        private func refuseStaleSources() {
            let number = mirror.descriptor
            let stale = loop.state.withLock { state in
                state.modes.flatMap { mode in
                    mode.sources.filter { $0.kind.behaviour.descriptor == number }
                }
            }
            let index = loop.state.withLock { $0.index(of: mode) }
            for source in stale {
                _ = source.handleRefusal(SystemError("epoll_ctl", code: EBADF), in: index, of: loop)
            }
        }

        private func updateWatchers() {
            let index = loop.state.withLock { $0.index(of: mode) }
            let update = WatcherUpdate(loop: loop, mode: index, modeLoop: modeLoop)
            update.noteInterrupted()
            guard let changes = loop.state.withLock({ $0.modes[index].takeOutdated() }) else { return }
            update.apply(changes)
        }

        /// Ends the embedding. Loop's thread only.
        public func invalidate() {
            loop.requireOwnThread("Embedding.invalidate()")
            end()
        }

        private func end() {
            guard isValid else { return }
            isValid = false
            modeLoop.setMirror(nil)
            loop.threadState.endEmbedding()
        }

        deinit { end() }
    }
}

@available(*, unavailable)
extension RunLoop.Embedding: Sendable {}
