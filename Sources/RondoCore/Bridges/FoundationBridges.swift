extension RunLoop {
    /// Makes `mode` of the main loop a guest of Foundation's main loop, which a framework or a test runs: while Foundation's
    /// runs in a common mode, the members of `mode` are served by turns (rules BR-1 to BR-4).
    ///
    /// Nothing is polled, and an idle program sleeps. An event takes a hop over a thread of Dispatch's and a block of the main
    /// queue: see "From Foundation's run loop" for figures. Callbacks come inside a block of the main queue, so that a run of
    /// either loop in one of them serves no other block (rule RL-59). Where this loop runs by itself, Foundation's does not.
    ///
    /// A second call for the same mode does nothing; see also `endFoundationBridge()`.
    /// - Note: On the main thread, of the main loop. Where descriptors have run out the loop logs it, and begins as soon as
    ///   there are some.
    public func hostInFoundation(mode: Mode) {
        requireMainLoop("hostInFoundation(mode:)")
        if mode == .common { fatalError("The common name is not a mode: host one of the common modes.") }
        if let guest = owner.bridge as? FoundationGuest, guest.mode == mode { return }
        if owner.isEmbedded {
            fatalError(
                "One mode of a run loop is embedded at a time; invalidate the embedding before you host a mode."
            )
        }
        let guest = FoundationGuest(self, mode)
        setBridge(guest, function: "hostInFoundation(mode:)")
        guest.start()
    }

    /// Whether the main loop, where it would sleep in the default mode, lets Foundation's main loop run there: with its timers,
    /// sources, observers, and wake-ups from other threads, all on time (rules BR-5 to BR-10). False at first.
    ///
    /// What becomes ready in this loop ends that sleep at once. It costs a hop over a thread of Dispatch's for each such event,
    /// and a timer of Dispatch's for each sleep with a deadline: see "From Foundation's run loop" for figures.
    ///
    /// Foundation's loop stands still in other modes, and in runs inside a block of the main queue. A sleep that Foundation's
    /// loop has ended by a source of its own, or another thread by a request, counts as a drain of the main queue, a handled
    /// source: whether blocks of the main queue ran meanwhile cannot be known, and a caller that waits for one has to look.
    /// - Note: On the main thread, of the main loop.
    public var servesFoundation: Bool {
        get { isCurrent && owner.bridge is BorrowedSleep }
        set {
            requireMainLoop("servesFoundation")
            guard newValue != owner.bridge is BorrowedSleep else { return }
            guard newValue else { return endFoundationBridge() }
            setBridge(BorrowedSleep(self), function: "servesFoundation")
        }
    }

    /// Polls Foundation's run loop of the same thread while this one runs in one of `modes`, each time in Foundation's mode of
    /// that name: before each sleep, when Foundation's next timer is due, and every `interval` (rules BR-11 to BR-15).
    ///
    /// What Foundation's objects get from this thread itself is on time; what other threads hand them (a stream event, a
    /// performed block, a timer moved nearer) is at most `interval` late. An idle thread wakes `1 / interval` times a second.
    /// The loop of a thread other than the main one has to have a source or a timer of Foundation's in the mode, or nothing is
    /// posted there by Foundation's notification queues.
    ///
    /// - Parameters:
    ///   - modes: `.common` stands for every common mode of this loop. None ends the polling.
    ///   - interval: Seconds, by default 20 ms; less than a millisecond counts as one.
    /// - Note: On the loop's own thread.
    public func servesFoundation(in modes: [Mode], atLeastEvery interval: TimeInterval = 0.02) {
        requireOwnThread("servesFoundation(in:atLeastEvery:)")
        if owner.bridge is FoundationPolls { endFoundationBridge() }
        guard !modes.isEmpty else { return }
        setBridge(
            FoundationPolls(self, modes, interval: interval > 0.001 ? min(interval, 3600) : 0.001),
            function: "servesFoundation(in:atLeastEvery:)")
    }

    /// Ends the bridge to Foundation's run loop, whichever this loop has.
    /// - Note: On the loop's own thread.
    public func endFoundationBridge() {
        requireOwnThread("endFoundationBridge()")
        guard let bridge = owner.bridge else { return }
        owner.bridge = nil
        state.withLock { $0.bridge = nil }
        bridge.end()
    }

    /// Makes `bridge` that of this loop.
    private func setBridge(_ bridge: any FoundationBridge, function: String) {
        if let other = owner.bridge {
            // Not a precondition, which loses its message in release.
            fatalError(
                "RunLoop.\(function): the loop has a bridge to Foundation's run loop already (\(other.summary)). A thread has "
                    + "one at a time: call endFoundationBridge() first.")
        }
        owner.bridge = bridge
        state.withLock { $0.bridge = bridge.summary }
        // Where a callback of Foundation's has made it, this loop may be asleep.
        wakeIfForeign()
    }

    private func requireMainLoop(_ function: String) {
        requireOwnThread(function)
        if !isMain {
            fatalError(
                "RunLoop.\(function) is for the main loop; on another thread use servesFoundation(in:atLeastEvery:)."
            )
        }
    }
}

extension RunLoop {
    /// Which bridge to Foundation's run loop a loop has.
    package enum BridgeInUse: Equatable {
        case none
        case guest(Mode)
        case sleep
        case polls
    }

    /// Loop's thread only.
    package var bridgeInUse: BridgeInUse {
        switch owner.bridge {
        case let guest as FoundationGuest: .guest(guest.mode)
        case is BorrowedSleep: .sleep
        case is FoundationPolls: .polls
        default: .none
        }
    }
}
