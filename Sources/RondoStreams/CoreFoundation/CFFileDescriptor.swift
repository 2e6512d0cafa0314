internal import Glibc
public import RondoCore
internal import RondoMutex

/// A descriptor whose readiness is reported on run loops, once for each time that a callback is enabled: Core
/// Foundation's `CFFileDescriptor`, made by `CFFileDescriptorCreate` (rules CS-16 to CS-18).
///
/// Any file that can be polled can be watched. A regular file is always ready, as in `poll(2)`. Linux has no
/// kqueue; an epoll descriptor can be watched instead.
///
/// Any thread may use it. The source retains this object, not the other way round: when neither a loop nor
/// the program holds it, it is invalidated.
public final class CFFileDescriptor: Sendable {
    package typealias CallBack = @Sendable (CFFileDescriptor, UInt) -> Void

    private static let read: UInt = 1
    private static let write: UInt = 2

    private struct State {
        var callBack: CallBack?
        var attachment: (any AnyObject & Sendable)?
        var isValid = true
        /// The raw values of the enabled callbacks.
        var enabled: UInt = 0
        weak var source: RunLoop.Source?

        /// Updates the source's interest. Called under the lock, so that the last change wins.
        func apply() {
            var interest: RunLoop.Source.Interest = []
            if enabled & CFFileDescriptor.read != 0 { interest.insert(.read) }
            if enabled & CFFileDescriptor.write != 0 { interest.insert(.write) }
            source?.interest = interest
        }
    }

    private let descriptor: Int32
    /// The identity of the open file, by which this object notices that other code has closed the descriptor
    /// (rule SRC-27).
    private let file: FileIdentity
    private let closesOnInvalidate: Bool
    private let label: String?
    private let state: Mutex<State>

    /// - Parameters:
    ///   - label: The name of the source.
    ///   - attachment: An object that is retained until this one is invalidated.
    /// - Returns: Nil if there is no such descriptor.
    package init?(
        _ descriptor: Int32, closesOnInvalidate: Bool, label: String?,
        attachment: (any AnyObject & Sendable)?, _ callBack: @escaping CallBack
    ) {
        guard let file = FileIdentity(descriptor: descriptor) else { return nil }
        self.descriptor = descriptor
        self.file = file
        self.closesOnInvalidate = closesOnInvalidate
        self.label = label
        state = Mutex(State(callBack: callBack, attachment: attachment))
    }

    deinit { invalidate() }

    // MARK: - State

    package var isValid: Bool { state.withLock { $0.isValid } }

    /// The descriptor; -1 once invalid.
    package var native: Int32 { isValid ? descriptor : -1 }

    package var attachment: (any AnyObject & Sendable)? { state.withLock { $0.attachment } }

    /// Whether other code has closed the descriptor. Its number may refer to another file by now.
    private var isLost: Bool { FileIdentity(descriptor: descriptor) != file }

    /// Enables one callback for each of `types`; it comes at once if the descriptor is ready already.
    package func enable(_ types: UInt) {
        if isLost { return invalidate(closes: false) }
        state.withLock { state in
            guard state.isValid else { return }
            state.enabled |= types & (Self.read | Self.write)
            state.apply()
        }
    }

    package func disable(_ types: UInt) {
        state.withLock { state in
            state.enabled &= ~types
            state.apply()
        }
    }

    /// The reason why no callback has come, with a sentence. Any thread may read it.
    public var whyNotDelivering: DeliveryObstacle {
        let (isValid, source) = state.withLock { ($0.isValid, $0.source) }
        guard isValid else { return DeliveryObstacle.invalid }
        let obstacle = source?.whyNotDelivering ?? DeliveryObstacle(modes: [])
        guard obstacle.reason == .waitsForNothing else { return obstacle }
        return DeliveryObstacle(
            reason: .waitsForNothing,
            description: "no callback is enabled: call CFFileDescriptorEnableCallBacks")
    }

    // MARK: - Source

    /// The only source, while a loop or the program has it; nil if this object is invalid.
    package func source() -> RunLoop.Source? {
        state.withLock { state in
            guard state.isValid else { return nil }
            if let source = state.source, source.isValid { return source }
            let source = RunLoop.Source(
                fileDescriptor: descriptor, interest: [], cancel: { [weak self] _, _ in self?.endIfRefused() }
            ) { [self] _, _ in perform() }
            source.label = label ?? "CFFileDescriptor"
            state.source = source
            state.apply()
            return source
        }
    }

    /// Invalidates this object if its source was refused: because the descriptor was closed, or by the
    /// kernel, for lack of memory for example (rule SRC-27).
    private func endIfRefused() {
        guard let mayClose = state.withLock({ $0.source })?.mayCloseAfterRefusal else { return }
        invalidate(closes: mayClose && closesOnInvalidate)
    }

    /// Makes a callback, on the thread of a loop that holds the source.
    private func perform() {
        if isLost { return invalidate(closes: false) }
        let found = state.withLock { state -> (UInt, CallBack)? in
            // Another loop's callback may have read the bytes.
            let types = ready(for: state.enabled)
            guard state.isValid, types != 0, let callBack = state.callBack else { return nil }
            state.enabled &= ~types
            state.apply()
            return (types, callBack)
        }
        if let (types, callBack) = found { callBack(self, types) }
    }

    /// Those of `types` that the descriptor is ready for; an error or a hang-up makes all of them ready.
    private func ready(for types: UInt) -> UInt {
        guard types != 0 else { return 0 }
        let events = (types & Self.read != 0 ? POLLIN : 0) | (types & Self.write != 0 ? POLLOUT : 0)
        let found = SocketCalls.poll(descriptor, for: events)
        if found & (POLLERR | POLLHUP | POLLNVAL) != 0 { return types }
        return (found & POLLIN != 0 ? Self.read : 0) | (found & POLLOUT != 0 ? Self.write : 0)
    }

    // MARK: - Invalidating

    /// Takes the source out of every mode and makes no further callback; closes the descriptor if it was
    /// created that way (rule CS-17).
    package func invalidate() { invalidate(closes: closesOnInvalidate) }

    private func invalidate(closes: Bool) {
        let last = state.withLock { state -> State? in
            guard state.isValid else { return nil }
            let last = state
            state.isValid = false
            state.enabled = 0
            (state.callBack, state.attachment) = (nil, nil)
            return last
        }
        guard let last else { return }
        // Before the descriptor is closed, and without the lock, which the cancel callback takes.
        last.source?.invalidateAndWakeUp()
        // Not retried on EINTR: Linux has already freed the number.
        if closes, !isLost { close(descriptor) }
    }
}
