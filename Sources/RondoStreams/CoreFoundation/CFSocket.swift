// A socket in Core Foundation's interface: a descriptor source, whose readiness becomes callbacks of several
// types.
//
// There is no manager thread: the loop that holds the source watches the descriptor itself, in its own modes.
// The source retains the socket; the socket refers to its source weakly. The table of sockets retains every
// valid socket, as on Apple's systems: a program that has kept only the handle still has an open socket, and
// can get the object back.
//
// Threads: any may call. The state is protected by the socket's lock. The descriptor is used under the lock
// and only while the socket is valid, and closed afterwards, so a number that was closed and reused is never
// touched. Callbacks are made with no lock held.

public import RondoCore
internal import RondoMutex

/// A socket whose callbacks come on run loops: Core Foundation's `CFSocket`, made by functions such as
/// `CFSocketCreate` (rules CS-1 to CS-15).
///
/// It lives until it is invalidated. Any thread may use it.
public final class CFSocket: Sendable {
    /// Receives the socket, the type, the peer's or sender's address, and the data that
    /// `CFSocketCallBackType` describes.
    package typealias CallBack =
        @Sendable (CFSocket, CFSocketCallBackType, NSData?, UnsafeRawPointer?) -> Void

    /// The state behind the lock. It is changed in `+Calls` and `+Sending` too, because each call on the
    /// descriptor is made under the lock, and its result changes this state before another thread sees it.
    struct State {
        var callBacks: SocketCallBacks
        var callBack: CallBack?
        var attachment: (any AnyObject & Sendable)?
        var isValid = true
        weak var source: RunLoop.Source?
        /// True while nothing is accepted because descriptors have run out.
        var isPaused = false
        /// The number of threads whose calls wait until the socket is writable, or have waited and may do so
        /// again.
        var waitingThreads = 0
        /// A pipe, through which a byte wakes these threads when the socket is invalidated; -1: no thread is
        /// counted, or no descriptor was left for it yet, and they look once a second whether the socket is
        /// valid.
        var wakeUp: (reading: Int32, writing: Int32) = (-1, -1)
        /// True if the last of them must close the descriptor: its number must not refer to another file
        /// while their calls may poll it.
        var isClosedLater = false

        /// Sets the source's interest to what may be called back now. Called under the lock, so that the last
        /// change wins.
        func apply() { source?.interest = isValid && !isPaused ? callBacks.interest : [] }
    }

    /// All valid sockets, by descriptor.
    private static let sockets = Mutex<[Int32: CFSocket]>([:])

    let handle: NativeSocket
    private let label: String?
    /// True if this object has made a blocking listener non-blocking.
    private let wasBlocking: Bool
    let state: Mutex<State>
    /// Lets one thread at a time send, so that the bytes of two do not mix.
    let sending = DispatchSemaphore(value: 1)

    private init(
        _ handle: NativeSocket, _ types: CFSocketCallBackType, label: String?,
        attachment: (any AnyObject & Sendable)?, _ callBack: CallBack?
    ) {
        self.handle = handle
        self.label = label
        // Two loops may try to accept the same connection.
        wasBlocking = types.reading == .acceptCallBack && handle.setNonBlocking()
        state = Mutex(
            State(
                callBacks: SocketCallBacks(types, handle.initialPhase(types)),
                callBack: callBack, attachment: attachment)
        )
    }

    // MARK: - Creation

    /// The valid socket object that a descriptor already has (rule CS-11).
    package static func existing(_ descriptor: Int32) -> CFSocket? {
        guard let socket = sockets.withLock({ $0[descriptor] }) else { return nil }
        guard socket.handle.isLost else { return socket.isValid ? socket : nil }
        socket.invalidate(closes: false)
        return nil
    }

    /// Makes a descriptor for a new socket; -1 on failure. Arguments of 0 or less mean TCP over IPv4.
    package static func makeNative(_ family: Int32, _ kind: Int32, _ number: Int32) -> Int32 {
        NativeSocket.make(family, kind, number)
    }

    /// The socket object for a descriptor, made if there is none.
    ///
    /// - Parameters:
    ///   - label: The name of the source.
    ///   - attachment: An object that is retained until the socket is invalidated.
    /// - Returns: Nil if there is no such descriptor.
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

    /// The descriptor; -1 once invalid.
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

    /// Checks whether the program has connected the socket, or made it listen, by itself.
    private func lookAgain(_ state: inout State) {
        guard state.isValid else { return }
        if state.callBacks.phase == .idle { state.callBacks.phase = handle.phase(state.callBacks.types) }
        state.apply()
    }

    // MARK: - Source

    /// The only source of the socket (rule CS-2), while a loop or the program has it; nil if the socket is
    /// invalid.
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

    /// Ends a pause, and checks the socket again.
    func resume() {
        state.withLock { state in
            state.isPaused = false
            lookAgain(&state)
        }
    }

    /// Invalidates the socket if its source was refused: because the descriptor was closed, or by the kernel,
    /// for lack of memory for example (rule SRC-27).
    private func endIfRefused() {
        guard let mayClose = state.withLock({ $0.source })?.mayCloseAfterRefusal else { return }
        invalidate(closes: mayClose)
    }

    // MARK: - Invalidating

    /// Takes the source out of every mode, makes no further callback, and closes the descriptor unless the
    /// flags say otherwise (rule CS-12).
    package func invalidate() { invalidate(closes: true) }

    /// - Parameter closes: False if the descriptor is closed already.
    func invalidate(closes: Bool) {
        let closes = closes && !handle.isLost
        let last = state.withLock { state -> State? in
            guard state.isValid else { return nil }
            let last = state
            state.isValid = false
            (state.callBack, state.attachment) = (nil, nil)
            // Also where the descriptor stays open: the program may close it now, and another file get its
            // number.
            state.wakeWaitingThreads()
            return last
        }
        guard let last else { return }
        // Before the descriptor is closed, and without the lock, which the cancel callback takes.
        last.source?.invalidateAndWakeUp()
        Self.sockets.withLock { sockets in
            if sockets[handle.descriptor] === self { sockets[handle.descriptor] = nil }
        }
        guard closes else { return }
        guard last.callBacks.closesOnInvalidate else {
            if wasBlocking { handle.setBlocking() }
            return
        }
        // Decided, and shut down, under the lock: so the last thread that waits cannot close the descriptor
        // in between, whose number another socket may get.
        let waits = state.withLock { state in
            state.isClosedLater = state.waitingThreads > 0
            if state.isClosedLater { handle.shutDown() }
            return state.isClosedLater
        }
        if !waits { handle.close() }
    }

    /// The reason why no callback has come, with a sentence. Any thread may read it.
    public var whyNotDelivering: DeliveryObstacle {
        let held = state.withLock { $0 }
        guard held.isValid else { return DeliveryObstacle.invalid }
        return held.callBacks.obstacle(held.source?.whyNotDelivering, isPaused: held.isPaused)
    }
}
