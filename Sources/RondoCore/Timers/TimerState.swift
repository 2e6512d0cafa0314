internal import RondoMutex

// What the lock of a timer guards. `Timer` declares the storage, so that it has no gaps, and only `State` changes it.
extension Timer {
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
    struct LoopOrDetails {
        /// The details' address has 1 added. (An enum would mark the upper bits of the pointer, and whoever looks for leaks
        /// would not find the object by it.)
        private let word: UInt

        static let neither = LoopOrDetails(word: 0)

        static func loop(_ loop: Unmanaged<RunLoop>) -> LoopOrDetails {
            LoopOrDetails(word: UInt(bitPattern: loop.toOpaque()))
        }

        /// Owned: released when the timer goes. (So that a look at it counts no reference.)
        static func details(_ details: Unmanaged<Details>) -> LoopOrDetails {
            LoopOrDetails(word: UInt(bitPattern: details.toOpaque()) + 1)
        }

        /// Nil: it is neither, or they know it.
        var loop: Unmanaged<RunLoop>? {
            get {
                word & 1 == 0 ? UnsafeRawPointer(bitPattern: word).map { .fromOpaque($0) } : nil
            }
        }

        var details: Unmanaged<Details>? {
            get {
                word & 1 == 1 ? UnsafeRawPointer(bitPattern: word - 1).map { .fromOpaque($0) } : nil
            }
        }
    }

    /// What the lock guards, for as long as somebody holds it.
    struct State: ~Copyable {
        /// Alive, and not counted: the lock is its own.
        let timer: Unmanaged<Timer>
        var marks: Marks

        private var loopOrDetails: LoopOrDetails {
            get { timer._withUnsafeGuaranteedRef { $0.loopOrDetails } }
            nonmutating set { timer._withUnsafeGuaranteedRef { $0.loopOrDetails = newValue } }
        }

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
        func withLoop(_ body: (RunLoop) -> Void) { unretainedLoop?._withUnsafeGuaranteedRef(body) }

        func isHeld(by loop: RunLoop) -> Bool {
            unretainedLoop?.toOpaque() == Unmanaged.passUnretained(loop).toOpaque()
        }

        /// Whether `loop` may hold it: it is valid, and no other does (rule TM-13).
        func mayEnter(_ loop: RunLoop) -> Bool { isValid && (unretainedLoop == nil || isHeld(by: loop)) }

        var block: Block? { timer._withUnsafeGuaranteedRef { $0.block } }

        /// The date that fires next, or is firing now.
        var deadline: LoopInstant {
            timer._withUnsafeGuaranteedRef { timer in
                guard let loop else { return timer.registration.deadline }
                return loop.state.withLock { $0.deadline(of: timer) }
            }
        }

        /// What few timers have, to read it; nil: it has nothing of the kind.
        func withDetails<Result>(_ body: (Details) -> Result) -> Result? {
            guard let details = loopOrDetails.details else { return nil }
            return details._withUnsafeGuaranteedRef(body)
        }

        /// The same to write to it.
        @discardableResult
        func updateDetails<Result>(_ body: (Details) -> Result) -> Result {
            if let details = loopOrDetails.details { return details._withUnsafeGuaranteedRef(body) }
            let made = Details()
            made.unretainedLoop = unretainedLoop
            loopOrDetails = .details(.passRetained(made))
            return body(made)
        }

        /// - Returns: What is to be released without the lock.
        mutating func invalidate() -> (Block?, (any AnyObject & Sendable)?, UserInfo?) {
            marks = marks.subtracting([.isValid, .isCommon])
            unretainedLoop = nil
            let (attachment, userInfo) =
                withDetails { ($0.attachment.take(), $0.userInfo.take()) } ?? (nil, nil)
            return (timer._withUnsafeGuaranteedRef { $0.block.take() }, attachment, userInfo)
        }

        /// `fireDate` of a moment, by the anchor. What was made with an interval gets one when it is first asked, at
        /// its deadline.
        func date(of moment: LoopInstant, deadline: LoopInstant) -> Date {
            let anchor = updateDetails { details in
                let anchor =
                    details.anchor ?? Anchor(moment: deadline, date: LoopClock.machineDate(of: deadline))
                details.anchor = anchor
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
        let timer: Unmanaged<Timer>

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
    final class Details: @unchecked Sendable {
        /// See `LoopOrDetails`.
        var unretainedLoop: Unmanaged<RunLoop>?
        /// `timeInterval`, which never changes.
        var interval: TimeInterval = 0
        var anchor: Anchor?
        /// When it last fired, if that is not its deadline: a beat of the grid, or the moment at which it
        /// was fired by hand.
        var lastBeat: LoopInstant?
        var tolerance: TimeInterval = 0
        /// The date set by the block itself while the timer fires.
        var moved: LoopInstant?
        var label: String?
        var attachment: (any AnyObject & Sendable)?
        var userInfo: UserInfo?
    }

    /// In an object of its own, which is one word here.
    final class UserInfo: Sendable {
        let value: any Sendable

        init(_ value: any Sendable) { self.value = value }
    }
}
