internal import RondoCore

/// Which callbacks of a `CFSocket` may be made now, as a value (rules CS-6 to CS-8).
///
/// A callback that is made is not enabled any more, until its call has returned and its flag enables it anew, or the
/// program does: so two run loops that hold the socket do not make it at the same time.
struct SocketCallBacks {
    static let leavesErrors: UInt = 64
    static let closesOnInvalidate: UInt = 128

    enum Phase: Equatable {
        /// A stream socket that is not connected, does not listen and is not being connected: the kernel would call it
        /// ready for ever, and it has nothing to tell.
        case idle
        /// The kernel is connecting. If a thread waits for that, no callback tells of it.
        case connecting(threadWaits: Bool)
        case ready
    }

    /// What may be called back for one readiness, in the order in which it is looked at.
    enum Turn {
        case connection, reading, writing
    }

    let types: CFSocketCallBackType
    /// Raw values of the callbacks that are enabled anew by themselves, and the two flags above.
    var flags: UInt
    var phase: Phase
    /// The end of a connection was found.
    private(set) var hasEnded = false
    private var enabled: CFSocketCallBackType
    /// Disabled by the program, which a flag does not change.
    private var disabled: CFSocketCallBackType = []
    /// How connecting has ended, for the callback that tells it: 0 or an errno.
    private var outcome: Int32?
    /// The callback that tells it is made once for a socket.
    private var hasToldOutcome = false
    /// Reading was called back last.
    private var writingIsNext = false

    init(_ types: CFSocketCallBackType, _ phase: Phase) {
        self.types = types
        self.phase = phase
        flags = types.reading.rawValue | Self.closesOnInvalidate
        enabled = types
    }

    var leavesErrors: Bool { flags & Self.leavesErrors != 0 }
    var closesOnInvalidate: Bool { flags & Self.closesOnInvalidate != 0 }

    private var mayTell: Bool { outcome != nil && enabled.contains(.connectCallBack) }
    var mayRead: Bool { !enabled.reading.isEmpty && !hasEnded && phase == .ready }
    /// Not before the callback that tells how connecting has ended.
    var mayWrite: Bool { enabled.contains(.writeCallBack) && phase == .ready && !mayTell }

    /// What the descriptor is watched for.
    var interest: RunLoop.Source.Interest {
        switch phase {
        case .connecting(threadWaits: true): return []
        case .connecting(threadWaits: false): return .write
        case .idle: return mayTell ? .write : []
        case .ready:
            var interest: RunLoop.Source.Interest = []
            if mayRead { interest.insert(.read) }
            if mayWrite || mayTell { interest.insert(.write) }
            return interest
        }
    }

    /// Reading and writing take turns, so that neither starves the other.
    func turns(for ready: RunLoop.Source.Interest) -> [Turn] {
        let reads: [Turn] = ready.contains(.read) ? [.reading] : []
        let writes: [Turn] = ready.contains(.write) ? [.writing] : []
        return (ready.contains(.write) ? [.connection] : [])
            + (writingIsNext ? writes + reads : reads + writes)
    }

    // MARK: Enabling

    mutating func enable(_ wanted: CFSocketCallBackType) {
        let wanted = own(wanted)
        disabled.subtract(wanted)
        enabled.formUnion(wanted)
    }

    mutating func disable(_ unwanted: CFSocketCallBackType) {
        let unwanted = own(unwanted)
        disabled.formUnion(unwanted)
        enabled.subtract(unwanted)
    }

    /// Those of `some` that the socket has.
    private func own(_ some: CFSocketCallBackType) -> CFSocketCallBackType {
        let others = some.intersection(types).intersection([.connectCallBack, .writeCallBack])
        return some.reading == types.reading ? others.union(types.reading) : others
    }

    /// A callback of `type` is made now.
    mutating func begin(_ type: CFSocketCallBackType) {
        enabled.subtract(type)
        writingIsNext = !type.reading.isEmpty
    }

    /// A callback of `type` has returned.
    mutating func end(_ type: CFSocketCallBackType) {
        guard flags & type.rawValue == type.rawValue, disabled.isDisjoint(with: type) else { return }
        enabled.formUnion(type)
    }

    /// The connection has ended: nothing is read any more.
    mutating func endConnection() { hasEnded = true }

    // MARK: Connecting

    /// An attempt to connect has ended: `code` is 0 or an errno.
    ///
    /// - Parameter inBackground: No thread waits for it, so a callback tells it: of connecting, if the socket has that,
    ///   and else of reading, which finds the end.
    mutating func connected(_ code: Int32, inBackground: Bool) {
        let tells = inBackground && types.contains(.connectCallBack) && !hasToldOutcome
        if tells { outcome = code }
        phase = code == 0 || inBackground && !tells ? .ready : .idle
    }

    /// The outcome, to be told now; nil: there is none, or the callback is not enabled.
    mutating func takeOutcome() -> Int32? {
        guard mayTell, let code = outcome else { return nil }
        outcome = nil
        hasToldOutcome = true
        return code
    }
}
