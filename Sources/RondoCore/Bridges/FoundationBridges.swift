extension RunLoop {
    /// Makes `mode` of the main loop a guest of Foundation's main loop, which a framework or a test runs:
    /// while Foundation's loop runs in a common mode, it also serves the members of `mode` (rules BR-1 to
    /// BR-4).
    ///
    /// Nothing is polled, and an idle program sleeps. Each event costs a hop over one of Dispatch's threads
    /// and a block of the main queue: see "From Foundation's run loop" for figures. Callbacks are made inside
    /// a block of the main queue, so a run of either loop in a callback serves no other block (rule RL-59).
    /// While this loop runs by itself, Foundation's loop is not served.
    ///
    /// A second call for the same mode does nothing; see also `endFoundationBridge()`.
    /// - Note: On the main thread, of the main loop. If descriptors have run out, the loop logs that and
    ///   starts as soon as some are free.
    public func hostInFoundation(mode: Mode) {
        requireMainLoop("hostInFoundation(mode:)")
        if mode == .common { fatalError("The common name is not a mode: host one of the common modes.") }
        if let guest = threadState.bridge as? FoundationGuest, guest.mode == mode { return }
        if threadState.isEmbedded {
            fatalError(
                "One mode of a run loop is embedded at a time; invalidate the embedding before you host a mode."
            )
        }
        let guest = FoundationGuest(self, mode)
        setBridge(guest, function: "hostInFoundation(mode:)")
        guest.start()
    }

    /// Whether Foundation's main loop runs while the main loop would sleep in the default mode: with its
    /// timers, sources, observers, and wake-ups from other threads, all on time (rules BR-5 to BR-10). False
    /// at first.
    ///
    /// A member of this loop that becomes ready ends the sleep at once. Each such event costs a hop over one
    /// of Dispatch's threads, and each sleep with a deadline a timer of Dispatch's: see "From Foundation's
    /// run loop" for figures.
    ///
    /// Foundation's loop is not served in other modes, nor in runs inside a block of the main queue. A sleep
    /// that is ended by a source of Foundation's loop, or by a request of another thread, counts as a drain
    /// of the main queue, that is, as a handled source: whether blocks of the main queue ran meanwhile cannot
    /// be known, so a caller that waits for such a block has to check.
    /// - Note: On the main thread, of the main loop.
    public var servesFoundation: Bool {
        get { isCurrent && threadState.bridge is BorrowedSleep }
        set {
            requireMainLoop("servesFoundation")
            guard newValue != threadState.bridge is BorrowedSleep else { return }
            guard newValue else { return endFoundationBridge() }
            setBridge(BorrowedSleep(self), function: "servesFoundation")
        }
    }

    /// Polls Foundation's run loop of the same thread while this one runs in one of `modes`, each time in
    /// Foundation's mode of that name: before each sleep, when Foundation's next timer is due, and every
    /// `interval` (rules BR-11 to BR-15).
    ///
    /// Events that this thread itself causes for Foundation's objects are on time; those that other threads
    /// cause (a stream event, a performed block, a timer moved nearer) are at most `interval` late. An idle
    /// thread wakes `1 / interval` times a second. On a thread other than the main one, Foundation's loop
    /// needs a source or a timer in the mode; without one, Foundation's notification queues post nothing
    /// there.
    ///
    /// - Parameters:
    ///   - modes: `.common` stands for every common mode of this loop. An empty array ends the polling.
    ///   - interval: Seconds, by default 20 ms; less than a millisecond counts as one.
    /// - Note: On the loop's own thread.
    public func servesFoundation(in modes: [Mode], atLeastEvery interval: TimeInterval = 0.02) {
        requireOwnThread("servesFoundation(in:atLeastEvery:)")
        if threadState.bridge is FoundationPolls { endFoundationBridge() }
        guard !modes.isEmpty else { return }
        setBridge(
            FoundationPolls(self, modes, interval: interval > 0.001 ? min(interval, 3600) : 0.001),
            function: "servesFoundation(in:atLeastEvery:)")
    }

    /// Ends the bridge to Foundation's run loop, of whichever kind; does nothing if the loop has none.
    /// - Note: On the loop's own thread.
    public func endFoundationBridge() {
        requireOwnThread("endFoundationBridge()")
        guard let bridge = threadState.removeBridge() else { return }
        state.withLock { $0.bridge = nil }
        bridge.end()
    }

    /// Makes `bridge` this loop's bridge; traps if the loop has one already.
    private func setBridge(_ bridge: any FoundationBridge, function: String) {
        threadState.setBridge(bridge, function: function)
        state.withLock { $0.bridge = bridge.summary }
        // The loop may be asleep, if this call comes from a callback of Foundation's.
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
    /// The kind of bridge to Foundation's run loop that a loop has.
    package enum BridgeInUse: Equatable {
        case none
        case guest(Mode)
        case sleep
        case polls
    }

    /// Loop's thread only.
    package var bridgeInUse: BridgeInUse {
        switch threadState.bridge {
        case let guest as FoundationGuest: .guest(guest.mode)
        case is BorrowedSleep: .sleep
        case is FoundationPolls: .polls
        default: .none
        }
    }
}
