internal import RondoCore

/// Keeps the descriptor sources of a socket port in the modes that hold the port, and in no others.
///
/// Only the port knows its modes. It reports changes with no lock held, so the reports arrive in any order if
/// one thread adds the port and another one removes it. A source enters or leaves a mode with no lock held as
/// well, because the program may be told of it. So each step asks the port before and afterwards, and is
/// repeated if another thread has changed the modes meanwhile.
struct PortSchedule: Sendable {
    /// Returns nil once the port is gone.
    let port: @Sendable () -> Port?

    /// The port has entered the mode or left it, and its `sources` are to follow. They are asked for when the
    /// mode is known: one that is new meanwhile is updated twice, but not missed.
    func update(_ sources: [RunLoop.Source], in loop: RunLoop, _ mode: RunLoop.Mode) {
        for source in sources { update(source, in: loop, mode) }
    }

    /// Adds a new source to all modes of the port.
    func update(_ source: RunLoop.Source) {
        for scheduled in port()?.scheduledModes ?? [] { update(source, in: scheduled.loop, scheduled.mode) }
    }

    private func update(_ source: RunLoop.Source, in loop: RunLoop, _ mode: RunLoop.Mode) {
        var isWanted: Bool
        repeat {
            isWanted = isHeld(by: loop, mode)
            if isWanted {
                loop.addUnwatched(source, forMode: mode)
            } else {
                loop.remove(source, forMode: mode)
            }
        } while isHeld(by: loop, mode) != isWanted
    }

    private func isHeld(by loop: RunLoop, _ mode: RunLoop.Mode) -> Bool {
        port()?.isIn(loop, mode) ?? false
    }

    /// Calls `body` after `seconds` in one of the modes, or in several.
    func perform(after seconds: TimeInterval, _ body: @escaping @Sendable () -> Void) {
        let modes = port()?.scheduledModes ?? []
        // A timer has one loop.
        for loop in Set(modes.map(\.loop)) {
            let timer = Timer(timeInterval: seconds, repeats: false) { _ in body() }
            for scheduled in modes where scheduled.loop == loop { loop.add(timer, forMode: scheduled.mode) }
        }
    }
}

extension RunLoop.Source {
    /// Watches for reading if `isWatched()` is true, otherwise for nothing; repeats if the answer has changed
    /// meanwhile, as in `PortSchedule`.
    func updateInterest(_ isWatched: () -> Bool) {
        var isWanted: Bool
        repeat {
            isWanted = isWatched()
            interest = isWanted ? .read : []
        } while isWatched() != isWanted
    }
}
