internal import RondoCore
internal import RondoMutex

/// The outputs of a child that are read into memory (rules CH-13 and CH-14), and the limited wait for those
/// that other processes keep open (rule CH-12).
final class ChildOutputs: Sendable {
    private let output: OutputCollector?
    private let errorOutput: OutputCollector?
    /// Seconds from the end of the child.
    private let grace: TimeInterval
    private let graceTimer = Mutex<Timer?>(nil)

    init(_ pipes: ChildPipes, grace: TimeInterval) {
        output = pipes.outputCollector
        errorOutput = pipes.errorCollector
        self.grace = grace
    }

    private var collectors: [OutputCollector] { [output, errorOutput].compactMap { $0 } }

    var collectedOutput: Data { output?.data ?? Data() }
    var collectedErrorOutput: Data { errorOutput?.data ?? Data() }

    /// The reason why a collected output of the child with this name is incomplete; nil if there is none.
    func error(of name: String) -> ChildError? {
        if let collector = collectors.first(where: \.hasOverflown) {
            return ChildError(
                .outputLimit, path: name,
                "an output of \(name) was larger than its limit of \(collector.limit) bytes: it was stopped")
        }
        guard let failure = collectors.lazy.compactMap(\.failure).first else { return nil }
        return ChildError(
            .system, systemCode: failure, path: name, "an output of \(name) could not be read")
    }

    /// Has `body` called when an output exceeds its limit, on the thread of a loop.
    func whenTooLarge(_ body: @escaping @Sendable () -> Void) {
        for collector in collectors { collector.overflow = body }
    }

    func schedule(in loop: RunLoop, forMode mode: RunLoop.Mode) {
        for collector in collectors { collector.schedule(in: loop, forMode: mode) }
    }

    func unschedule(from loop: RunLoop, forMode mode: RunLoop.Mode, keeping modes: [LoopMode]) {
        for collector in collectors { collector.unschedule(from: loop, forMode: mode, keeping: modes) }
    }

    // MARK: - After the end of the child

    /// Ends the collected outputs after the time of grace, and then calls `body` on the background loop's
    /// thread, unless `endGrace()` comes first.
    func beginGrace(whenOver body: @escaping @Sendable () -> Void) {
        // By the machine's clock, like the loader's: the calling thread's loop may have a test's clock.
        let date = LoopClock.systemDate(inSeconds: grace)
        // The timer retains this object and what `body` retains.
        let timer = Timer(fire: date, interval: 0, repeats: false) { [self] _ in
            // Other processes may keep the outputs open for ever.
            for collector in collectors { collector.finishWithAvailableBytes() }
            body()
        }
        graceTimer.withLock { $0 = timer }
        RunLoop.loader.add(timer, forMode: .default)
    }

    func endGrace() { graceTimer.withLock { $0.take() }?.invalidate() }
}
