internal import CRondoEv

/// Bridge B: where the main loop would sleep in the default mode, Foundation's main loop runs in that mode, until an event of
/// this loop ends the run.
///
/// Foundation's run ends by its time limit, which is this loop's next deadline, and by a source of its own that it has served,
/// as which it counts a drain of the main queue. So a descriptor of this loop ends it by a block of the main queue
/// (`SleepGate`). Which other blocks were drained together with that one cannot be known, so that end counts as a drain.
///
/// `@unchecked Sendable`: only the main thread touches it, where the main queue's blocks and Foundation's main loop run.
final class BorrowedSleep: FoundationBridge, @unchecked Sendable {
    /// A sleep that is under way.
    private struct Sleep {
        let number: UInt64
        let descriptor: Int32
    }

    /// Foundation's loop is served after so many seconds even if this one has not slept.
    private static let longestBusyTime = 0.02
    /// So many seconds Foundation's loop runs at a time if nothing can end its run.
    private static let slice = 0.01

    private unowned let loop: RunLoop
    private var gate: SleepGate?
    private(set) var mainQueueUse: MainQueueUse?
    private var sleeps: [Sleep] = []
    private var lastNumber: UInt64 = 0
    private var lastServed = LoopClock.machineNow
    /// Has Foundation's loop look at the limit of its run in time. By itself it has Dispatch wake it, whose thread may come
    /// late.
    private let alarm = Foundation.Timer(fire: .distantFuture, interval: 1e9, repeats: true) { _ in }

    /// Has the gate opened again for the sleep of `numberToHold`. One for all, as above: Foundation on Linux never frees a
    /// timer.
    private var reopening: Foundation.Timer?
    private var numberToHold: UInt64 = 0

    init(_ loop: RunLoop) {
        self.loop = loop
        Foundation.RunLoop.main.add(alarm, forMode: .default)
    }

    let summary = "lends its sleep in default to Foundation's run loop"

    var borrowsSleep: Bool { loop.currentMode == .default && loop.owner.timeSource == nil }

    func sleep(_ modeLoop: ModeLoop, until instant: LoopInstant) -> Bool {
        guard modeLoop.mainQueue.way == .byAsking else { return false }
        modeLoop.poll(mayBlock: false)
        guard modeLoop.ready.isEmpty, !modeLoop.mainQueue.isReady, !loop.attention.wasAsked else {
            return true
        }
        guard modeLoop.isWhole, let (gate, use) = equip(), gate.hold(modeLoop.setDescriptor) else {
            return sleepInSlices(modeLoop, until: instant)
        }
        // Foundation's run ends by its own timer.
        loop.owner.kernel.disarmTimer()
        lastNumber += 1
        sleeps.append(Sleep(number: lastNumber, descriptor: modeLoop.setDescriptor))
        use.begin()
        let hasRun = runFoundation(until: instant)
        gate.letGo(of: sleeps.removeLast().descriptor)
        // The sleep further out, in a callback of which this one was, holds it too.
        if let outer = sleeps.last { _ = gate.hold(outer.descriptor) }
        let now = LoopClock.machineNow
        if hasRun, use.isSeen || now < instant { modeLoop.oweDrain() }
        lastServed = now
        modeLoop.poll(mayBlock: false)
        if !hasRun { return sleepInSlices(modeLoop, until: instant) }
        return true
    }

    /// - Returns: Whether it has run.
    private func runFoundation(until instant: LoopInstant) -> Bool {
        let owner = loop.owner
        owner.knownNow = nil
        owner.isInFoundation = true
        defer {
            owner.isInFoundation = false
            owner.knownNow = nil
        }
        guard instant != .never else {
            return Foundation.RunLoop.main.run(mode: .default, before: .distantFuture)
        }
        // A microsecond more, or the run would end before the deadline by rounding, and begin again.
        let limit = Date(timeIntervalSinceNow: instant.seconds(since: LoopClock.machineNow) + 1e-6)
        alarm.fireDate = limit.addingTimeInterval(5e-6)
        return Foundation.RunLoop.main.run(mode: .default, before: limit)
    }

    private func equip() -> (SleepGate, MainQueueUse)? {
        if mainQueueUse == nil { mainQueueUse = MainQueueUse() }
        // Without a descriptor the next sleep tries again, and this one is made in slices.
        if gate == nil { gate = try? SleepGate { [weak self] in self?.gateHasOpened() } }
        guard let gate, let mainQueueUse else { return nil }
        return (gate, mainQueueUse)
    }

    /// Without descriptors nothing can end Foundation's run, so it is a short one.
    private func sleepInSlices(_ modeLoop: ModeLoop, until instant: LoopInstant) -> Bool {
        let end = min(instant, LoopClock.machineNow.advanced(bySeconds: Self.slice))
        let began = LoopClock.machineNow
        let hasRun = runFoundation(until: end)
        if hasRun, LoopClock.machineNow < end { modeLoop.oweDrain() }
        // Foundation's loop cannot run either.
        if !hasRun, LoopClock.machineNow.seconds(since: began) < Self.slice { SystemFailure.rest() }
        modeLoop.poll(mayBlock: false)
        return true
    }

    /// In a block of the main queue.
    private func gateHasOpened() {
        guard let sleep = sleeps.last else { return }
        gate?.letGo(of: sleep.descriptor)
        // The run that ends by this block may be another one, which a callback of Foundation's has begun: then the sleep goes
        // on, and the gate has to open again. The second of these blocks runs when the next pass of Foundation's begins.
        let openAgain: @Sendable () -> Void = { [weak self] in self?.openAgain(unlessEnded: sleep.number) }
        Foundation.RunLoop.main.perform(inModes: [.default]) {
            Foundation.RunLoop.main.perform(inModes: [.default], block: openAgain)
        }
    }

    private func openAgain(unlessEnded number: UInt64) {
        guard sleeps.last?.number == number else { return }
        // Not at once: the callback may begin one run after another, which would all end by this.
        numberToHold = number
        madeReopening.fireDate = Date(timeIntervalSinceNow: Self.slice)
    }

    private var madeReopening: Foundation.Timer {
        // The bridge may have been ended in a callback of the sleep, which goes on until it is woken.
        if let reopening, reopening.isValid { return reopening }
        let timer = Foundation.Timer(fire: .distantFuture, interval: 1e9, repeats: true) { [weak self] _ in
            guard let self, let sleep = sleeps.last, sleep.number == numberToHold else { return }
            _ = gate?.hold(sleep.descriptor)
        }
        reopening = timer
        Foundation.RunLoop.main.add(timer, forMode: .default)
        return timer
    }

    func serveIfOverdue() {
        guard loop.now.seconds(since: lastServed) > Self.longestBusyTime, borrowsSleep,
            !loop.owner.isDrainingMainQueue
        else { return }
        FoundationPoll(loop, .default, use: equip()?.1).run()
        lastServed = loop.now
    }

    func end() {
        alarm.invalidate()
        reopening?.invalidate()
        // A sleep that is under way ends.
        if !sleeps.isEmpty { loop.owner.kernel.wakeUp?.wake() }
    }
}
