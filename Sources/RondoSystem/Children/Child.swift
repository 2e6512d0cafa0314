// A child process on run loops, in parts.
//
// `ChildHandle` is the child as the kernel knows it; any one thread collects it once. `ChildStopper` stops
// it, `ChildOutputs` reads what is collected in memory, `ChildEvents` decides which callbacks are due, and
// `ChildCallbacks` has them. `Child` has them called by two sources in the modes that the program has chosen:
// one on the pidfd, by which a loop learns of the end from the kernel, and a signalled one for the findings
// of other threads.

public import RondoCore
internal import RondoMutex
public import RondoStreams

/// Another program that runs as a child of this one.
///
/// `spawn` starts it. In the loops and modes in which a child is scheduled, `onEnd` is called once when the
/// child has ended; its outputs are streams that are scheduled separately. A child that is scheduled nowhere
/// is collected in the background, so that no zombie stays (rule CH-4). Releasing a `Child` does not kill its
/// process (rule CH-22).
///
/// Linux 5.4 or later. No SIGCHLD handler is installed, and only Rondo's children are collected (rule CH-3).
/// Any thread may use a `Child`; each stream belongs to the thread on which it is scheduled.
public final class Child: Sendable {
    /// The way in which a child has ended.
    public typealias Status = ChildStatus
    /// A stop or continuation of a child by job control.
    public typealias Stop = ChildStop

    let handle: ChildHandle
    let events = Mutex(ChildEvents())
    private let callbacks = ChildCallbacks()
    let stopper: ChildStopper
    private let outputs: ChildOutputs

    /// The stream to the child's standard input, unopened; nil unless the input is `.stream`. Closing it is
    /// the end of input for the child.
    ///
    /// `nonisolated(unsafe)`: the property never changes, and by rule ST-20 only one thread at a time uses a
    /// stream.
    public nonisolated(unsafe) let input: RondoStreams.OutputStream?
    /// The stream from the child's standard output, unopened; nil unless the output is `.stream`.
    /// (`nonisolated(unsafe)`: see `input`.)
    public nonisolated(unsafe) let output: RondoStreams.InputStream?
    /// The stream from the child's standard error, unopened; nil unless that is `.stream`.
    /// (`nonisolated(unsafe)`: see `input`.)
    public nonisolated(unsafe) let errorOutput: RondoStreams.InputStream?

    /// Ready when the child has ended; valid until the child was collected.
    private let endSource: RunLoop.Source
    /// Signalled when a callback is due.
    private let eventSource: RunLoop.Source

    init(_ handle: ChildHandle, _ configuration: Configuration, _ pipes: ChildPipes) {
        self.handle = handle
        stopper = ChildStopper(handle, steps: configuration.stopping)
        outputs = ChildOutputs(pipes, grace: configuration.outputGrace)
        (input, output, errorOutput) = (pipes.input, pipes.output, pipes.errorOutput)
        let links = ChildLinks()
        endSource = handle.makeSource(links)
        eventSource = RunLoop.Source(
            cancel: { _, _ in links.child?.eventSourceHasLeft() }, perform: { links.child?.tell() })
        eventSource.label = handle.name
        events.withLock { $0.openOutputs = pipes.outputCount }
        links.child = self
        outputs.whenTooLarge { [weak self] in self?.stop() }
        pipes.tracker.connect { [weak self] in self?.outputHasEnded() }
        // The handle retains the child until its end.
        handle.whenEnded { [self] status in noteEnd(status) }
        handle.reaper.watch(handle)
    }

    // MARK: - Properties

    /// The process number. After the child's end the kernel may give it to another process.
    public var processIdentifier: Int32 { handle.processIdentifier }

    /// A name for logs, traces and `whyNotDelivering`; at first the program.
    public var label: String? {
        get { eventSource.label }
        set {
            eventSource.label = newValue
            endSource.label = newValue
        }
    }

    /// The status of the child if it has ended, otherwise nil. It never waits.
    public var currentStatus: Status? { handle.collect() }

    /// The bytes of a collected standard output that were read so far. They are complete once `onCompletion`
    /// was called.
    public var collectedOutput: Data { outputs.collectedOutput }
    /// The bytes of a collected standard error that were read so far; see `collectedOutput`.
    public var collectedErrorOutput: Data { outputs.collectedErrorOutput }

    /// The reason why a collected output is incomplete: it exceeded its limit, and the child was stopped
    /// (rule CH-14), or it could not be read. Nil if there is none.
    public var error: ChildError? { outputs.error(of: handle.name) }

    // MARK: - Callbacks

    // If the child is scheduled on several loops, only one of them makes a callback at a time.

    /// Called once when the child has ended, even if its own children keep outputs open (rule CH-5), in the
    /// loops and modes in which the child is scheduled. Set it before the child is scheduled.
    public var onEnd: (@Sendable (Child, Status) -> Void)? {
        get { callbacks.end }
        set { callbacks.end = newValue }
    }

    /// Called once when the child and its piped outputs have ended, or `outputGrace` seconds after the end of
    /// the process (rule CH-12), in the loops and modes in which the child is scheduled. Set it before the
    /// child is scheduled.
    public var onCompletion: (@Sendable (Child, Status) -> Void)? {
        get { callbacks.completion }
        set { callbacks.completion = newValue }
    }

    /// Called when a signal stops the child, and when the child continues (rule CH-24). Of several changes
    /// since the last call only the latest is reported. Setting it uses a thread while the child runs,
    /// because the kernel reports stops only to a waiting thread.
    public var onStop: (@Sendable (Child, Stop) -> Void)? {
        get { callbacks.stop }
        set {
            callbacks.stop = newValue
            guard newValue != nil, events.withLock({ $0.beginWatchingStops() }) else { return }
            handle.watchStops { [weak self] stop in
                guard let self else { return false }
                events.withLock { $0.stopped(stop) }
                eventSource.signalAndWakeUp()
                return true
            }
        }
    }

    // MARK: - Schedule

    /// Schedules the callbacks of the child on the thread of `loop`, while it runs in `mode`, and the reading
    /// of its collected outputs. In several modes or loops each callback is made once, and no two at the same
    /// time (rule CH-23). After the last one the other loops are woken, so that a run with nothing left ends.
    /// If the child has ended already, the callbacks come in the first pass (rule CH-2). Any thread.
    public func schedule(in loop: RunLoop, forMode mode: RunLoop.Mode) {
        guard eventSource.isValid else { return }
        events.withLock { $0.enter(LoopMode(loop: loop, mode: mode)) }
        loop.add(eventSource, forMode: mode)
        loop.add(endSource, forMode: mode)
        outputs.schedule(in: loop, forMode: mode)
        // While the source is in a loop, it retains the child. Attached after the adds: before them, another
        // thread that unschedules the child would release it for good.
        eventSource.attachment = self
        eventSourceHasLeft()
        if endSource.isScheduled, events.withLock({ !$0.isAwaited }) {
            handle.reaper.forget(handle)
            // A task may have begun to wait meanwhile, whatever modes run.
            if events.withLock({ $0.isAwaited }) { handle.reaper.watch(handle) }
            // Another thread may have removed the source meanwhile, while the reaper still watched the child.
            endSourceHasLeft()
        }
        // A loop to which callbacks were left may have held the child in no mode, or in another one; the
        // loops that leave some ask again.
        if events.withLock({ $0.endAsking() }) { eventSource.signalAndWakeUp() }
    }

    /// Undoes `schedule(in:forMode:)`. Any thread.
    public func unschedule(from loop: RunLoop, forMode mode: RunLoop.Mode) {
        let kept = events.withLock { $0.leave(LoopMode(loop: loop, mode: mode)) }
        outputs.unschedule(from: loop, forMode: mode, keeping: kept)
        for source in [endSource, eventSource] { loop.remove(source, forMode: mode, keeping: kept) }
    }

    /// Why no callback was made. Any thread may ask.
    public var whyNotDelivering: DeliveryObstacle {
        guard eventSource.isValid else { return DeliveryObstacle.invalid }
        let obstacle = eventSource.whyNotDelivering
        guard obstacle.reason == .nothingToDeliver, handle.status == nil else { return obstacle }
        return DeliveryObstacle(reason: .nothingToDeliver, description: "the child runs")
    }

    /// The source was removed from a mode, or the thread of its loop has ended.
    func endSourceHasLeft() {
        if !endSource.isScheduled, handle.status == nil { handle.reaper.watch(handle) }
    }

    /// The event source was removed from a mode, or may be in none: another thread has unscheduled the child,
    /// or the thread of its loop has ended.
    private func eventSourceHasLeft() {
        events.withLock { $0.leaveEndedLoops() }
        eventSource.releaseUnlessScheduled()
    }

    // MARK: - Events

    /// Called on the thread that has collected the child.
    private func noteEnd(_ status: Status) {
        endSource.invalidate()
        stopper.cancel()
        let mustWait = events.withLock { $0.ended(status) }
        if mustWait { completeAfterGrace() }
        eventSource.signalAndWakeUp()
    }

    /// Called on the thread of a loop that has found the pidfd ready. The end is reported in this very
    /// callback.
    func endSourceIsReady() {
        guard handle.collect() != nil else {
            // A debugger that traces the child must collect it first; until then the pidfd stays ready.
            endSource.interest = []
            return handle.reaper.watch(handle)
        }
        eventSource.withdrawSignal()
        tell()
    }

    private func outputHasEnded() {
        guard events.withLock({ $0.outputEnded() }) else { return }
        outputs.endGrace()
        eventSource.signalAndWakeUp()
    }

    private func completeAfterGrace() {
        outputs.beginGrace { [self] in
            if events.withLock({ $0.graceIsOver() }) { eventSource.signalAndWakeUp() }
        }
        // The outputs may have ended meanwhile.
        if events.withLock({ $0.isComplete }) { outputs.endGrace() }
    }

    /// Makes the callbacks that are due, on the thread of a loop. If another thread makes some at this
    /// moment, it makes these too.
    private func tell() {
        let current = RunLoop.currentLoop()
        switch events.withLock({ $0.beginReporting(on: current) }) {
        case .left(to: let loop?): return leaveCallbacks(to: loop)
        case .left(to: nil): return
        case .begun: break
        }
        while let item = events.withLock({ $0.next() }) { callbacks.call(item, of: self) }
        // Another loop may have nothing left to wait for.
        if events.withLock({ $0.isOver }) { eventSource.invalidateAndWakeUp() }
    }

    /// Has a run of `loop`, nested in a callback, make the callbacks that are due.
    private func leaveCallbacks(to loop: RunLoop) {
        let modes = eventSource.scheduledModes.filter { $0.loop === loop }.map { $0.mode }
        guard !modes.isEmpty else { return events.withLock { _ = $0.endAsking() } }
        loop.perform(inModes: modes) { [weak self] in
            // Signalled again without a wake-up: this loop serves it now.
            guard let self else { return }
            if events.withLock({ $0.endAsking() }) { eventSource.signal() }
        }
    }
}

/// The reference of the sources to their child, which is made after them.
///
/// `@unchecked Sendable`: a weak reference that is set once, before the sources are in any loop, and only
/// read afterwards.
private final class ChildLinks: @unchecked Sendable {
    weak var child: Child?
}

extension ChildHandle {
    /// Makes the source on the pidfd.
    fileprivate func makeSource(_ links: ChildLinks) -> RunLoop.Source {
        var source: RunLoop.Source?
        withDescriptor { pidfd in
            source = RunLoop.Source(
                fileDescriptor: pidfd, keepsFile: true, interest: .read,
                cancel: { _, _ in links.child?.endSourceHasLeft() },
                perform: { _, ready in
                    // If the kernel refuses to watch the pidfd, the reaper has another way.
                    if ready.isEmpty {
                        links.child?.endSourceHasLeft()
                    } else {
                        links.child?.endSourceIsReady()
                    }
                })
        }
        // A child that was collected already, by a `waitpid` of the program, needs no descriptor.
        let made = source ?? RunLoop.Source {}
        made.label = name
        return made
    }
}
