internal import Glibc
public import RondoCore
internal import RondoMutex

/// A descriptor whose readiness is called back on run loops, once for each time that it is asked for: Core Foundation's
/// `CFFileDescriptor`, made by `CFFileDescriptorCreate` (rules CS-16 to CS-18).
///
/// Anything that can be polled can be watched. A regular file is always ready, as `poll(2)` has it. There is no kqueue on
/// Linux: an epoll descriptor can be watched in its place.
///
/// Any thread may use it. The source retains the object, and not the other way round: one that neither a loop nor the
/// program holds is invalidated.
public final class CFFileDescriptor: Sendable {
    package typealias CallBack = @Sendable (CFFileDescriptor, UInt) -> Void

    private static let read: UInt = 1
    private static let write: UInt = 2

    private struct State {
        var callBack: CallBack?
        var attachment: (any AnyObject & Sendable)?
        var isValid = true
        /// Raw values of the callbacks that are enabled.
        var enabled: UInt = 0
        weak var source: RunLoop.Source?

        /// Under the lock, so that the last change wins.
        func apply() {
            var interest: RunLoop.Source.Interest = []
            if enabled & CFFileDescriptor.read != 0 { interest.insert(.read) }
            if enabled & CFFileDescriptor.write != 0 { interest.insert(.write) }
            source?.interest = interest
        }
    }

    private let descriptor: Int32
    /// What the descriptor names, so that a number that was closed behind our back is noticed (rule SRC-27).
    private let file: FileIdentity
    private let closesOnInvalidate: Bool
    private let label: String?
    private let state: Mutex<State>

    /// - Parameters:
    ///   - label: The name of its source.
    ///   - attachment: An object that is kept until it is invalidated.
    /// - Returns: Nil: there is no such descriptor.
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

    /// -1 once it is invalid.
    package var native: Int32 { isValid ? descriptor : -1 }

    package var attachment: (any AnyObject & Sendable)? { state.withLock { $0.attachment } }

    /// Whether the descriptor was closed behind our back. It may name something else by now.
    private var isLost: Bool { FileIdentity(descriptor: descriptor) != file }

    /// Asks for one callback of each of `types`: at once, where there is something already.
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

    /// Why no callback has come, in a sentence and as a reason. Any thread may ask.
    public var whyNotDelivering: DeliveryObstacle {
        let (isValid, source) = state.withLock { ($0.isValid, $0.source) }
        guard isValid else { return DeliveryObstacle.invalid }
        return source?.whyNotDelivering ?? DeliveryObstacle(places: [])
    }

    // MARK: - Source

    /// The one source, as long as a loop or the program has it; nil: the object is invalid.
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

    /// A source that the kernel has refused had a descriptor that was closed (rule SRC-27).
    private func endIfRefused() {
        let source = state.withLock { $0.source }
        if source?.refusalCode != nil { invalidate(closes: false) }
    }

    /// On the thread of a loop that holds the source.
    private func perform() {
        if isLost { return invalidate(closes: false) }
        let found = state.withLock { state -> (UInt, CallBack)? in
            // Another loop's callback may have read what was there.
            let types = ready(for: state.enabled)
            guard state.isValid, types != 0, let callBack = state.callBack else { return nil }
            state.enabled &= ~types
            state.apply()
            return (types, callBack)
        }
        if let (types, callBack) = found { callBack(self, types) }
    }

    /// Those of `types` that the descriptor is ready for; an error or a hang-up is told by all of them.
    private func ready(for types: UInt) -> UInt {
        guard types != 0 else { return 0 }
        let events = (types & Self.read != 0 ? POLLIN : 0) | (types & Self.write != 0 ? POLLOUT : 0)
        let found = SocketCalls.poll(descriptor, for: events)
        if found & (POLLERR | POLLHUP | POLLNVAL) != 0 { return types }
        return (found & POLLIN != 0 ? Self.read : 0) | (found & POLLOUT != 0 ? Self.write : 0)
    }

    // MARK: - Invalidating

    /// Takes the source out of every mode and calls nothing more; closes the descriptor if it was made so (rule CS-17).
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
        // Not retried on EINTR: Linux has given the number back already.
        if closes, !isLost { close(descriptor) }
    }
}
