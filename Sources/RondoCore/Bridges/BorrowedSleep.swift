internal import CRondoEv

/// Bridge B: where the main loop would sleep in the default mode, Foundation's main loop runs in that mode
/// instead, until an event of this loop ends the run.
///
/// Foundation's run ends at its time limit, which is this loop's next deadline, or after it has served one of
/// its own sources; it counts a drain of the main queue as such a source. So a ready descriptor of this loop
/// ends the run through a block on the main queue (`WakingSet`). Whether other blocks were drained together
/// with that one cannot be known, so a run that ends this way counts as a drain.
///
/// `@unchecked Sendable`: only the main thread touches this object, because the main queue's blocks and
/// Foundation's main loop run there.
final class BorrowedSleep: FoundationBridge, @unchecked Sendable {
    /// A sleep in progress.
    private struct Sleep {
        let number: UInt64
        let descriptor: Int32
    }

    /// Seconds after which Foundation's loop is served even if this loop has not slept.
    private static let longestBusyTime = 0.02
    /// Seconds that Foundation's loop runs at a time if nothing can end its run.
    private static let slice = 0.01

    private unowned let loop: RunLoop
    private var wakingSet: WakingSet?
    private(set) var mainQueueUse: MainQueueUse?
    private var sleeps: [Sleep] = []
    private var lastNumber: UInt64 = 0
    private var lastServed = LoopClock.systemNow
    /// A timer that wakes Foundation's loop when its run reaches the limit. Without this timer Foundation
    /// relies on Dispatch to wake its loop, and Dispatch's thread may come late.
    private let alarm = Foundation.Timer(fire: .distantFuture, interval: 1e9, repeats: true) { _ in }

    /// The timer that puts the descriptor of the sleep `numberToHold` back into the set. One timer serves
    /// all sleeps, because Foundation on Linux never frees a timer.
    private var returnTimer: Foundation.Timer?
    private var numberToHold: UInt64 = 0

    init(_ loop: RunLoop) {
        self.loop = loop
        Foundation.RunLoop.main.add(alarm, forMode: .default)
    }

    let summary = "lends its sleep in default to Foundation's run loop"

    var borrowsSleep: Bool { loop.currentMode == .default && loop.threadState.timeSource == nil }

    func sleep(_ modeLoop: ModeLoop, until instant: LoopInstant) -> Bool {
        guard modeLoop.mainQueue.method == .byAsking else { return false }
        modeLoop.poll(mayBlock: false)
        guard modeLoop.ready.isEmpty, !modeLoop.mainQueue.isReady, !loop.attention.wasAsked else {
            return true
        }
        guard modeLoop.hasKernelObjects, let use = acquireMainQueueUse(), let wakingSet = acquireWakingSet(),
            wakingSet.add(modeLoop.setDescriptor)
        else {
            return sleepInSlices(modeLoop, until: instant)
        }
        // Foundation's run ends by its own timer.
        loop.threadState.kernel.disarmTimer()
        lastNumber += 1
        sleeps.append(Sleep(number: lastNumber, descriptor: modeLoop.setDescriptor))
        use.begin()
        let hasRun = runFoundation(until: instant)
        wakingSet.remove(sleeps.removeLast().descriptor)
        // If this sleep was nested in a callback of an outer sleep, the outer sleep's descriptor must be in
        // the set again.
        if let outer = sleeps.last { _ = wakingSet.add(outer.descriptor) }
        let now = LoopClock.systemNow
        if hasRun, use.isSeen || now < instant { modeLoop.oweDrain() }
        lastServed = now
        modeLoop.poll(mayBlock: false)
        if !hasRun { return sleepInSlices(modeLoop, until: instant) }
        return true
    }

    /// - Returns: Whether Foundation's loop has run.
    private func runFoundation(until instant: LoopInstant) -> Bool {
        let threadState = loop.threadState
        threadState.forgetNow()
        threadState.isInFoundation = true
        defer {
            threadState.isInFoundation = false
            threadState.forgetNow()
        }
        guard instant != .never else {
            return Foundation.RunLoop.main.run(mode: .default, before: .distantFuture)
        }
        // One microsecond more: by rounding, the run could otherwise end before the deadline and start over.
        let limit = Date(timeIntervalSinceNow: instant.seconds(since: LoopClock.systemNow) + 1e-6)
        alarm.fireDate = limit.addingTimeInterval(5e-6)
        return Foundation.RunLoop.main.run(mode: .default, before: limit)
    }

    /// - Returns: The object, made by the first call; nil while descriptors have run out.
    private func acquireMainQueueUse() -> MainQueueUse? {
        if mainQueueUse == nil { mainQueueUse = MainQueueUse() }
        return mainQueueUse
    }

    /// - Returns: The set, made by the first call; nil while the kernel refuses it.
    private func acquireWakingSet() -> WakingSet? {
        // If descriptors have run out, this sleep is made in slices, and the next one tries again.
        if wakingSet == nil { wakingSet = try? WakingSet { [weak self] in self?.descriptorIsReady() } }
        return wakingSet
    }

    /// Sleeps in short runs of Foundation's loop, because nothing can end such a run without descriptors.
    private func sleepInSlices(_ modeLoop: ModeLoop, until instant: LoopInstant) -> Bool {
        let end = min(instant, LoopClock.systemNow.advanced(bySeconds: Self.slice))
        let began = LoopClock.systemNow
        let hasRun = runFoundation(until: end)
        if hasRun, LoopClock.systemNow < end { modeLoop.oweDrain() }
        // If Foundation's loop cannot run either, rest instead of spinning.
        if !hasRun, LoopClock.systemNow.seconds(since: began) < Self.slice { SystemFailure.rest() }
        modeLoop.poll(mayBlock: false)
        return true
    }

    /// Called in a block of the main queue.
    private func descriptorIsReady() {
        guard let sleep = sleeps.last else { return }
        wakingSet?.remove(sleep.descriptor)
        // This block may end another run than the sleep's, one that a callback of Foundation's has started.
        // Then the sleep goes on, and its descriptor must return to the set. The inner of the two blocks
        // below runs at the start of Foundation's next pass.
        let putBack: @Sendable () -> Void = { [weak self] in self?.putBack(unlessEnded: sleep.number) }
        Foundation.RunLoop.main.perform(inModes: [.default]) {
            Foundation.RunLoop.main.perform(inModes: [.default], block: putBack)
        }
    }

    private func putBack(unlessEnded number: UInt64) {
        guard sleeps.last?.number == number else { return }
        // Not at once: if the callback starts several runs in a row, this would end each of them.
        numberToHold = number
        returnTimerCreatingIfNeeded.fireDate = Date(timeIntervalSinceNow: Self.slice)
    }

    private var returnTimerCreatingIfNeeded: Foundation.Timer {
        // The bridge may have been ended in a callback of this sleep, which continues until it is woken.
        if let returnTimer, returnTimer.isValid { return returnTimer }
        let timer = Foundation.Timer(fire: .distantFuture, interval: 1e9, repeats: true) { [weak self] _ in
            guard let self, let sleep = sleeps.last, sleep.number == numberToHold else { return }
            _ = wakingSet?.add(sleep.descriptor)
        }
        returnTimer = timer
        Foundation.RunLoop.main.add(timer, forMode: .default)
        return timer
    }

    func serveIfOverdue() {
        guard loop.now.seconds(since: lastServed) > Self.longestBusyTime, borrowsSleep,
            !loop.threadState.isDrainingMainQueue
        else { return }
        FoundationPoll(loop, .default, use: acquireMainQueueUse()).run()
        lastServed = loop.now
    }

    func end() {
        alarm.invalidate()
        returnTimer?.invalidate()
        // End the sleep in progress.
        if !sleeps.isEmpty { loop.threadState.kernel.wakeUp?.wake() }
    }
}
