internal import RondoMutex

/// The fields that a timer's lock guards, valid while the lock is held. `Timer` declares their storage, so
/// that it has no gaps, and only this changes it.
struct TimerState: ~Copyable {
    /// `Unmanaged`: the caller of `Guard.withLock` retains the timer meanwhile. With references here and
    /// in `Guard` bench-guard's timer.scheduled takes 9 % more instructions.
    let timer: Unmanaged<Timer>
    var marks: Marks

    private var loopOrDetails: LoopOrDetails {
        get { timer._withUnsafeGuaranteedRef { $0.loopOrDetails } }
        nonmutating set { timer._withUnsafeGuaranteedRef { $0.loopOrDetails = newValue } }
    }

    /// `Unmanaged`: `LoopOrDetails` tells what keeps the loop alive, and what that saves.
    private var unretainedLoop: Unmanaged<RunLoop>? {
        get {
            let loopOrDetails = loopOrDetails
            guard let details = loopOrDetails.details else { return loopOrDetails.loop }
            return details._withUnsafeGuaranteedRef { $0.unretainedLoop }
        }
        nonmutating set {
            if let details = loopOrDetails.details {
                details._withUnsafeGuaranteedRef { $0.unretainedLoop = newValue }
            } else {
                loopOrDetails = newValue.map { .loop($0) } ?? .neither
            }
        }
    }

    var isValid: Bool { marks[.isValid] }

    /// The timer is registered in its loop under the common name, even if it has been removed from single
    /// modes since.
    var isCommon: Bool {
        get { marks[.isCommon] }
        set { marks[.isCommon] = newValue }
    }

    /// The thread of the loop that last held the timer has ended.
    var threadHasEnded: Bool {
        get { marks[.threadHasEnded] }
        set { marks[.threadHasEnded] = newValue }
    }

    /// The block is being called.
    var isCalled: Bool {
        get { marks[.isCalled] }
        set { marks[.isCalled] = newValue }
    }

    /// A date was set after the pass found the timer due and before the call.
    var isOvertaken: Bool {
        get { marks[.isOvertaken] }
        set { marks[.isOvertaken] = newValue }
    }

    /// The loop that holds the timer.
    var loop: RunLoop? {
        get { unretainedLoop?.takeUnretainedValue() }
        nonmutating set { unretainedLoop = newValue.map { .passUnretained($0) } }
    }

    /// Calls `body` with the loop, without reference counting: with it bench-guard's timer.cancelled takes
    /// 6 % more instructions.
    func withLoop(_ body: (RunLoop) -> Void) { unretainedLoop?._withUnsafeGuaranteedRef(body) }

    func isHeld(by loop: RunLoop) -> Bool {
        // Addresses alone are compared; neither loop is used.
        unretainedLoop?.toOpaque() == Unmanaged.passUnretained(loop).toOpaque()
    }

    /// Whether the timer may be added to `loop`: it is valid, and no other loop holds it (rule TM-13).
    func mayEnter(_ loop: RunLoop) -> Bool { isValid && (unretainedLoop == nil || isHeld(by: loop)) }

    var block: Block? { timer._withUnsafeGuaranteedRef { $0.block } }

    /// The date that fires next, or is firing now.
    var deadline: LoopInstant {
        timer._withUnsafeGuaranteedRef { timer in
            guard let loop else { return timer.registration.deadline }
            return loop.state.withLock { $0.deadline(of: timer) }
        }
    }

    /// Reads the details; returns nil if the timer has none.
    func withDetails<Result>(_ body: (Details) -> Result) -> Result? {
        guard let details = loopOrDetails.details else { return nil }
        return details._withUnsafeGuaranteedRef(body)
    }

    /// Changes the details, which are allocated on first use: most timers never need them.
    @discardableResult
    func updateDetails<Result>(_ body: (Details) -> Result) -> Result {
        if let details = loopOrDetails.details { return details._withUnsafeGuaranteedRef(body) }
        let made = Details(interval: 0)
        made.unretainedLoop = unretainedLoop
        loopOrDetails = .details(.passRetained(made))
        return body(made)
    }

    /// - Returns: The objects to release after the lock.
    mutating func invalidate() -> (Block?, (any AnyObject & Sendable)?, UserInfo?) {
        marks = marks.subtracting([.isValid, .isCommon])
        unretainedLoop = nil
        let (attachment, userInfo) =
            withDetails { ($0.attachment.take(), $0.userInfo.take()) } ?? (nil, nil)
        return (timer._withUnsafeGuaranteedRef { $0.block.take() }, attachment, userInfo)
    }

    // MARK: - The fields

    /// The block of a timer. A struct, because a bare closure returned from a lock's closure is wrapped in
    /// another closure, one allocation for each call.
    struct Block: Sendable {
        let call: @Sendable (Timer) -> Void
    }

    /// Conditions of a timer; `TimerState` documents each.
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

    /// The loop that holds a timer, or the timer's details, which then store the loop: one word.
    ///
    /// `Unmanaged`, and the loop unretained: otherwise each of its timers would count a reference to the
    /// loop. This is safe because a loop that ends first removes its timers, under the lock of each, and sets
    /// this to nil there. So under the timer's lock the loop is alive as long as the timer is in it. The
    /// thread that removes the timer may still be leaving the loop's own lock when that loop is freed; this
    /// is safe because a Mutex touches nothing of itself after the step that admits others.
    ///
    /// One word instead of two, the registration in two fields and a lock without gaps make a timer 56 bytes
    /// instead of 72: a million one-shot timers (W1) take 15 MiB less.
    struct LoopOrDetails {
        /// The address of the loop, or the address of the details plus 1. (An enum would mark the upper bits
        /// of the pointer, and a leak checker would not recognise it as a pointer.)
        private let word: UInt

        static let neither = LoopOrDetails(word: 0)

        static func loop(_ loop: Unmanaged<RunLoop>) -> LoopOrDetails {
            LoopOrDetails(word: UInt(bitPattern: loop.toOpaque()))
        }

        /// Owned: released in the timer's `deinit`. Reading the details needs no reference counting.
        static func details(_ details: Unmanaged<Details>) -> LoopOrDetails {
            LoopOrDetails(word: UInt(bitPattern: details.toOpaque()) + 1)
        }

        /// Nil if the timer is in no loop, or its details store the loop.
        var loop: Unmanaged<RunLoop>? {
            word & 1 == 0 ? UnsafeRawPointer(bitPattern: word).map { .fromOpaque($0) } : nil
        }

        var details: Unmanaged<Details>? {
            word & 1 == 1 ? UnsafeRawPointer(bitPattern: word - 1).map { .fromOpaque($0) } : nil
        }
    }

    /// The part of a timer that is allocated only for timers that repeat, or have a date, label, tolerance or
    /// user info.
    ///
    /// `@unchecked Sendable`: touched only under the lock of its timer, by the timer and by its firing
    /// (`TimerFiring`), which is why other files can change it.
    final class Details: @unchecked Sendable {
        /// See `LoopOrDetails`.
        var unretainedLoop: Unmanaged<RunLoop>?
        var dates: TimerDates
        var label: String?
        var attachment: (any AnyObject & Sendable)?
        var userInfo: UserInfo?

        /// - Parameter interval: Seconds; 0 for a timer that fires once.
        init(interval: TimeInterval) { dates = TimerDates(interval: interval) }
    }

    /// The user info in an object: one word, where an existential takes five.
    final class UserInfo: Sendable {
        let value: any Sendable

        init(_ value: any Sendable) { self.value = value }
    }

    // MARK: - The lock

    /// The lock of a timer. A Mutex around all the fields it guards would leave gaps: see `LoopOrDetails`.
    struct Guard {
        /// `Unmanaged`: the caller retains the timer while it uses this; see `TimerState.timer`.
        let timer: Unmanaged<Timer>

        func withLock<Result: Sendable>(_ body: (inout TimerState) -> Result) -> Result {
            timer._withUnsafeGuaranteedRef { [timer] in
                $0.marks.withLock { marks in
                    var state = TimerState(timer: timer, marks: marks)
                    defer { marks = state.marks }
                    return body(&state)
                }
            }
        }
    }
}
