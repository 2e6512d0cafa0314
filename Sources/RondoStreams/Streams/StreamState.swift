// What a stream is doing and what it owes its delegate, without any bytes, loop or descriptor.
//
// Two ideas. *Owed* events are computed, not queued: the state knows that it has opened, ended or failed and
// has not said so yet, and that bytes or space are there. And it is *armed* or not: after one
// hasBytesAvailable (hasSpaceAvailable) none follows until the client reads (writes), wherever it does so
// (rules ST-13, ST-14).
//
//     notOpen ── open ──> opening ──> open ──> atEnd        any of these three ──> error
//     each of opening, open, atEnd ── close ──> closed; error stays error (rule ST-6)
//
// What comes in a state that it does not fit is late, not wrong: the client may have closed meanwhile.

internal import RondoCore

/// The state of one stream, as a value: its status, and the events that its delegate is owed.
struct StreamState: Sendable {
    enum Direction: Sendable {
        case input, output

        /// The event that says that something can be done.
        var event: Foundation.Stream.Event {
            switch self {
            case .input: .hasBytesAvailable
            case .output: .hasSpaceAvailable
            }
        }
    }

    /// Flags of the state, in one byte because every stream has them.
    private struct Facts: OptionSet {
        let rawValue: UInt8

        /// Bytes, or space, are there as far as is known.
        static let isReady = Facts(rawValue: 1)
        /// The client has reacted to the last event of its direction.
        static let isArmed = Facts(rawValue: 2)
        static let owesOpenCompleted = Facts(rawValue: 4)
        static let owesEnd = Facts(rawValue: 8)
        static let owesError = Facts(rawValue: 16)

        mutating func set(_ fact: Facts, to isSo: Bool) {
            if isSo { insert(fact) } else { remove(fact) }
        }
    }

    // The largest first: what follows the small ones fills their gap.
    private(set) var error: NSError?
    let direction: Direction
    private(set) var status = Foundation.Stream.Status.notOpen
    private var facts: Facts = .isArmed

    init(_ direction: Direction) { self.direction = direction }

    private(set) var isReady: Bool {
        get { facts.contains(.isReady) }
        set { facts.set(.isReady, to: newValue) }
    }

    private(set) var isArmed: Bool {
        get { facts.contains(.isArmed) }
        set { facts.set(.isArmed, to: newValue) }
    }

    private var owesOpenCompleted: Bool {
        get { facts.contains(.owesOpenCompleted) }
        set { facts.set(.owesOpenCompleted, to: newValue) }
    }

    private var owesEnd: Bool {
        get { facts.contains(.owesEnd) }
        set { facts.set(.owesEnd, to: newValue) }
    }

    private var owesError: Bool {
        get { facts.contains(.owesError) }
        set { facts.set(.owesError, to: newValue) }
    }

    // MARK: Inputs

    /// The client opens. False: it has done so before, and nothing changes (rule ST-2).
    mutating func open() -> Bool {
        guard status == .notOpen else { return false }
        status = .opening
        return true
    }

    /// Opening has succeeded. A stream that is scheduled nowhere then loses the event (rule ST-12).
    mutating func opened(isScheduled: Bool, isReady: Bool) {
        guard status == .opening else { return }
        status = .open
        owesOpenCompleted = isScheduled
        self.isReady = isReady
    }

    mutating func failed(_ error: NSError) {
        switch status {
        case .opening, .open, .atEnd, .reading, .writing: break
        case .notOpen, .closed, .error: return
        @unknown default: return
        }
        status = .error
        self.error = error
        owesError = true
        owesEnd = false
    }

    /// The last byte was read, or no more fits.
    mutating func ended() {
        guard status == .open else { return }
        status = .atEnd
        owesEnd = true
    }

    /// Bytes or space have come, or gone.
    mutating func setReady(_ isReady: Bool) { self.isReady = isReady }

    /// The client has read or written, and is told again when it can go on.
    mutating func used(isReady: Bool) {
        isArmed = true
        self.isReady = isReady
    }

    /// The client closes. False: there is nothing to close.
    mutating func close() -> Bool {
        owesOpenCompleted = false
        owesEnd = false
        owesError = false
        switch status {
        case .notOpen, .closed: return false
        case .error: return true
        case .opening, .open, .atEnd, .reading, .writing: break
        @unknown default: break
        }
        status = .closed
        return true
    }

    // MARK: Questions

    /// Whether the client may ask for bytes or hand some over; otherwise it gets -1 (rule ST-7).
    var mayTransfer: Bool { status == .opening || status == .open || status == .atEnd }

    /// Whether to find out if bytes or space are there.
    var wantsToBeReady: Bool { status == .open && isArmed && !isReady }

    /// The events that the delegate is to be told now.
    var owed: Foundation.Stream.Event {
        var events: Foundation.Stream.Event = []
        if owesOpenCompleted { events.insert(.openCompleted) }
        if status == .open && isArmed && isReady { events.insert(direction.event) }
        if owesError { events.insert(.errorOccurred) }
        if owesEnd { events.insert(.endEncountered) }
        return events
    }

    /// The delegate is about to be told `event`. False: it is not owed any more.
    mutating func take(_ event: Foundation.Stream.Event) -> Bool {
        guard owed.contains(event) else { return false }
        switch event {
        case .openCompleted: owesOpenCompleted = false
        case .errorOccurred: owesError = false
        case .endEncountered: owesEnd = false
        default: isArmed = false
        }
        return true
    }
}
