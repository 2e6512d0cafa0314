// A child process on run loops.
//
// Three parts. `ChildHandle` is the child as the kernel knows it, collected once by any thread. `ChildNews` decides what
// there is to tell. `Child` tells it: by a source on the pidfd, so that a loop learns of the end from the kernel itself, and
// by a signalled source for what other threads have found. Both are in the modes that the program has chosen.

internal import Glibc
public import RondoCore
internal import RondoMutex
public import RondoStreams

/// Another program, started as a child of this one.
///
/// `spawn` starts it. Where it is scheduled, its end comes to `onEnd`, once, on the thread of that loop and in that mode; its
/// outputs are streams of their own, scheduled where the program likes. Scheduled nowhere it is collected in the background:
/// no zombie stays (rule CH-4). To let go of a `Child` does not kill its process (rule CH-22).
///
/// Linux 5.4 or later. No SIGCHLD handler is installed, and no children are collected that are not Rondo's own (rule CH-3).
/// Any thread may use a `Child`; its streams belong to the threads that they are scheduled on.
public final class Child: Sendable {
    /// How a child has ended.
    public typealias Status = ChildStatus
    /// A change of a child by job control.
    public typealias Stop = ChildStop

    let handle: ChildHandle
    let news = Mutex(ChildNews())
    private let callbacks = Mutex(Callbacks())
    let stopping: [StopStep]
    let outputGrace: TimeInterval
    let stopTimer = Mutex<Timer?>(nil)
    /// Ends the wait for outputs that others keep open. It keeps the child.
    private let graceTimer = Mutex<Timer?>(nil)
    let collectors: [OutputCollector]
    private let errorCollector: OutputCollector?
    private let outputCollector: OutputCollector?

    /// Writes what the child reads; nil unless its input is `.stream`. It is not opened yet. Closing it is the end for the
    /// child.
    ///
    /// `nonisolated(unsafe)`: it never changes, and by rule ST-20 a stream is used by one thread at a time.
    public nonisolated(unsafe) let input: RondoStreams.OutputStream?
    /// Reads what the child writes; nil unless its output is `.stream`. It is not opened yet. (For the promise see `input`.)
    public nonisolated(unsafe) let output: RondoStreams.InputStream?
    /// The same of its standard error. (For the promise see `input`.)
    public nonisolated(unsafe) let errorOutput: RondoStreams.InputStream?

    /// Ready when the child has ended; valid until it was collected.
    private let endSource: RunLoop.Source
    /// Signalled when there is news.
    private let newsSource: RunLoop.Source

    init(_ handle: ChildHandle, _ configuration: Configuration, _ pipes: ChildPipes) {
        self.handle = handle
        stopping = configuration.stopping
        outputGrace = configuration.outputGrace
        (input, output, errorOutput) = (pipes.input, pipes.output, pipes.errorOutput)
        outputCollector = pipes.outputCollector
        errorCollector = pipes.errorCollector
        collectors = [pipes.outputCollector, pipes.errorCollector].compactMap { $0 }
        let links = ChildLinks()
        endSource = handle.makeSource(links)
        newsSource = RunLoop.Source(
            cancel: { _, _ in links.child?.newsSourceHasLeft() }, perform: { links.child?.tell() })
        newsSource.label = handle.name
        news.withLock { $0.openOutputs = pipes.outputCount }
        links.child = self
        for collector in collectors { collector.overflow = { [weak self] in self?.stop() } }
        pipes.tracker.connect { [weak self] in self?.outputHasEnded() }
        // It keeps the child until its end.
        handle.whenEnded { [self] status in hasEnded(status) }
        handle.reaper.watch(handle)
    }

    // MARK: - What it is

    /// The kernel's number of the process. After its end the number may be another one's.
    public var processIdentifier: Int32 { handle.processIdentifier }

    /// A name for logs, traces and `whyNotDelivering`; at first the program.
    public var label: String? {
        get { newsSource.label }
        set {
            newsSource.label = newValue
            endSource.label = newValue
        }
    }

    /// How it has ended; nil: it was not found to have ended yet. It never waits.
    public var currentStatus: Status? { handle.collect() }

    /// What was read of a collected output. Complete once `onCompletion` was called.
    public var collectedOutput: Data { outputCollector?.data ?? Data() }
    /// The same of the standard error.
    public var collectedErrorOutput: Data { errorCollector?.data ?? Data() }

    /// Why a collected output is not whole: it was larger than its limit, and the child was stopped (rule CH-14), or it
    /// could not be read.
    public var error: ChildError? {
        if let collector = collectors.first(where: \.hasOverflown) {
            return ChildError(
                .outputLimit, path: handle.name,
                "an output of \(handle.name) was larger than its limit of \(collector.limit) bytes: it was stopped"
            )
        }
        guard let failure = collectors.lazy.compactMap(\.failure).first else { return nil }
        return ChildError(
            .system, systemCode: failure, path: handle.name, "an output of \(handle.name) could not be read")
    }

    // MARK: - Callbacks

    // Where the child is scheduled on several loops, none calls while another one does.

    /// Called once when the child has ended, whatever its own children keep open (rule CH-5), in the modes that it is
    /// scheduled in. Set it before the child is scheduled.
    public var onEnd: (@Sendable (Child, Status) -> Void)? {
        get { callbacks.withLock { $0 }.end }
        set {
            let new = Callbacks(end: newValue)
            exchange { callbacks in
                defer { callbacks.end = new.end }
                return Callbacks(end: callbacks.end)
            }
        }
    }

    /// Called once when the child has ended and its piped outputs have too, or `outputGrace` after the end of the process
    /// (rule CH-12), in the modes that it is scheduled in. Set it before the child is scheduled.
    public var onCompletion: (@Sendable (Child, Status) -> Void)? {
        get { callbacks.withLock { $0 }.completion }
        set {
            let new = Callbacks(completion: newValue)
            exchange { callbacks in
                defer { callbacks.completion = new.completion }
                return Callbacks(completion: callbacks.completion)
            }
        }
    }

    /// Called when the child is stopped by a signal or goes on (rule CH-24). Of several changes since the last call the
    /// latest is told. To set it takes a thread for as long as the child runs, since the kernel tells of a stop only a
    /// thread that waits for it.
    public var onStop: (@Sendable (Child, Stop) -> Void)? {
        get { callbacks.withLock { $0 }.stop }
        set {
            let new = Callbacks(stop: newValue)
            exchange { callbacks in
                defer { callbacks.stop = new.stop }
                return Callbacks(stop: callbacks.stop)
            }
            if newValue != nil, news.withLock({ $0.beginWatchingStops() }) { watchStops() }
        }
    }

    /// What `change` replaces is released without the lock.
    private func exchange(_ change: (inout Callbacks) -> Callbacks) {
        let old = callbacks.withLock { change(&$0) }
        withExtendedLifetime(old) {}
    }

    /// A struct, since a bare closure that a lock's closure returns is wrapped in another one.
    private struct Callbacks: Sendable {
        var end: (@Sendable (Child, Status) -> Void)?
        var completion: (@Sendable (Child, Status) -> Void)?
        var stop: (@Sendable (Child, Stop) -> Void)?
    }

    // MARK: - Schedule

    /// Tells of the child on the thread of `loop`, while that runs in `mode`: its end, its completion, and the bytes
    /// collected of its outputs. In several modes or loops each is told once, no two at the same time (rule CH-23); when
    /// all is told the other loops are woken, so that a run with nothing left ends. If it has ended before, it is told in
    /// the first pass (rule CH-2). Any thread.
    public func schedule(in loop: RunLoop, forMode mode: RunLoop.Mode) {
        guard newsSource.isValid else { return }
        // While a loop has the source, that keeps the child.
        newsSource.attachment = self
        loop.add(newsSource, forMode: mode)
        loop.add(endSource, forMode: mode)
        for collector in collectors { collector.schedule(in: loop, forMode: mode) }
        // The loop's thread may have ended.
        newsSource.releaseUnlessScheduled()
        if endSource.isScheduled, news.withLock({ !$0.isAwaited }) { handle.reaper.forget(handle) }
    }

    /// Takes back what `schedule(in:forMode:)` said.
    public func unschedule(from loop: RunLoop, forMode mode: RunLoop.Mode) {
        for collector in collectors { collector.unschedule(from: loop, forMode: mode) }
        loop.remove(endSource, forMode: mode)
        loop.remove(newsSource, forMode: mode)
    }

    /// Why nothing was told. Any thread may ask.
    public var whyNotDelivering: DeliveryObstacle {
        guard newsSource.isValid else { return DeliveryObstacle.invalid }
        let obstacle = newsSource.whyNotDelivering
        guard obstacle.reason == .nothingToDeliver, handle.status == nil else { return obstacle }
        return DeliveryObstacle(reason: .nothingToDeliver, description: "the child runs")
    }

    /// A mode has let go of the source, or the thread of its loop has ended.
    func endSourceHasLeft() {
        if !endSource.isScheduled, handle.status == nil { handle.reaper.watch(handle) }
    }

    private func newsSourceHasLeft() { newsSource.releaseUnlessScheduled() }

    // MARK: - News

    /// On the thread that has collected the child.
    private func hasEnded(_ status: Status) {
        endSource.invalidate()
        stopTimer.withLock { $0.take() }?.invalidate()
        let mustWait = news.withLock { $0.ended(status) }
        if mustWait { completeAfterGrace() }
        newsSource.signalAndWakeUp()
    }

    /// On the thread of a loop that has found the pidfd ready: the end is told in this very callback.
    func endSourceIsReady() {
        guard handle.collect() != nil else {
            // A debugger that holds the child is to collect it first; until then the pidfd stays ready.
            endSource.interest = []
            return handle.reaper.watch(handle)
        }
        newsSource.withdrawSignal()
        tell()
    }

    private func outputHasEnded() {
        guard news.withLock({ $0.outputEnded() }) else { return }
        endGrace()
        newsSource.signalAndWakeUp()
    }

    private func endGrace() { graceTimer.withLock { $0.take() }?.invalidate() }

    private func completeAfterGrace() {
        let timer = Timer(timeInterval: outputGrace, repeats: false) { [self] _ in
            // What still holds them open may do so for ever.
            for collector in collectors { collector.finishWithWhatIsThere() }
            if news.withLock({ $0.graceIsOver() }) { newsSource.signalAndWakeUp() }
        }
        graceTimer.withLock { $0 = timer }
        RunLoop.loader.add(timer, forMode: .default)
        // The outputs may have ended meanwhile.
        if news.withLock({ $0.isComplete }) { endGrace() }
    }

    /// On the thread of a loop. Where another one tells just now, that one goes on with what there is.
    private func tell() {
        guard news.withLock({ $0.beginTelling() }) else { return }
        while let item = news.withLock({ $0.next() }) {
            switch item {
            case .ended(let status): onEnd?(self, status)
            case .stopped(let stop): onStop?(self, stop)
            case .completed(let status): onCompletion?(self, status)
            }
        }
        // Another loop may have nothing left now.
        if news.withLock({ $0.isOver }) { newsSource.invalidateAndWakeUp() }
    }

    private func watchStops() {
        do throws(SystemError) {
            try SystemThread.start(name: "rondo.stops") { [weak self, handle] in
                while let stop = handle.waitForStop() {
                    guard let self else { return }
                    news.withLock { $0.stopped(stop) }
                    newsSource.signalAndWakeUp()
                }
            }
        } catch {
            Log.system.error("No thread waits for the stops of the child \(handle.name): \(error).")
        }
    }
}

/// What the sources of a child refer to it by, since they are made before it.
///
/// `@unchecked Sendable`: a weak reference, set once before the sources are anywhere, and read by then on.
private final class ChildLinks: @unchecked Sendable {
    weak var child: Child?
}

extension ChildHandle {
    /// The source that finds the pidfd ready, in the modes of the child.
    fileprivate func makeSource(_ links: ChildLinks) -> RunLoop.Source {
        var source: RunLoop.Source?
        withDescriptor { pidfd in
            source = RunLoop.Source(
                fileDescriptor: pidfd, keepsFile: true, interest: .read,
                cancel: { _, _ in links.child?.endSourceHasLeft() },
                perform: { _, ready in
                    // Where the kernel refuses to watch the pidfd the reaper has another way.
                    if ready.isEmpty {
                        links.child?.endSourceHasLeft()
                    } else {
                        links.child?.endSourceIsReady()
                    }
                })
        }
        // A child that was collected already (by a loop of the program's own waitpid) needs no descriptor.
        let made = source ?? RunLoop.Source {}
        made.label = name
        return made
    }
}
