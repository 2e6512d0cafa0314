/// The time at which an activation ends.
enum RunLimit {
    /// One pass that does not sleep.
    case immediately
    case at(LoopInstant)
    case never

    init(seconds: TimeInterval, from now: @autoclosure () -> LoopInstant) {
        if !(seconds > 0) {
            self = .immediately
        } else {
            let instant = now().advanced(bySeconds: seconds)
            self = instant == .never ? .never : .at(instant)
        }
    }

    init(date: Date, from now: @autoclosure () -> LoopInstant) {
        self.init(instant: date == .distantFuture ? .never : LoopClock.instant(of: date), from: now())
    }

    init(instant: LoopInstant, from now: @autoclosure () -> LoopInstant) {
        self = instant == .never ? .never : instant > now() ? .at(instant) : .immediately
    }

    var isImmediate: Bool { if case .immediately = self { true } else { false } }

    var instant: LoopInstant {
        switch self {
        case .immediately: LoopInstant(nanoseconds: 0)
        case .at(let instant): instant
        case .never: .never
        }
    }

    /// - Parameter now: Evaluated only if the answer depends on it.
    func isReached(at now: @autoclosure () -> LoopInstant) -> Bool {
        switch self {
        case .immediately: true
        case .at(let instant): now() >= instant
        case .never: false
        }
    }
}
