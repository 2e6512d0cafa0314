package import RondoCore

/// A timer in all the loops of a load: one for each loop, since a timer belongs to one.
package struct ScheduleTimer: Sendable {
    private let first: Timer
    /// The timers of the other loops: nearly always there are none.
    private let others: [Timer]

    /// - Parameter fire: Called on each of the loops.
    package init(
        _ modes: [LoopMode], after seconds: TimeInterval, repeats: Bool,
        fire: @escaping @Sendable (Timer) -> Void
    ) {
        let timer = { (loop: RunLoop) in
            let timer = Timer(timeInterval: seconds, repeats: repeats, block: fire)
            for scheduled in modes where scheduled.loop === loop { loop.add(timer, forMode: scheduled.mode) }
            return timer
        }
        first = timer(modes[0].loop)
        others = modes.count == 1 ? [] : Set(modes.map(\.loop)).subtracting([modes[0].loop]).map(timer)
    }

    /// Sets the next firing to the given number of seconds from now.
    func move(to seconds: TimeInterval) {
        forEach { $0.fireDate = LoopClock.date(inSeconds: max(seconds, 0.001)) }
    }

    package func invalidate() { forEach { $0.invalidate() } }

    private func forEach(_ body: (Timer) -> Void) {
        body(first)
        for timer in others { body(timer) }
    }
}
