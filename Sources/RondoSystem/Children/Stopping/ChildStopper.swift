internal import Glibc
internal import RondoCore
internal import RondoMutex

/// Stops a child by the steps of its configuration, at once or at a limit of time (rules CH-16 and CH-17).
///
/// The background loop times the steps and the limit: they must not depend on the program's loops.
final class ChildStopper: Sendable {
    private struct State {
        var hasBegun = false
        /// Of the limit, or of the next step once stopping has begun.
        var timer: Timer?
    }

    private let handle: ChildHandle
    private let steps: [Child.StopStep]
    private let state = Mutex(State())

    init(_ handle: ChildHandle, steps: [Child.StopStep]) {
        self.handle = handle
        self.steps = steps
    }

    /// True if the child was asked to stop before it ended.
    var hasBegun: Bool { state.withLock { $0.hasBegun } }

    /// The date of the limit or of the next step; nil if there is none.
    var nextDate: Date? { state.withLock { $0.timer }?.fireDate }

    /// Takes the first step, unless stopping has begun or the child has ended.
    func stop() {
        guard handle.status == nil else { return }
        let (begins, limit) = state.withLock { state -> (Bool, Timer?) in
            guard !state.hasBegun else { return (false, nil) }
            state.hasBegun = true
            return (true, state.timer.take())
        }
        limit?.invalidate()
        if begins { take(step: 0) }
    }

    /// Stops the child `seconds` after its spawn unless it has ended by then. A later call replaces an
    /// earlier one.
    func stop(after seconds: TimeInterval) {
        later(max(0, seconds - LoopClock.systemNow.seconds(since: handle.spawned)), isLimit: true) {
            $0.stop()
        }
    }

    func kill() {
        // An error means that the child has ended, as intended.
        try? handle.send(SIGKILL, toGroup: true)
    }

    /// Drops the limit and the remaining steps, when the child has ended.
    func cancel() { state.withLock { $0.timer.take() }?.invalidate() }

    private func take(step index: Int) {
        guard index < steps.count else { return kill() }
        let step = steps[index]
        do throws(ChildError) {
            try handle.send(step.signal, toGroup: true)
        } catch {
            // The child has ended, or this signal is not permitted (EPERM after a setuid program): then the
            // next step may work.
            if error.systemCode == ESRCH {
                // The child had ended before the first step.
                if index == 0 { state.withLock { $0.hasBegun = false } }
                return
            }
        }
        later(step.seconds) { $0.take(step: index + 1) }
    }

    /// - Parameter isLimit: Whether this is the limit, which is not needed once stopping has begun.
    private func later(
        _ seconds: TimeInterval, isLimit: Bool = false, _ body: @escaping @Sendable (ChildStopper) -> Void
    ) {
        // By the machine's clock, like the loader's: the calling thread's loop may have a test's clock.
        let date = LoopClock.systemDate(inSeconds: seconds)
        let timer = Timer(fire: date, interval: 0, repeats: false) { [weak self] _ in
            if let self { body(self) }
        }
        let (isNeeded, old) = state.withLock { state -> (Bool, Timer?) in
            if isLimit, state.hasBegun { return (false, nil) }
            let old = state.timer
            state.timer = timer
            return (true, old)
        }
        guard isNeeded else { return }
        old?.invalidate()
        RunLoop.loader.add(timer, forMode: .default)
        // If the child ended meanwhile, the timer is no longer needed.
        if handle.status != nil { cancel() }
    }
}
