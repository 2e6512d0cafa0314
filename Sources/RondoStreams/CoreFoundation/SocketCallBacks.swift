internal import RondoCore

/// The callbacks of a `CFSocket` that may be made now, as a value (rules CS-6 to CS-8).
///
/// A callback is disabled while its call runs. Afterwards its flag enables it again, or the program does; so
/// two run loops that hold the socket do not make it at the same time.
struct SocketCallBacks {
    static let leavesErrors: UInt = 64
    static let closesOnInvalidate: UInt = 128

    enum Phase: Equatable {
        /// A stream socket that is neither connected nor listening nor connecting. The kernel would report it
        /// as ready again and again, but there is nothing to call back.
        case idle
        /// The kernel is connecting. If a thread waits for that, no callback reports it.
        case connecting(threadWaits: Bool)
        case ready
    }

    /// The callbacks that one readiness may cause, in the order in which they are checked.
    enum Turn {
        case connection, reading, writing
    }

    let types: CFSocketCallBackType
    /// The raw values of the callbacks that are enabled again automatically, and the two flags above.
    /// Set by the program, through `CFSocket.flags`.
    var flags: UInt
    /// Set by `CFSocket` too, which asks the descriptor: the program may have connected it, or made it
    /// listen, by itself.
    var phase: Phase
    /// True once the end of a connection was found.
    private(set) var hasEnded = false
    private var enabled: CFSocketCallBackType
    /// The callbacks that the program has disabled, which a flag does not enable again.
    private var disabled: CFSocketCallBackType = []
    /// The result of connecting that the connect callback must report: 0 or an errno.
    private var outcome: Int32?
    /// The connect callback is made once for a socket.
    private var hasToldOutcome = false
    /// True if the last callback was for reading.
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
    /// Not before the callback that reports the result of connecting.
    var mayWrite: Bool { enabled.contains(.writeCallBack) && phase == .ready && !mayTell }

    /// The events that the descriptor is watched for.
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

    /// Why no callback has come.
    ///
    /// - Parameters:
    ///   - found: What the source says of itself; nil if there is none.
    ///   - isPaused: Whether accepting pauses.
    func obstacle(_ found: DeliveryObstacle?, isPaused: Bool) -> DeliveryObstacle {
        let obstacle = found ?? DeliveryObstacle(modes: [])
        guard obstacle.reason == .waitsForNothing else { return obstacle }
        if isPaused { return .pausedAccepting }
        let sentence =
            switch phase {
            case .connecting: "a thread waits in CFSocketConnectToAddress for its connection"
            case .idle where types.reading == .acceptCallBack: "it does not listen: call CFSocketSetAddress"
            case .idle: "it is not connected: call CFSocketConnectToAddress"
            case .ready where hasEnded: "its connection has ended: there is nothing more to read"
            case .ready where types.isEmpty: "it was made without callbacks"
            case .ready where types == .connectCallBack && hasToldOutcome:
                "its connect callback was made, and it has no other one"
            case .ready: "no callback is enabled: call CFSocketEnableCallBacks"
            }
        return DeliveryObstacle(reason: .waitsForNothing, description: sentence)
    }

    /// Reading and writing alternate, so that neither starves the other.
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

    /// The callbacks of `some` that the socket was made with.
    private func own(_ some: CFSocketCallBackType) -> CFSocketCallBackType {
        let others = some.intersection(types).intersection([.connectCallBack, .writeCallBack])
        return some.reading == types.reading ? others.union(types.reading) : others
    }

    /// Disables a callback of `type` that is made now.
    mutating func begin(_ type: CFSocketCallBackType) {
        enabled.subtract(type)
        writingIsNext = !type.reading.isEmpty
    }

    /// Enables a callback of `type` again after its return, if its flag says so.
    mutating func end(_ type: CFSocketCallBackType) {
        guard flags & type.rawValue == type.rawValue, disabled.isDisjoint(with: type) else { return }
        enabled.formUnion(type)
    }

    /// Records the end of the connection: nothing is read any more.
    mutating func endConnection() { hasEnded = true }

    // MARK: Connecting

    /// Records the result of an attempt to connect: `code` is 0 or an errno.
    ///
    /// - Parameter inBackground: True if no thread waits for it, so that a callback must report it: the
    ///   connect callback, if the socket has one, otherwise the one for reading, which finds the end.
    mutating func connected(_ code: Int32, inBackground: Bool) {
        let tells = inBackground && types.contains(.connectCallBack) && !hasToldOutcome
        if tells { outcome = code }
        phase = code == 0 || inBackground && !tells ? .ready : .idle
    }

    /// Takes the result of connecting to report it now; nil if there is none, or the callback is not enabled.
    mutating func takeOutcome() -> Int32? {
        guard mayTell, let code = outcome else { return nil }
        outcome = nil
        hasToldOutcome = true
        return code
    }
}
