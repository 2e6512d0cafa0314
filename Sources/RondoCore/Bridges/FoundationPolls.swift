internal import struct Synchronization.Atomic

/// Bridge C: passes of this loop poll Foundation's run loop of the same thread.
///
/// Loop's thread only.
final class FoundationPolls: FoundationBridge {
    private unowned let loop: RunLoop
    private let modes: [RunLoop.Mode]
    private let interval: TimeInterval
    private(set) var mainQueueUse: MainQueueUse?
    private var isPolling = false
    private var lastPoll = LoopInstant(nanoseconds: 0)
    /// The instant at which Foundation's next timer is due.
    private var nextTimer = LoopInstant.never

    private static let hasTold = Atomic(false)

    init(_ loop: RunLoop, _ modes: [RunLoop.Mode], interval: TimeInterval) {
        self.loop = loop
        self.modes = modes
        self.interval = interval
        guard !Self.hasTold.exchange(true, ordering: .relaxed) else { return }
        Log.core.notice(
            """
            A run loop polls Foundation's: an idle thread wakes \((1 / interval).formatted(.number.precision(.fractionLength(0)))) \
            times a second for it, and what other threads hand to Foundation's objects comes up to \
            \((interval * 1000).formatted()) ms late.
            """)
    }

    var summary: String {
        "polls Foundation's run loop in \(modes.map(\.shortName).joined(separator: ", ")), every \(interval.formatted()) s"
    }

    private func serves(_ mode: RunLoop.Mode) -> Bool {
        guard !isPolling, !loop.threadState.isDrainingMainQueue else { return false }
        return modes.contains(mode)
            || modes.contains(.common)
                && loop.state.withLock { state in
                    state.existingIndex(of: mode).map { state.modes[$0].isCommon } ?? false
                }
    }

    private func poll(_ mode: RunLoop.Mode) {
        isPolling = true
        // If descriptors have run out, the next poll tries again.
        if loop.isMain, mainQueueUse == nil { mainQueueUse = MainQueueUse() }
        let next = FoundationPoll(loop, mode, use: mainQueueUse).run()
        isPolling = false
        lastPoll = LoopClock.systemNow
        nextTimer = next ?? .never
    }

    /// The instant at which the next poll is due.
    private var nextPoll: LoopInstant { min(nextTimer, lastPoll.advanced(bySeconds: interval)) }

    func sleep(_ modeLoop: ModeLoop, until instant: LoopInstant) -> Bool {
        guard let mode = loop.currentMode, serves(mode) else { return false }
        poll(mode)
        if loop.threadState.wasServedAsleep {
            loop.threadState.wasServedAsleep = false
            modeLoop.oweDrain()
        }
        // A test's clock does not advance by itself, so there is no next poll to wait for.
        if loop.threadState.timeSource != nil {
            guard loop.attention.wasAsked || modeLoop.mainQueue.owesDrain else { return false }
            modeLoop.poll(mayBlock: false)
            return true
        }
        let now = LoopClock.systemNow
        let end = min(instant, nextPoll)
        let mayBlock = end > now && !loop.attention.wasAsked && !modeLoop.mainQueue.owesDrain
        let hasTimer = !mayBlock || loop.threadState.kernel.armTimer(noLaterThan: end, now: now)
        modeLoop.poll(mayBlock: mayBlock, until: end, hasTimer: hasTimer)
        return true
    }

    func serveIfOverdue() {
        guard LoopClock.systemNow >= nextPoll, let mode = loop.currentMode, serves(mode) else { return }
        poll(mode)
    }

    func end() {}
}
