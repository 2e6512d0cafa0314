internal import RondoMutex

/// Calls a block once at a date, or repeatedly on a grid of dates, on the thread of the run loop to which it
/// was added, while that loop runs in a mode in which it was added.
///
/// Never early; late only as long as the loop is busy or in another mode, and by what it takes to end a
/// sleep, which lasts 50 µs at least. Lateness does not add up (rules TM-1 to TM-6). Times are kept on the
/// monotonic clock: setting the wall clock moves nothing. Retained by its loop until it is invalidated. The
/// counterpart of `NSTimer` and `CFRunLoopTimer`.
///
/// The block is `@Sendable`, since a timer can be handed to the loop of another thread. So the compiler
/// rejects a block that changes a variable (`count += 1`) until the program states what guards the variable.
/// On the main loop that is the main actor:
///
/// ```swift
/// var count = 0       // in main.swift, or in a class of the main actor
/// Timer.scheduledTimer(withTimeInterval: 1, repeats: true) { _ in
///     MainActor.assumeIsolated { count += 1 }
/// }
/// ```
///
/// Elsewhere, declare the variable `nonisolated(unsafe) var count = 0` if only the thread of the timer's loop
/// touches it, and keep it in a `Mutex` if other threads do too.
public final class Timer: NSObject, TimerHeapMember, Sendable {
    /// The interval, in seconds, that replaces a repeating interval of 0 or less (rule TM-7).
    public static let minimumInterval: TimeInterval = 0.0001

    // `nonisolated(unsafe)`: each field is guarded by a lock that stands elsewhere.
    //
    //     field                              guarded by
    //     loopOrDetails, block               the lock in `marks`; `TimerState` changes them, which exists while it is held
    //     registrationBits, registrationWord while a loop holds the timer: the lock of that loop; otherwise
    //     that in `marks`
    //
    // Take the lock in `marks` first: it says which loop holds the timer. Code that found the timer in a
    // loop's heap knows, and takes the loop's alone. The registration is here, and not in a table of the
    // loop, so that removing a timer needs no look-up. All fields side by side and in this order leave no
    // gaps: 56 bytes instead of 72, and a million timers (W1) take 147.9 MiB instead of 162.8.

    let marks = Mutex(TimerState.Marks.isValid)
    nonisolated(unsafe) private var registrationBits: UInt16
    nonisolated(unsafe) var loopOrDetails = TimerState.LoopOrDetails.neither
    nonisolated(unsafe) var block: TimerState.Block?
    nonisolated(unsafe) private var registrationWord: UInt64
    private let live = LiveObject(.timer)

    var registration: TimerRegistration {
        get { TimerRegistration(bits: registrationBits, word: registrationWord) }
        set { (registrationBits, registrationWord) = (newValue.bits, newValue.word) }
    }

    var state: TimerState.Guard { TimerState.Guard(timer: .passUnretained(self)) }

    // MARK: - Making timers

    /// A timer whose first date is `interval` seconds from now (rule TM-9). It is in no loop yet.
    ///
    /// - Parameter block: Called on the loop's thread, with no lock held.
    public convenience init(
        timeInterval interval: TimeInterval, repeats: Bool, block: @escaping @Sendable (Timer) -> Void
    ) {
        let seconds = repeats && !(interval > 0) ? Self.minimumInterval : interval
        let first = LoopClock.now.advanced(bySeconds: seconds)
        // The date may never be asked for, so the wall clock is not read now, unless the date could not be
        // computed later.
        let isTold = LoopClock.isSystemTime && abs(seconds) < Self.longestUntold
        self.init(
            first: first, date: isTold ? nil : LoopClock.date(inSeconds: seconds), interval: interval,
            repeats: repeats, block: block)
    }

    /// A timer whose first date is `date`; a date in the past makes it fire in the first pass of a suitable
    /// mode.
    public convenience init(
        fire date: Date, interval: TimeInterval, repeats: Bool, block: @escaping @Sendable (Timer) -> Void
    ) {
        self.init(
            first: LoopClock.instant(of: date), date: date, interval: interval, repeats: repeats,
            block: block)
    }

    /// `Timer(timeInterval:repeats:block:)` with a value that its block finds in `userInfo`.
    ///
    /// - Parameter userInfo: Kept until the timer is invalidated or freed. Any thread may read it, so it has
    ///   to be Sendable; a dictionary of different types is written `[...] as [String: any Sendable]`.
    public convenience init(
        timeInterval interval: TimeInterval, userInfo: (any Sendable)?, repeats: Bool,
        block: @escaping @Sendable (Timer) -> Void
    ) {
        self.init(timeInterval: interval, repeats: repeats, block: block)
        keep(userInfo)
    }

    /// `Timer(fire:interval:repeats:block:)` with a value that its block finds in `userInfo`.
    ///
    /// - Parameter userInfo: Kept until the timer is invalidated or freed.
    public convenience init(
        fire date: Date, interval: TimeInterval, userInfo: (any Sendable)?, repeats: Bool,
        block: @escaping @Sendable (Timer) -> Void
    ) {
        self.init(fire: date, interval: interval, repeats: repeats, block: block)
        keep(userInfo)
    }

    private func keep(_ userInfo: (any Sendable)?) {
        guard let userInfo else { return }
        let kept = TimerState.UserInfo(userInfo)
        state.withLock { state in state.updateDetails { $0.userInfo = kept } }
    }

    private init(
        first: LoopInstant, date: Date?, interval: TimeInterval, repeats: Bool,
        block: @escaping @Sendable (Timer) -> Void
    ) {
        let registration = TimerRegistration(deadline: first)
        (registrationBits, registrationWord) = (registration.bits, registration.word)
        self.block = TimerState.Block(call: block)
        guard repeats || date != nil else { return }
        let details = TimerState.Details(
            interval: !repeats ? 0 : interval > 0 ? interval : Self.minimumInterval)
        if let date { details.dates.setAnchor(first, date: date) }
        loopOrDetails = .details(.passRetained(details))
    }

    deinit {
        if let details = loopOrDetails.details { details.release() }
    }

    /// Seconds; the date of an instant further away may be beyond the clock's range.
    private static let longestUntold: TimeInterval = 1e9

    /// Seconds between two firings; 0 for a timer that fires once (rule TM-8).
    public var timeInterval: TimeInterval {
        state.withLock { state in state.withDetails { $0.dates.interval } ?? 0 }
    }

    /// A new timer, added to the calling thread's loop in the default mode (rule TM-10).
    @available(*, noasync, message: "A task has no thread of its own; add the timer to the loop you mean.")
    @discardableResult
    public static func scheduledTimer(
        withTimeInterval interval: TimeInterval, repeats: Bool, block: @escaping @Sendable (Timer) -> Void
    ) -> Timer {
        let timer = Timer(timeInterval: interval, repeats: repeats, block: block)
        RunLoop.current.add(timer, forMode: .default)
        return timer
    }

    /// `scheduledTimer(withTimeInterval:repeats:block:)` with a value that its block finds in `userInfo`.
    ///
    /// - Parameter userInfo: Kept until the timer is invalidated or freed.
    @available(*, noasync, message: "A task has no thread of its own; add the timer to the loop you mean.")
    @discardableResult
    public static func scheduledTimer(
        withTimeInterval interval: TimeInterval, userInfo: (any Sendable)?, repeats: Bool,
        block: @escaping @Sendable (Timer) -> Void
    ) -> Timer {
        let timer = Timer(timeInterval: interval, userInfo: userInfo, repeats: repeats, block: block)
        RunLoop.current.add(timer, forMode: .default)
        return timer
    }

    // MARK: - State

    public var isValid: Bool { state.withLock { $0.isValid } }

    /// The date of the next firing, which may have passed; for an invalid timer, the date of its last firing
    /// (rule TM-22).
    ///
    /// Setting it moves the next firing and starts a new grid there; a past date means as soon as possible.
    /// From another thread it takes effect at once. In the timer's own block it replaces the next date only
    /// if it is later than the date that has just fired (rules TM-19 to TM-21).
    ///
    /// If the timer was made with an interval, its date is computed by the wall clock when it is first asked
    /// for, and then kept: if the clock was set before that, the date follows the new time.
    public var fireDate: Date {
        get {
            state.withLock { state -> Date in
                let (deadline, isValid) = (state.deadline, state.isValid)
                return state.updateDetails { $0.dates.fireDate(deadline: deadline, isValid: isValid) }
            }
        }
        set {
            let instant = LoopClock.instant(of: newValue)
            let loop = state.withLock { state -> RunLoop? in
                guard state.isValid else { return nil }
                if state.isCalled {
                    // While a timer fires only this lock guards its registration; the block may have removed
                    // it from its loop.
                    let deadline = registration.deadline
                    guard instant > deadline else { return nil }
                    state.updateDetails { $0.dates.move(to: instant, firingAt: deadline) }
                } else if let loop = state.loop {
                    state.isOvertaken = loop.state.withLock { loopState in
                        loopState.setDate(instant, of: self)
                        return registration.isFiring
                    }
                } else {
                    state.isOvertaken = registration.isFiring
                    registration.deadline = instant
                }
                state.updateDetails { $0.dates.setAnchor(instant, date: newValue) }
                return state.loop
            }
            loop?.wakeIfForeign()
        }
    }

    /// Seconds by which a firing may be late so that wake-ups can be shared; 0 at first.
    ///
    /// A repeating timer keeps at most half its interval; a negative value counts as 0 (rule TM-27). Later
    /// dates are still counted from the grid (rule TM-26).
    public var tolerance: TimeInterval {
        get { state.withLock { state in state.withDetails { $0.dates.tolerance } ?? 0 } }
        set { state.withLock { state in state.updateDetails { $0.dates.setTolerance(newValue) } } }
    }

    /// A name for logs, traces and `whyNotDelivering`; nil at first. Any thread may set it.
    public var label: String? {
        get { state.withLock { state in state.withDetails { $0.label } ?? nil } }
        set {
            state.withLock { state in
                if newValue == nil {
                    _ = state.withDetails { $0.label = nil }
                } else {
                    state.updateDetails { $0.label = newValue }
                }
            }
        }
    }

    /// An object that the layer above keeps with the timer, set once; it is released when the timer is
    /// invalidated or freed.
    package var attachment: (any AnyObject & Sendable)? {
        get { state.withLock { state in state.withDetails { $0.attachment } ?? nil } }
        set {
            state.withLock { state in
                if state.isValid { state.updateDetails { $0.attachment = newValue } }
            }
        }
    }

    /// The value that was passed to the initializer for the block to find; nil if there was none, or the
    /// timer is invalid, which releases the value. Any thread.
    public var userInfo: (any Sendable)? {
        let kept = state.withLock { state in state.withDetails { $0.userInfo } ?? nil }
        return kept?.value
    }

    /// The `fireDate` of a timer that waits for `deadline`.
    func fireDate(at deadline: LoopInstant) -> Date {
        state.withLock { state in
            state.updateDetails { $0.dates.date(of: deadline, deadline: deadline) }
        }
    }

    // MARK: - Firing by hand, ending

    /// Calls the block at once on the calling thread, whatever the mode (rule TM-18).
    ///
    /// A repeating schedule is not changed; a timer that fires once is invalidated afterwards.
    public func fire() {
        let now = LoopClock.now
        let (block, repeats) = state.withLock { state -> (TimerState.Block?, Bool) in
            guard state.isValid else { return (nil, false) }
            let repeats = state.updateDetails { details in
                details.dates.noteBeat(now)
                return details.dates.repeats
            }
            return (state.block, repeats)
        }
        guard let block else { return }
        block.call(self)
        if !repeats { invalidate() }
    }

    /// Stops the timer for ever: it leaves its modes, and its block is released (rule TM-15).
    ///
    /// - Note: Any thread may call this, but on another thread than the loop's a block that has already begun
    ///   may still finish.
    public func invalidate() {
        // The block and the objects are released after the lock.
        let released = state.withLock { state in
            state.withLoop { withdraw(from: $0, isCommon: state.isCommon) }
            return state.invalidate()
        }
        withExtendedLifetime(released) {}
    }

    private func withdraw(from loop: RunLoop, isCommon: Bool) {
        loop.state.withLock { loopState in
            if isCommon { loopState.commonTimers.remove(self) }
            while let mode = registration.first { loopState.remove(self, fromMode: mode) }
        }
    }
}
