internal import RondoMutex

/// Calls a block once at a date, or again and again on a grid of dates, on the thread of the run loop it was
/// added to, while that loop runs in a mode it was added in.
///
/// Never early; late only as long as the loop is busy or in another mode, and lateness does not add up
/// (rules TM-1 to TM-6). Times are kept on the monotonic clock: setting the wall clock moves nothing.
/// Retained by its loop until it is invalidated. The counterpart of `NSTimer` and `CFRunLoopTimer`.
public final class Timer: NSObject, TimerHeapMember, Sendable {
    /// In a struct of its own, since a bare closure that leaves a lock's closure as its result is put into a
    /// new one, which is an allocation a call.
    struct Block: Sendable {
        let call: @Sendable (Timer) -> Void
    }

    struct Marks: OptionSet {
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

    /// Where it is, or all that few have, which knows that too: one word.
    ///
    /// The loop is not retained, since every timer of a loop, a million of them, would count it in and out. A loop
    /// that ends takes out its timers first, under the lock of each, and sets this to nil there: under that lock
    /// it is alive, as long as the timer is in it. Who takes the timer out may be leaving the loop's own lock when
    /// that loop goes: a Mutex touches nothing of itself after the step that lets others in.
    private struct Place {
        /// The rarities' address has 1 added. (An enum would mark the upper bits of the pointer, and whoever looks for leaks
        /// would not find the object by it.)
        private let word: UInt

        static let nowhere = Place(word: 0)

        static func loop(_ loop: Unmanaged<RunLoop>) -> Place {
            Place(word: UInt(bitPattern: loop.toOpaque()))
        }

        /// Owned: released when the timer goes. (So that a look at it counts no reference.)
        static func rarities(_ rarities: Unmanaged<Rarities>) -> Place {
            Place(word: UInt(bitPattern: rarities.toOpaque()) + 1)
        }

        /// Nil: it is nowhere, or they know it.
        var loop: Unmanaged<RunLoop>? {
            @inline(__always) get {
                word & 1 == 0 ? UnsafeRawPointer(bitPattern: word).map { .fromOpaque($0) } : nil
            }
        }

        var rarities: Unmanaged<Rarities>? {
            @inline(__always) get {
                word & 1 == 1 ? UnsafeRawPointer(bitPattern: word - 1).map { .fromOpaque($0) } : nil
            }
        }
    }

    /// What the lock guards, for as long as somebody holds it.
    struct State: ~Copyable {
        /// Alive, and not counted: the lock is its own.
        fileprivate let timer: Unmanaged<Timer>
        fileprivate var marks: Marks

        private var place: Place {
            @inline(__always) get { timer._withUnsafeGuaranteedRef { $0.place } }
            @inline(__always) nonmutating set { timer._withUnsafeGuaranteedRef { $0.place = newValue } }
        }

        private var unretainedLoop: Unmanaged<RunLoop>? {
            @inline(__always) get {
                let place = place
                guard let rarities = place.rarities else { return place.loop }
                return rarities._withUnsafeGuaranteedRef { $0.unretainedLoop }
            }
            nonmutating set {
                if let rarities = place.rarities {
                    rarities._withUnsafeGuaranteedRef { $0.unretainedLoop = newValue }
                } else {
                    place = newValue.map { .loop($0) } ?? .nowhere
                }
            }
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
            nonmutating set { unretainedLoop = newValue.map { .passUnretained($0) } }
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

        var block: Block? { timer._withUnsafeGuaranteedRef { $0.block } }

        /// The date that fires next, or is firing now.
        var deadline: LoopInstant {
            timer._withUnsafeGuaranteedRef { timer in
                guard let loop else { return timer.slots.deadline }
                return loop.state.withLock { $0.deadline(of: timer) }
            }
        }

        /// What few timers have, to read it; nil: it has nothing of the kind.
        @inline(__always)
        func withRarities<Result>(_ body: (Rarities) -> Result) -> Result? {
            guard let rarities = place.rarities else { return nil }
            return rarities._withUnsafeGuaranteedRef(body)
        }

        /// The same to write to it.
        @inline(__always)
        @discardableResult
        func withMadeRarities<Result>(_ body: (Rarities) -> Result) -> Result {
            if let rarities = place.rarities { return rarities._withUnsafeGuaranteedRef(body) }
            let made = Rarities()
            made.unretainedLoop = unretainedLoop
            place = .rarities(.passRetained(made))
            return body(made)
        }

        /// - Returns: What is to be released without the lock.
        fileprivate mutating func invalidate() -> (Block?, (any AnyObject & Sendable)?, UserInfo?) {
            marks = marks.subtracting([.isValid, .isCommon])
            unretainedLoop = nil
            let (attachment, userInfo) =
                withRarities { ($0.attachment.take(), $0.userInfo.take()) } ?? (nil, nil)
            return (timer._withUnsafeGuaranteedRef { $0.block.take() }, attachment, userInfo)
        }

        /// `fireDate` of a moment, by the anchor. What was made with an interval gets one when it is first asked, at
        /// its deadline.
        func date(of moment: LoopInstant, deadline: LoopInstant) -> Date {
            let anchor = withMadeRarities { rarities in
                let anchor =
                    rarities.anchor ?? Anchor(moment: deadline, date: LoopClock.machineDate(of: deadline))
                rarities.anchor = anchor
                return anchor
            }
            if moment == anchor.moment { return anchor.date }
            let distance = moment.seconds(since: anchor.moment)
            // From the distant past there is no way to count.
            return distance.isFinite ? anchor.date.addingTimeInterval(distance) : LoopClock.date(of: moment)
        }
    }

    /// The lock of a timer. A Mutex around all that it guards would leave gaps: a program may have a million timers,
    /// and each takes a piece of 64 bytes from the heap.
    struct Guard {
        /// Alive: it is asked for its lock.
        fileprivate let timer: Unmanaged<Timer>

        @inline(__always)
        func withLock<Result: Sendable>(_ body: (inout State) -> Result) -> Result {
            timer._withUnsafeGuaranteedRef { [timer] in
                $0.marks.withLock { marks in
                    var state = State(timer: timer, marks: marks)
                    defer { marks = state.marks }
                    return body(&state)
                }
            }
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
        /// See `Place`.
        @exclusivity(unchecked) var unretainedLoop: Unmanaged<RunLoop>?
        /// `timeInterval`, which never changes.
        @exclusivity(unchecked) var interval: TimeInterval = 0
        @exclusivity(unchecked) var anchor: Anchor?
        /// When it last fired, if that is not its deadline: a beat of the grid, or the moment at which it
        /// was fired by hand.
        @exclusivity(unchecked) var lastBeat: LoopInstant?
        @exclusivity(unchecked) var tolerance: TimeInterval = 0
        /// The date set by the block itself while the timer fires.
        @exclusivity(unchecked) var moved: LoopInstant?
        @exclusivity(unchecked) var label: String?
        @exclusivity(unchecked) var attachment: (any AnyObject & Sendable)?
        @exclusivity(unchecked) var userInfo: UserInfo?
    }

    /// In an object of its own, which is one word here.
    final class UserInfo: Sendable {
        let value: any Sendable

        init(_ value: any Sendable) { self.value = value }
    }

    /// What a repeating interval of 0 or less becomes, in seconds (rule TM-7).
    public static let minimumInterval: TimeInterval = 0.0001

    // In this order they leave no gaps. `nonisolated(unsafe)`: guarded by the lock, which stands in `marks`, but for the
    // slots, which are guarded by the lock of the loop that holds the timer, and by the timer's while none does; whoever
    // does not find it in that loop's heap must hold the timer's to know which loop that is. They stand here, and not in a
    // table of the loop, so that taking a timer out needs no look-up.

    private let marks = Mutex(Marks.isValid)
    @exclusivity(unchecked) nonisolated(unsafe) private var slotBits: UInt16
    @exclusivity(unchecked) nonisolated(unsafe) private var place = Place.nowhere
    @exclusivity(unchecked) nonisolated(unsafe) private var block: Block?
    @exclusivity(unchecked) nonisolated(unsafe) private var slotWord: UInt64
    private let live = LiveObject(.timer)

    var slots: TimerSlots {
        @inline(__always) get { TimerSlots(bits: slotBits, word: slotWord) }
        @inline(__always) set { (slotBits, slotWord) = (newValue.bits, newValue.word) }
    }

    var state: Guard {
        @inline(__always) get { Guard(timer: .passUnretained(self)) }
    }

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

    /// `Timer(timeInterval:repeats:block:)` with something for its block to find in `userInfo`.
    ///
    /// - Parameter userInfo: Kept until the timer is invalidated or goes. Any thread may read it, so it has to be
    ///   Sendable; a dictionary of different things is written `[...] as [String: any Sendable]`.
    public convenience init(
        timeInterval interval: TimeInterval, userInfo: (any Sendable)?, repeats: Bool,
        block: @escaping @Sendable (Timer) -> Void
    ) {
        self.init(timeInterval: interval, repeats: repeats, block: block)
        keep(userInfo)
    }

    /// `Timer(fire:interval:repeats:block:)` with something for its block to find in `userInfo`.
    ///
    /// - Parameter userInfo: Kept until the timer is invalidated or goes.
    public convenience init(
        fire date: Date, interval: TimeInterval, userInfo: (any Sendable)?, repeats: Bool,
        block: @escaping @Sendable (Timer) -> Void
    ) {
        self.init(fire: date, interval: interval, repeats: repeats, block: block)
        keep(userInfo)
    }

    private func keep(_ userInfo: (any Sendable)?) {
        guard let userInfo else { return }
        let kept = UserInfo(userInfo)
        state.withLock { state in state.withMadeRarities { $0.userInfo = kept } }
    }

    private init(
        first: LoopInstant, date: Date?, interval: TimeInterval, repeats: Bool,
        block: @escaping @Sendable (Timer) -> Void
    ) {
        let slots = TimerSlots(deadline: first)
        (slotBits, slotWord) = (slots.bits, slots.word)
        self.block = Block(call: block)
        guard repeats || date != nil else { return }
        let rarities = Rarities()
        if let date { rarities.anchor = Anchor(moment: first, date: date) }
        if repeats { rarities.interval = interval > 0 ? interval : Self.minimumInterval }
        place = .rarities(.passRetained(rarities))
    }

    deinit {
        if let rarities = place.rarities { rarities.release() }
    }

    /// Seconds; a moment further away may be past what the clock can count.
    private static let longestUntold: TimeInterval = 1e9

    /// Seconds between two firings; 0 for a timer that fires once (rule TM-8).
    public var timeInterval: TimeInterval {
        state.withLock { state in state.withRarities { $0.interval } ?? 0 }
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

    /// As `scheduledTimer(withTimeInterval:repeats:block:)`, with something for its block to find in `userInfo`.
    ///
    /// - Parameter userInfo: Kept until the timer is invalidated or goes.
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
                let deadline = state.deadline
                let (moved, lastBeat) = state.withRarities { ($0.moved, $0.lastBeat) } ?? (nil, nil)
                let next = moved ?? deadline
                let moment = state.isValid ? next : lastBeat ?? next
                return state.date(of: moment, deadline: deadline)
            }
        }
        set {
            let instant = LoopClock.instant(of: newValue)
            let loop = state.withLock { state -> RunLoop? in
                guard state.isValid else { return nil }
                if state.isCalled {
                    // Without this lock nobody changes what is firing; the block may have taken it out of its loop.
                    let deadline = slots.deadline
                    guard instant > deadline else { return nil }
                    state.withMadeRarities { ($0.moved, $0.lastBeat) = (instant, deadline) }
                } else if let loop = state.loop {
                    state.isOvertaken = loop.state.withLock { loopState in
                        loopState.setDate(instant, of: self)
                        return slots.isFiring
                    }
                } else {
                    state.isOvertaken = slots.isFiring
                    slots.deadline = instant
                }
                state.withMadeRarities { $0.anchor = Anchor(moment: instant, date: newValue) }
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
        get { state.withLock { state in state.withRarities { $0.tolerance } ?? 0 } }
        set {
            let value = max(0, newValue.isNaN ? 0 : newValue)
            state.withLock { state in
                state.withMadeRarities { rarities in
                    rarities.tolerance = rarities.interval > 0 ? min(value, rarities.interval / 2) : value
                }
            }
        }
    }

    /// A name for logs, traces and `whyNotDelivering`; nil at first. Any thread may set it.
    public var label: String? {
        get { state.withLock { state in state.withRarities { $0.label } ?? nil } }
        set {
            state.withLock { state in
                if newValue == nil {
                    _ = state.withRarities { $0.label = nil }
                } else {
                    state.withMadeRarities { $0.label = newValue }
                }
            }
        }
    }

    /// What the layer above keeps with it, set once: released when it is invalidated or goes.
    package var attachment: (any AnyObject & Sendable)? {
        get { state.withLock { state in state.withRarities { $0.attachment } ?? nil } }
        set {
            state.withLock { state in
                if state.isValid { state.withMadeRarities { $0.attachment = newValue } }
            }
        }
    }

    /// What the timer was made with for its block to find; nil where there is nothing, and once the timer is
    /// invalid, which lets go of it. Any thread.
    public var userInfo: (any Sendable)? {
        let kept = state.withLock { state in state.withRarities { $0.userInfo } ?? nil }
        return kept?.value
    }

    /// `fireDate` of one that waits for `deadline`.
    func fireDate(at deadline: LoopInstant) -> Date {
        state.withLock { $0.date(of: deadline, deadline: deadline) }
    }

    // MARK: - Firing by hand, ending

    /// Calls the block at once on the calling thread, whatever the mode (rule TM-18).
    ///
    /// A repeating schedule stays as it is; a timer that fires once is invalidated after it.
    public func fire() {
        let now = LoopClock.now
        let (block, repeats) = state.withLock { state -> (Block?, Bool) in
            guard state.isValid else { return (nil, false) }
            let repeats = state.withMadeRarities { rarities in
                rarities.lastBeat = now
                return rarities.interval > 0
            }
            return (state.block, repeats)
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
}
