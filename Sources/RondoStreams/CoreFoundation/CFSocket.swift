// A socket by Core Foundation's interface: a descriptor source, whose readiness becomes callbacks of several types.
//
// There is no manager thread: the loop that holds the source watches the descriptor itself, in its own modes. The source
// retains the socket; the socket knows its source weakly. A valid socket is retained by the table of sockets as well, as
// on Apple's systems: a program that has kept the handle alone still has an open socket, and gets the object back.
//
// Threads: any may call. The state is behind the socket's lock. The descriptor is used under the lock, and only while the
// socket is valid; it is closed after that. So a number that was closed and given out again is not touched. Callbacks are
// made with no lock held.

public import RondoCore
internal import RondoMutex

/// A socket whose callbacks come on run loops: Core Foundation's `CFSocket`, made by `CFSocketCreate` and its kin (rules
/// CS-1 to CS-15).
///
/// It lives until it is invalidated. Any thread may use it.
public final class CFSocket: Sendable {
    /// The socket, the type, the peer's or sender's address, and what `CFSocketCallBackType` says of the data.
    package typealias CallBack =
        @Sendable (CFSocket, CFSocketCallBackType, NSData?, UnsafeRawPointer?) -> Void

    struct State {
        var callBacks: SocketCallBacks
        var callBack: CallBack?
        var attachment: (any AnyObject & Sendable)?
        var isValid = true
        weak var source: RunLoop.Source?
        /// After descriptors have run out nothing is accepted for a while.
        var isPaused = false
        /// Threads that are blocked until the socket can be written.
        var waitingThreads = 0
        /// The last of them closes the descriptor: its number must not name another file while they ask for it.
        var isClosedLater = false

        /// Has the source watch for what may be called back now. Under the lock, so that the last change wins.
        func apply() {
            source?.interest = isValid && !isPaused ? callBacks.interest : []
        }
    }

    /// All valid sockets, by their descriptors.
    private static let sockets = Mutex<[Int32: CFSocket]>([:])

    let handle: NativeSocket
    private let label: String?
    /// The listener was made non-blocking here.
    private let wasBlocking: Bool
    let state: Mutex<State>
    /// One thread at a time sends, so that their bytes do not mix.
    let sending = DispatchSemaphore(value: 1)

    private init(
        _ handle: NativeSocket, _ types: CFSocketCallBackType, label: String?,
        attachment: (any AnyObject & Sendable)?, _ callBack: CallBack?
    ) {
        self.handle = handle
        self.label = label
        // Two loops may find one connection.
        wasBlocking = types.reading == .acceptCallBack && handle.setNonBlocking()
        state = Mutex(
            State(
                callBacks: SocketCallBacks(types, Self.phase(of: handle, types)), callBack: callBack,
                attachment: attachment)
        )
    }

    /// A connection that the program has made by itself is told as well: it may have begun it, and wait for its end.
    private static func phase(
        of handle: NativeSocket, _ types: CFSocketCallBackType
    ) -> SocketCallBacks.Phase {
        let tells = types.contains(.connectCallBack) && handle.isConnection && handle.peerAddress != nil
        return tells ? .connecting(threadWaits: false) : handle.phase
    }

    // MARK: - Making

    /// The valid socket that a descriptor has already (rule CS-11).
    package static func existing(_ descriptor: Int32) -> CFSocket? {
        guard let socket = sockets.withLock({ $0[descriptor] }) else { return nil }
        guard socket.handle.isLost else { return socket.isValid ? socket : nil }
        socket.invalidate(closes: false)
        return nil
    }

    /// A descriptor for a new socket, -1 if there is none; values of 0 or less mean those of TCP over IPv4.
    package static func makeNative(_ family: Int32, _ kind: Int32, _ number: Int32) -> Int32 {
        NativeSocket.make(family, kind, number)
    }

    /// The socket for a descriptor, made where there is none.
    ///
    /// - Parameters:
    ///   - label: The name of its source.
    ///   - attachment: An object that is kept until the socket is invalidated.
    /// - Returns: Nil: there is no such descriptor.
    package static func socket(
        _ descriptor: Int32, _ types: CFSocketCallBackType, label: String?,
        attachment: (any AnyObject & Sendable)?, _ callBack: CallBack?
    ) -> CFSocket? {
        if let socket = existing(descriptor) { return socket }
        guard let native = NativeSocket(descriptor) else { return nil }
        let made = CFSocket(native, types, label: label, attachment: attachment, callBack)
        return sockets.withLock { sockets in
            // Another thread may have made one meanwhile.
            if let socket = sockets[descriptor], socket.isValid { return socket }
            sockets[descriptor] = made
            return made
        }
    }

    // MARK: - State

    package var isValid: Bool { state.withLock { $0.isValid } }

    /// -1 once it is invalid.
    package var native: Int32 { isValid ? handle.descriptor : -1 }

    package var attachment: (any AnyObject & Sendable)? { state.withLock { $0.attachment } }

    package var flags: UInt {
        get { state.withLock { $0.callBacks.flags } }
        set { state.withLock { $0.callBacks.flags = newValue } }
    }

    package func enable(_ types: CFSocketCallBackType) {
        state.withLock { state in
            state.callBacks.enable(types)
            lookAgain(&state)
        }
    }

    package func disable(_ types: CFSocketCallBackType) {
        state.withLock { state in
            state.callBacks.disable(types)
            state.apply()
        }
    }

    /// Looks whether the program has connected the socket, or has it listen, by itself.
    private func lookAgain(_ state: inout State) {
        guard state.isValid else { return }
        if state.callBacks.phase == .idle {
            state.callBacks.phase = Self.phase(of: handle, state.callBacks.types)
        }
        state.apply()
    }

    // MARK: - Source

    /// The one source of the socket (rule CS-2), as long as a loop or the program has it; nil: the socket is invalid.
    package func source() -> RunLoop.Source? {
        state.withLock { state in
            guard state.isValid else { return nil }
            if let source = state.source, source.isValid { return source }
            let source = RunLoop.Source(
                fileDescriptor: handle.descriptor, interest: [],
                schedule: { [weak self] _, _ in self?.resume() },
                cancel: { [weak self] _, _ in self?.endIfRefused() }
            ) { [self] _, ready in perform(ready) }
            source.label = label ?? "CFSocket"
            state.source = source
            lookAgain(&state)
            return source
        }
    }

    /// Ends a pause, and looks at the socket anew.
    func resume() {
        state.withLock { state in
            state.isPaused = false
            lookAgain(&state)
        }
    }

    /// A source that the kernel has refused had a descriptor that was closed (rule SRC-27).
    private func endIfRefused() {
        let source = state.withLock { $0.source }
        if source?.refusalCode != nil { invalidate(closes: false) }
    }

    // MARK: - Invalidating

    /// Takes the source out of every mode, calls nothing more, and closes the descriptor unless the flags say otherwise
    /// (rule CS-12).
    package func invalidate() { invalidate(closes: true) }

    /// - Parameter closes: False: the descriptor is closed already.
    func invalidate(closes: Bool) {
        let closes = closes && !handle.isLost
        let last = state.withLock { state -> State? in
            guard state.isValid else { return nil }
            let last = state
            state.isValid = false
            state.isClosedLater = closes && last.callBacks.closesOnInvalidate && last.waitingThreads > 0
            (state.callBack, state.attachment) = (nil, nil)
            return last
        }
        guard let last else { return }
        // Before the descriptor is closed, and without the lock, which the cancel callback takes.
        last.source?.invalidateAndWakeUp()
        Self.sockets.withLock { sockets in
            if sockets[handle.descriptor] === self { sockets[handle.descriptor] = nil }
        }
        guard closes else { return }
        if !last.callBacks.closesOnInvalidate {
            if wasBlocking { handle.setBlocking() }
        } else if last.waitingThreads > 0 {
            handle.shutDown()
        } else {
            handle.close()
        }
    }

    /// Why no callback has come, in a sentence and as a reason. Any thread may ask.
    public var whyNotDelivering: DeliveryObstacle {
        let (isValid, source) = state.withLock { ($0.isValid, $0.source) }
        guard isValid else { return DeliveryObstacle.invalid }
        return source?.whyNotDelivering ?? DeliveryObstacle(places: [])
    }
}
