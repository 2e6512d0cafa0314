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

    /// A program may have a million timers, so what few of them have stands elsewhere. (The order of its fields leaves
    /// no gaps.)
    struct State {
        /// The date that fires next, or is firing now.
        var deadline: LoopInstant
        /// `loop`: not retained, since every timer of a loop, a million of them, would count it in and out. A loop
        /// that ends takes out its timers first, under the lock of each, and sets this to nil there: under that lock
        /// it is alive, as long as the timer is in it. Who takes the timer out may be leaving the loop's own lock when
        /// that loop goes: a Mutex touches nothing of itself after the step that lets others in.
        private var unretainedLoop: Unmanaged<RunLoop>?
        private var content: Content?
        private var marks: Marks = .isValid

        private enum Content {
            case block(Block)
            /// With the block.
            case rarities(Rarities)
        }

        private struct Marks: OptionSet {
            let rawValue: UInt8

            static let isValid = Marks(rawValue: 1)
            static let isCommon = Marks(rawValue: 2)
            static let threadHasEnded = Marks(rawValue: 4)
            static let isCalled = Marks(rawValue: 8)
            static let isOvertaken = Marks(rawValue: 16)

            subscript(mark: Marks) -> Bool {
                get { contains(mark) }
                set { if newValue { formUnion(mark) } else { subtract(mark) } }
            }
        }

        init(deadline: LoopInstant, block: Block) {
            self.deadline = deadline
            content = .block(block)
        }

        init(deadline: LoopInstant, rarities: Rarities) {
            self.deadline = deadline
            content = .rarities(rarities)
        }

        var isValid: Bool { marks[.isValid] }

        /// Registered in its loop under the common name, whatever modes it has been taken out of since.
        var isCommon: Bool {
            get { marks[.isCommon] }
            set { marks[.isCommon] = newValue }
        }

        /// The loop that held it last has lost its thread.
        var threadHasEnded: Bool {
            get { marks[.threadHasEnded] }
            set { marks[.threadHasEnded] = newValue }
        }

        /// Its block is being called.
        var isCalled: Bool {
            get { marks[.isCalled] }
            set { marks[.isCalled] = newValue }
        }

        /// A date was set between the pass that found it due and the call.
        var isOvertaken: Bool {
            get { marks[.isOvertaken] }
            set { marks[.isOvertaken] = newValue }
        }

        /// The loop that holds it.
        var loop: RunLoop? {
            get { unretainedLoop?.takeUnretainedValue() }
            set { unretainedLoop = newValue.map { .passUnretained($0) } }
        }

        /// As `loop`, without counting the reference.
        @inline(__always)
        func withLoop(_ body: (RunLoop) -> Void) { unretainedLoop?._withUnsafeGuaranteedRef(body) }

        @inline(__always)
        func isHeld(by loop: RunLoop) -> Bool {
            unretainedLoop?.toOpaque() == Unmanaged.passUnretained(loop).toOpaque()
        }

        /// Whether `loop` may hold it: it is valid, and no other does (rule TM-13).
        @inline(__always)
        func mayEnter(_ loop: RunLoop) -> Bool { isValid && (unretainedLoop == nil || isHeld(by: loop)) }

        var block: Block? {
            switch content {
            case .block(let block): block
            case .rarities(let rarities): rarities.block
            case nil: nil
            }
        }

        var rarities: Rarities? { if case .rarities(let rarities) = content { rarities } else { nil } }

        /// To write to what few timers have.
        mutating func makeRarities() -> Rarities {
            if let rarities { return rarities }
            let made = Rarities(block: block)
            content = .rarities(made)
            return made
        }

        /// - Returns: What is to be released without the lock.
        mutating func invalidate() -> (Block?, (any AnyObject & Sendable)?) {
            marks = marks.subtracting([.isValid, .isCommon])
            unretainedLoop = nil
            switch content {
            case .block(let block):
                content = nil
                return (block, nil)
            case .rarities(let rarities):
                return (rarities.block.take(), rarities.attachment.take())
            case nil:
                return (nil, nil)
            }
        }

        /// `fireDate` of a deadline, by the anchor. What was made with an interval gets one when it is first asked.
        mutating func date(of moment: LoopInstant) -> Date {
            let rarities = makeRarities()
            let anchor =
                rarities.anchor ?? Anchor(moment: deadline, date: LoopClock.machineDate(of: deadline))
            rarities.anchor = anchor
            if moment == anchor.moment { return anchor.date }
            let distance = moment.seconds(since: anchor.moment)
            // From the distant past there is no way to count.
            return distance.isFinite ? anchor.date.addingTimeInterval(distance) : LoopClock.date(of: moment)
        }
    }

    /// A moment and its date, so that a date reads back as it was handed in.
    struct Anchor {
        let moment: LoopInstant
        let date: Date
    }

    /// What few timers have: those that repeat, or whose date was given.
    ///
    /// `@unchecked Sendable`: touched under the lock of its timer only.
    final class Rarities: @unchecked Sendable {
        @exclusivity(unchecked) var block: Block?
        /// `timeInterval`, which never changes.
        @exclusivity(unchecked) var interval: TimeInterval = 0
        @exclusivity(unchecked) var anchor: Anchor?
        /// When it last fired, if that is not `State.deadline`: a beat of the grid, or the moment at which it
        /// was fired by hand.
        @exclusivity(unchecked) var lastBeat: LoopInstant?
        @exclusivity(unchecked) var tolerance: TimeInterval = 0
        /// The date set by the block itself while the timer fires.
        @exclusivity(unchecked) var moved: LoopInstant?
        @exclusivity(unchecked) var label: String?
        @exclusivity(unchecked) var attachment: (any AnyObject & Sendable)?

        init(block: Block?) {
            self.block = block
        }
    }

    /// What a repeating interval of 0 or less becomes, in seconds (rule TM-7).
    public static let minimumInterval: TimeInterval = 0.0001

    let state: Mutex<State>
    private let live = LiveObject(.timer)
    /// `nonisolated(unsafe)`: guarded by the lock of the loop that holds the timer, and by `state` while none
    /// does; whoever does not find it in that loop's heap must hold `state` to know which loop that is. It
    /// stands here, and not in a table of the loop, so that taking a timer out needs no look-up.
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
        // Nobody may ever ask for the date, and the clock is read for it then. Not where it could not be told any more.
        let isTold = LoopClock.isMachines && abs(seconds) < Self.longestUntold
        self.init(
            first: first, date: isTold ? nil : LoopClock.date(inSeconds: seconds), interval: interval,
            repeats: repeats, block: block)
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
        first: LoopInstant, date: Date?, interval: TimeInterval, repeats: Bool,
        block: @escaping @Sendable (Timer) -> Void
    ) {
        guard repeats || date != nil else {
            state = Mutex(State(deadline: first, block: Block(call: block)))
            return
        }
        let rarities = Rarities(block: Block(call: block))
        if let date { rarities.anchor = Anchor(moment: first, date: date) }
        if repeats { rarities.interval = interval > 0 ? interval : Self.minimumInterval }
        state = Mutex(State(deadline: first, rarities: rarities))
    }

    /// Seconds; a moment further away may be past what the clock can count.
    private static let longestUntold: TimeInterval = 1e9

    /// Seconds between two firings; 0 for a timer that fires once (rule TM-8).
    public var timeInterval: TimeInterval { state.withLock { $0.rarities?.interval ?? 0 } }

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
    ///
    /// The date of a timer that was made with an interval is told by the wall clock as it stands when somebody
    /// asks first, and then stays: if the clock was set before, it is the date by the new time.
    public var fireDate: Date {
        get {
            state.withLock { state -> Date in
                let next = state.rarities?.moved ?? state.deadline
                return state.date(of: state.isValid ? next : state.rarities?.lastBeat ?? next)
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
                        loopState.setDate(instant, of: self)
                        return false
                    } ?? slots.isFiring
                if isFiring && state.isCalled {
                    guard instant > state.deadline else { return nil }
                    let rarities = state.makeRarities()
                    rarities.moved = instant
                    rarities.lastBeat = state.deadline
                } else {
                    state.isOvertaken = isFiring
                    state.deadline = instant
                }
                state.makeRarities().anchor = Anchor(moment: instant, date: newValue)
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
            state.withLock { state in
                let rarities = state.makeRarities()
                rarities.tolerance = rarities.interval > 0 ? min(value, rarities.interval / 2) : value
            }
        }
    }

    /// A name for logs, traces and `whyNotDelivering`; nil at first. Any thread may set it.
    public var label: String? {
        get { state.withLock { $0.rarities?.label } }
        set {
            state.withLock { if newValue != nil || $0.rarities != nil { $0.makeRarities().label = newValue } }
        }
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
        let (block, repeats) = state.withLock { state -> (Block?, Bool) in
            guard state.isValid else { return (nil, false) }
            let rarities = state.makeRarities()
            rarities.lastBeat = now
            return (rarities.block, rarities.interval > 0)
        }
        guard let block else { return }
        block.call(self)
        if !repeats { invalidate() }
    }

    /// Stops the timer for ever: it leaves its modes, and its block is released (rule TM-15).
    ///
    /// - Note: From another thread than the loop's it is accepted, but a block already begun may still
    ///   finish.
    public func invalidate() {
        // What is released must not be released under the lock.
        let released = state.withLock { state in
            state.withLoop { withdraw(from: $0, isCommon: state.isCommon) }
            return state.invalidate()
        }
        withExtendedLifetime(released) {}
    }

    private func withdraw(from loop: RunLoop, isCommon: Bool) {
        loop.state.withLock { loopState in
            if isCommon { loopState.commonTimers.remove(self) }
            while let mode = slots.first { loopState.remove(self, fromMode: mode) }
        }
    }

    // MARK: - Membership

    /// Under the common name.
    ///
    /// - Returns: The modes that it has to enter.
    func register(in loop: RunLoop) -> [RunLoop.Mode] {
        state.withLock { state in
            guard state.mayEnter(loop) else { return [] }
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
            guard state.isHeld(by: loop), state.isCommon else { return [] }
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
            guard state.isHeld(by: loop) else { return false }
            return loop.state.withLock { loopState in
                loopState.existingIndex(of: mode).map { slots.contains($0) } ?? false
            }
        }
    }

    /// - Parameter isCommon: Because it is registered under the common name; it does nothing if it is not
    ///   any more, since another thread may have taken it out meanwhile.
    func enter(_ loop: RunLoop, _ mode: RunLoop.Mode, isCommon: Bool = false) {
        let added = state.withLock { state -> Bool in
            guard state.mayEnter(loop), !isCommon || state.isCommon else { return false }
            let added = loop.state.withLock { loopState -> Bool in
                guard loopState.isAlive else { return false }
                return loopState.add(self, toMode: loopState.index(of: mode), deadline: state.deadline)
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
        loop.warnUnlessRun()
    }

    /// - Parameter isCommon: Because it is not registered under the common name any more; it does nothing
    ///   if it is again.
    func leave(_ loop: RunLoop, _ mode: RunLoop.Mode, isCommon: Bool = false) {
        state.withLock { state in
            guard state.isHeld(by: loop), !isCommon || !state.isCommon else { return }
            let isOutOfAll = loop.state.withLock { loopState -> Bool in
                guard let index = loopState.existingIndex(of: mode),
                    loopState.remove(self, fromMode: index)
                else {
                    return false
                }
                state.threadHasEnded = !loopState.isAlive
                return slots.isEmpty
            }
            if isOutOfAll && !state.isCommon { state.loop = nil }
        }
    }

    // MARK: - From the pass

    /// Calls the timer, which `loop` has taken as due in `mode`, and puts it back on its grid.
    func fire(in mode: Int, of loop: RunLoop) {
        let (block, repeats) = state.withLock { state -> (Block?, Bool) in
            // Another thread may have changed it since it was taken.
            guard state.isValid, state.isHeld(by: loop), !state.isOvertaken else { return (nil, false) }
            state.isCalled = true
            guard let rarities = state.rarities else { return (state.block, false) }
            rarities.lastBeat = state.deadline
            return (rarities.block, rarities.interval > 0)
        }
        if let block {
            Trace.callOut(loop, mode, .timer, label: label, of: self) { block.call(self) }
            guard repeats else { return invalidate() }
        }
        let now = LoopClock.now
        let holder = state.withLock { state -> RunLoop? in
            if block != nil { state.advance(past: now) }
            (state.isCalled, state.isOvertaken) = (false, false)
            // The block may have moved it to another loop.
            guard let holder = state.loop else {
                slots.isFiring = false
                return nil
            }
            holder.state.withLock { $0.putBack(self, state.deadline) }
            return holder
        }
        if let holder, holder !== loop { holder.wakeUp() }
    }
}

extension Timer.State {
    /// After a firing: to the date that the block has set, or to the next one of the grid.
    fileprivate mutating func advance(past now: LoopInstant) {
        let rarities = makeRarities()
        rarities.lastBeat = deadline
        if let moved = rarities.moved {
            deadline = moved
            rarities.moved = nil
        } else {
            let beat = max(1, LoopClock.nanoseconds(rarities.interval))
            var schedule = TimerSchedule(first: deadline, interval: beat)
            schedule.advance(past: now)
            deadline = schedule.deadline
        }
    }
}
