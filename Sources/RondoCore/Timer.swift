internal import Synchronization

/// Calls a block once at a date, or again and again on a grid of dates, on the thread of the run loop it was
/// added to, while that loop runs in a mode it was added in.
///
/// Never early; late only as long as the loop is busy or in another mode, and lateness does not add up
/// (rules TM-1 to TM-6). Times are kept on the monotonic clock: setting the wall clock moves nothing.
/// Retained by its loop until it is invalidated. The counterpart of `NSTimer` and `CFRunLoopTimer`.
public final class Timer: NSObject, Sendable {
    /// In a struct of its own, since a bare closure that leaves a lock's closure as its result is put into a
    /// new one, which is an allocation a call.
    struct Block: Sendable {
        let call: @Sendable (Timer) -> Void
    }

    /// A program may have a million timers, so what few of them have stands elsewhere.
    struct State {
        var isValid = true
        /// Registered in its loop under the common name, whatever modes it has been taken out of since.
        var isCommon = false
        /// The loop that held it last has lost its thread.
        var threadHasEnded = false
        /// The date that fires next, or is firing now.
        var deadline: LoopInstant
        /// The date that `anchor` stands for, so that a date reads back as it was handed in.
        var anchorDate: Date
        var anchor: LoopInstant
        /// When it last fired: a beat of the grid, or the moment at which it was fired by hand.
        var lastBeat = LoopInstant.never
        var loop: RunLoop?
        var block: Block?
        var rarities: Rarities?

        /// To write to what few timers have.
        mutating func makeRarities() -> Rarities {
            if let rarities { return rarities }
            let made = Rarities()
            rarities = made
            return made
        }

        /// `fireDate` of a deadline, by the anchor.
        func date(of deadline: LoopInstant) -> Date {
            if deadline == anchor { return anchorDate }
            let distance = deadline.seconds(since: anchor)
            // From the distant past there is no way to count.
            return distance.isFinite ? anchorDate.addingTimeInterval(distance) : LoopClock.date(of: deadline)
        }
    }

    /// What few timers have.
    ///
    /// `@unchecked Sendable`: touched under the lock of its timer only.
    final class Rarities: @unchecked Sendable {
        var tolerance: TimeInterval = 0
        /// The date set by the block itself while the timer fires.
        var moved: LoopInstant?
        var label: String?
        var attachment: (any AnyObject & Sendable)?
    }

    /// What a repeating interval of 0 or less becomes, in seconds (rule TM-7).
    public static let minimumInterval: TimeInterval = 0.0001

    /// Seconds between two firings; 0 for a timer that fires once (rule TM-8).
    public let timeInterval: TimeInterval
    let state: Mutex<State>
    private let live = LiveObject(.timer)
    /// `nonisolated(unsafe)`: guarded by the lock of the loop that holds the timer, and by `state` while none
    /// does; whoever does not find it in that loop's heap must hold `state` to know which loop that is. It
    /// stands here, and not in a table of the loop, so that taking a timer out of the middle of a heap needs
    /// no look-up.
    @exclusivity(unchecked) nonisolated(unsafe) var slots = TimerSlots()

    // MARK: - Making timers

    /// A timer whose first date is `interval` seconds from now (rule TM-9). It is in no loop yet.
    ///
    /// - Parameter block: Called on the loop's thread, with no lock held.
    public convenience init(
        timeInterval interval: TimeInterval, repeats: Bool, block: @escaping @Sendable (Timer) -> Void
    ) {
        let seconds = repeats && !(interval > 0) ? Self.minimumInterval : interval
        let first = LoopClock.now.advanced(bySeconds: seconds)
        self.init(
            first: first, date: LoopClock.date(inSeconds: seconds), interval: interval, repeats: repeats,
            block: block)
    }

    /// A timer whose first date is `date`; one in the past fires in the first pass of a suitable mode.
    public convenience init(
        fire date: Date, interval: TimeInterval, repeats: Bool, block: @escaping @Sendable (Timer) -> Void
    ) {
        self.init(
            first: LoopClock.instant(of: date), date: date, interval: interval, repeats: repeats,
            block: block)
    }

    private init(
        first: LoopInstant, date: Date, interval: TimeInterval, repeats: Bool,
        block: @escaping @Sendable (Timer) -> Void
    ) {
        let interval = repeats ? (interval > 0 ? interval : Self.minimumInterval) : 0
        timeInterval = interval
        state = Mutex(State(deadline: first, anchorDate: date, anchor: first, block: Block(call: block)))
    }

    /// Nanoseconds between two beats; 0 for a timer that fires once.
    private var beat: Int64 { timeInterval > 0 ? max(1, LoopClock.nanoseconds(timeInterval)) : 0 }

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

    // MARK: - State

    public var isValid: Bool { state.withLock { $0.isValid } }

    /// The date of the next firing, possibly past; of an invalid timer, that of its last (rule TM-22).
    ///
    /// Setting it moves the next firing and starts a new grid there; the past means as soon as possible. From
    /// another thread it takes effect at once. In the timer's own block it replaces the next date only if it
    /// is later than the one that has just fired (rules TM-19 to TM-21).
    public var fireDate: Date {
        get {
            state.withLock { state -> Date in
                let next = state.rarities?.moved ?? state.deadline
                return state.date(of: state.isValid || state.lastBeat == .never ? next : state.lastBeat)
            }
        }
        set {
            let instant = LoopClock.instant(of: newValue)
            let loop = state.withLock { state -> RunLoop? in
                guard state.isValid else { return nil }
                // The block may have taken it out of its loop.
                let isFiring =
                    state.loop?.state.withLock { loopState -> Bool in
                        guard !slots.isFiring else { return true }
                        loopState.place(self, deadline: instant)
                        return false
                    } ?? slots.isFiring
                if isFiring {
                    guard instant > state.deadline else { return nil }
                    state.makeRarities().moved = instant
                } else {
                    state.deadline = instant
                }
                state.anchorDate = newValue
                state.anchor = instant
                return state.loop
            }
            loop?.wakeIfForeign()
        }
    }

    /// Seconds by which a firing may be late so that wake-ups can be shared; 0 unless set.
    ///
    /// A repeating timer keeps at most half its interval; a negative value counts as 0 (rule TM-27). Later
    /// dates are still counted from the grid (rule TM-26).
    public var tolerance: TimeInterval {
        get { state.withLock { $0.rarities?.tolerance ?? 0 } }
        set {
            let value = max(0, newValue.isNaN ? 0 : newValue)
            state.withLock {
                $0.makeRarities().tolerance = timeInterval > 0 ? min(value, timeInterval / 2) : value
            }
        }
    }

    /// A name for logs, traces and `whyNotDelivering`; nil at first. Any thread may set it.
    public var label: String? {
        get { state.withLock { $0.rarities?.label } }
        set { state.withLock { $0.makeRarities().label = newValue } }
    }

    /// What the layer above keeps with it, set once: released when it is invalidated or goes.
    package var attachment: (any AnyObject & Sendable)? {
        get { state.withLock { $0.rarities?.attachment } }
        set { state.withLock { if $0.isValid { $0.makeRarities().attachment = newValue } } }
    }

    /// Nothing: timers made with a block carry no user info.
    public var userInfo: Any? { nil }

    // MARK: - Firing by hand, ending

    /// Calls the block at once on the calling thread, whatever the mode (rule TM-18).
    ///
    /// A repeating schedule stays as it is; a timer that fires once is invalidated after it.
    public func fire() {
        let now = LoopClock.now
        let block = state.withLock { state -> Block? in
            guard state.isValid else { return nil }
            state.lastBeat = now
            return state.block
        }
        guard let block else { return }
        block.call(self)
        if timeInterval == 0 { invalidate() }
    }

    /// Stops the timer for ever: it leaves its modes, and its block is released (rule TM-15).
    ///
    /// - Note: From another thread than the loop's it is accepted, but a block already begun may still
    ///   finish.
    public func invalidate() {
        // What is released must not be released under the lock.
        let released = state.withLock { state in
            let old = (loop: state.loop, block: state.block, attachment: state.rarities?.attachment)
            if let loop = old.loop { withdraw(from: loop, isCommon: state.isCommon) }
            state.isValid = false
            state.loop = nil
            state.isCommon = false
            state.block = nil
            state.rarities?.attachment = nil
            return old
        }
        withExtendedLifetime(released) {}
    }

    private func withdraw(from loop: RunLoop, isCommon: Bool) {
        loop.state.withLock { loopState in
            if isCommon { loopState.commonTimers.remove(self) }
            for mode in slots.modes { loopState.remove(self, fromMode: mode) }
        }
    }

    // MARK: - Membership

    /// Under the common name.
    ///
    /// - Returns: The modes that it has to enter.
    func register(in loop: RunLoop) -> [RunLoop.Mode] {
        state.withLock { state in
            guard state.isValid, state.loop == nil || state.loop === loop else { return [] }
            let modes = loop.state.withLock { loopState -> [RunLoop.Mode] in
                guard loopState.isAlive else { return [] }
                loopState.commonTimers.insert(self)
                return loopState.commonModes.map { loopState.modes[$0].name }
            }
            if !modes.isEmpty {
                state.loop = loop
                state.isCommon = true
            }
            return modes
        }
    }

    /// - Returns: The modes that it has to leave; none where it was not registered (rule RL-24).
    func unregister(from loop: RunLoop) -> [RunLoop.Mode] {
        state.withLock { state in
            guard state.loop === loop, state.isCommon else { return [] }
            state.isCommon = false
            return loop.state.withLock { loopState in
                loopState.commonTimers.remove(self)
                if slots.isEmpty { state.loop = nil }
                return loopState.commonModes.map { loopState.modes[$0].name }
            }
        }
    }

    func isMember(of loop: RunLoop, _ mode: RunLoop.Mode) -> Bool {
        state.withLock { state in
            guard state.loop === loop else { return false }
            return loop.state.withLock { loopState in
                loopState.existingIndex(of: mode).map { slots.contains(mode: $0) } ?? false
            }
        }
    }

    /// - Parameter isCommon: Because it is registered under the common name; it does nothing if it is not
    ///   any more, since another thread may have taken it out meanwhile.
    func enter(_ loop: RunLoop, _ mode: RunLoop.Mode, isCommon: Bool = false) {
        let added = state.withLock { state -> Bool in
            guard state.isValid, state.loop == nil || state.loop === loop else { return false }
            guard !isCommon || state.isCommon else { return false }
            let added = loop.state.withLock { loopState -> Bool in
                guard loopState.isAlive else { return false }
                let index = loopState.index(of: mode)
                guard !slots.contains(mode: index) else { return false }
                if slots.isEmpty { slots.order = loopState.nextSequence() }
                slots.add(mode: index)
                loopState.modes[index].timerCount += 1
                if !slots.isFiring {
                    loopState.modes[index].timers.insert(
                        self, deadline: state.deadline, order: slots.order)
                }
                return true
            }
            if added {
                state.loop = loop
                state.threadHasEnded = false
            } else if state.loop == nil {
                state.threadHasEnded = true
            }
            return added
        }
        if added { loop.wakeIfForeign() }
    }

    /// - Parameter isCommon: Because it is not registered under the common name any more; it does nothing
    ///   if it is again.
    func leave(_ loop: RunLoop, _ mode: RunLoop.Mode, isCommon: Bool = false) {
        state.withLock { state in
            guard state.loop === loop, !isCommon || !state.isCommon else { return }
            let isOutOfAll = loop.state.withLock { loopState -> Bool in
                guard let index = loopState.existingIndex(of: mode), slots.contains(mode: index) else {
                    return false
                }
                loopState.remove(self, fromMode: index)
                state.threadHasEnded = !loopState.isAlive
                return slots.isEmpty
            }
            if isOutOfAll && !state.isCommon { state.loop = nil }
        }
    }

    // MARK: - From the pass

    /// Calls the timer, which `loop` has found due in `mode`, and puts it back on its grid. Does nothing
    /// where something has happened to it since: an earlier one of the batch may have invalidated, moved or
    /// removed it, or a nested run fired it.
    func fire(_ due: TimerHeap.Due, in mode: Int, of loop: RunLoop) {
        let block = state.withLock { state -> Block? in
            guard state.isValid, state.loop === loop,
                loop.state.withLock({ $0.take(self, due, from: mode) })
            else {
                return nil
            }
            state.lastBeat = state.deadline
            return state.block
        }
        guard let block else { return }
        Trace.callOut(loop, mode, .timer, label: label, of: self) { block.call(self) }
        guard timeInterval > 0 else { return invalidate() }
        let now = LoopClock.now
        let holder = state.withLock { state -> RunLoop? in
            if let moved = state.rarities?.moved {
                state.deadline = moved
                state.rarities?.moved = nil
            } else {
                var schedule = TimerSchedule(first: state.deadline, interval: beat)
                schedule.advance(past: now)
                state.deadline = schedule.deadline
            }
            // The block may have moved it to another loop.
            guard let holder = state.loop else {
                slots.isFiring = false
                return nil
            }
            holder.state.withLock { loopState in
                slots.isFiring = false
                loopState.place(self, deadline: state.deadline)
            }
            return holder
        }
        if let holder, holder !== loop { holder.wakeUp() }
    }
}

extension LoopState {
    /// Puts a timer where `deadline` belongs, in the heap of each of its modes.
    mutating func place(_ timer: Timer, deadline: LoopInstant) {
        for mode in timer.slots.modes {
            takeOutOfHeap(timer, mode: mode)
            modes[mode].timers.insert(timer, deadline: deadline, order: timer.slots.order)
        }
    }

    mutating func remove(_ timer: Timer, fromMode mode: Int) {
        takeOutOfHeap(timer, mode: mode)
        timer.slots.remove(mode: mode)
        modes[mode].timerCount -= 1
    }

    /// A timer that was found due leaves its heaps to be fired, if nothing has happened to it since and it is
    /// still in `mode`.
    mutating func take(_ timer: Timer, _ due: TimerHeap.Due, from mode: Int) -> Bool {
        guard modes[mode].timers.isStill(due) else { return false }
        for mode in timer.slots.modes { takeOutOfHeap(timer, mode: mode) }
        timer.slots.isFiring = true
        return true
    }

    private mutating func takeOutOfHeap(_ timer: Timer, mode: Int) {
        guard let place = timer.slots.place(in: mode) else { return }
        modes[mode].timers.remove(at: place)
        timer.slots.clearPlace(in: mode)
    }
}
