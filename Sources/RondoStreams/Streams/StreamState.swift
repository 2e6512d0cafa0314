// The state of a stream and its pending events, without any bytes, loop or descriptor.
//
// Two ideas. Pending ("owed") events are computed, not queued: the state records that the stream has opened,
// ended or failed and has not reported it yet, and that bytes or space are there. And the state is *armed* or
// not: after one hasBytesAvailable (hasSpaceAvailable) no other follows until the client reads (writes),
// wherever it does so, or does what counts as that (rules ST-9, ST-13, ST-14).
//
//     notOpen ── open ──> opening ──> open ──> atEnd        any of these three ──> error
//     each of opening, open, atEnd ── close ──> closed; error stays error (rule ST-6)
//
// An input that does not fit the current state is ignored as late: the client may have closed the stream
// meanwhile.

internal import RondoCore

/// The state of one stream, as a value: its status, and its pending events.
struct StreamState: Sendable {
    enum Direction: Sendable {
        case input, output

        /// The event that reports bytes or space.
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
        /// No event of the direction has come since the client has read or written, or done what counts as
        /// that.
        static let isArmed = Facts(rawValue: 2)
        static let owesOpenCompleted = Facts(rawValue: 4)
        static let owesEnd = Facts(rawValue: 8)
        static let owesError = Facts(rawValue: 16)
        /// The last event of the direction was ignored: there was no delegate, or a client that had not asked
        /// for it.
        static let wasIgnored = Facts(rawValue: 32)

        mutating func set(_ fact: Facts, to isSo: Bool) {
            if isSo { insert(fact) } else { remove(fact) }
        }
    }

    // The largest property comes first, so that the small ones share the rest of the layout.
    private(set) var error: NSError?
    let direction: Direction
    private(set) var status = Foundation.Stream.Status.notOpen
    private var facts: Facts = .isArmed

    init(_ direction: Direction) { self.direction = direction }

    var wasIgnored: Bool { facts.contains(.wasIgnored) }

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

    /// Starts opening. Returns false, and changes nothing, if that was done before (rule ST-2).
    mutating func open() -> Bool {
        guard status == .notOpen else { return false }
        status = .opening
        return true
    }

    /// Records that the stream is open. A stream that is scheduled nowhere then loses the event (rule ST-12).
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

    /// Records the end: the last byte was read, or no more fits.
    mutating func ended() {
        guard status == .open else { return }
        status = .atEnd
        owesEnd = true
    }

    /// Records whether bytes or space are there.
    mutating func setReady(_ isReady: Bool) { self.isReady = isReady }

    /// Records that the client has read, written or secured the connection, which arms the next event.
    mutating func used(isReady: Bool) {
        isArmed = true
        self.isReady = isReady
    }

    /// Records that `event` was delivered, and ignored.
    mutating func ignored(_ event: Foundation.Stream.Event) {
        if event == direction.event { facts.insert(.wasIgnored) }
    }

    /// Records that there is another delegate. It gets the event that was ignored, and none that was
    /// delivered to an earlier one: two that replace each other in their handlers would be called in each
    /// pass (rule ST-9).
    mutating func delegateChanged() {
        if facts.contains(.wasIgnored) { isArmed = true }
    }

    /// Closes the stream. Returns false if there is nothing to close.
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

    /// Whether the client may read or write; otherwise the call returns -1 (rule ST-7).
    var mayTransfer: Bool { status == .opening || status == .open || status == .atEnd }

    /// Whether the backend must find out if bytes or space are there.
    var wantsToBeReady: Bool { status == .open && isArmed && !isReady }

    /// The events that are to be delivered now.
    var owed: Foundation.Stream.Event {
        var events: Foundation.Stream.Event = []
        if owesOpenCompleted { events.insert(.openCompleted) }
        if status == .open && isArmed && isReady { events.insert(direction.event) }
        if owesError { events.insert(.errorOccurred) }
        if owesEnd { events.insert(.endEncountered) }
        return events
    }

    /// Takes `event` for delivery. Returns false if it is no longer pending.
    mutating func take(_ event: Foundation.Stream.Event) -> Bool {
        guard owed.contains(event) else { return false }
        switch event {
        case .openCompleted: owesOpenCompleted = false
        case .errorOccurred: owesError = false
        case .endEncountered: owesEnd = false
        default: facts.subtract([.isArmed, .wasIgnored])
        }
        return true
    }
}
