internal import RondoMutex

/// A member that keeps a mode from being empty. It never fires by itself.
///
/// A thread that serves others adds one to its loop, so that `RunLoop.run()` has something to wait for
/// (rules TH-7 and TH-8). Apple's `NSPort` carries Mach messages besides; there are none on Linux.
///
/// A subclass may override `schedule(in:forMode:)` and `remove(from:forMode:)`, which loops call for every
/// mode that the port enters and leaves. One that overrides `invalidate()` calls super or posts
/// `didBecomeInvalidNotification`.
open class Port: NSObject, @unchecked Sendable {
    // `@unchecked Sendable` because the class is open: its own properties are immutable or behind the lock.

    /// Posted by a port that has become invalid, with the port as its object; its loops let it go then.
    public static let didBecomeInvalidNotification = Notification.Name("NSPortDidBecomeInvalidNotification")

    private struct State {
        var source: RunLoop.Source?
        var observer: Observation?
        var memberships = 0
        /// The port itself while a loop holds it (rule RL-16).
        var held: Port?
        var isValid = true
    }

    private let state = Mutex(State())

    public override init() { super.init() }

    /// Whether the port can still be scheduled.
    open var isValid: Bool { state.withLock { $0.isValid } }

    /// Takes the port out of every mode of every loop, for ever. Any thread.
    open func invalidate() {
        let isFirst = state.withLock { state in
            defer { state.isValid = false }
            return state.isValid
        }
        guard isFirst else { return }
        NotificationCenter.default.post(name: Self.didBecomeInvalidNotification, object: self)
        letGo()
    }

    /// Called when the port enters a mode, on the thread that adds it. Called by hand, it adds the port.
    open func schedule(in runLoop: RunLoop, forMode mode: RunLoop.Mode) { runLoop.add(self, forMode: mode) }

    /// Called when the port leaves a mode. Called by hand, it removes the port.
    open func remove(from runLoop: RunLoop, forMode mode: RunLoop.Mode) {
        runLoop.remove(self, forMode: mode)
    }

    // MARK: For the loop

    /// The source by which loops hold the port; nil if the port is invalid.
    func sourceToAdd() -> RunLoop.Source? {
        guard isValid else { return nil }
        let (source, isNew) = state.withLock { state -> (RunLoop.Source, Bool) in
            if let source = state.source { return (source, false) }
            let source = RunLoop.Source(
                schedule: { [weak self] loop, mode in self?.entered(loop, mode) },
                cancel: { [weak self] loop, mode in self?.left(loop, mode) }, perform: {})
            state.source = source
            return (source, true)
        }
        if isNew {
            let observer = Observation(
                NotificationCenter.default.addObserver(
                    forName: Self.didBecomeInvalidNotification, object: self, queue: nil
                ) { [weak self] _ in self?.letGo() })
            state.withLock { $0.observer = observer }
        }
        return source
    }

    var source: RunLoop.Source? { state.withLock { $0.source } }

    private func entered(_ loop: RunLoop, _ mode: RunLoop.Mode) {
        state.withLock { state in
            state.memberships += 1
            state.held = self
        }
        schedule(in: loop, forMode: mode)
    }

    private func left(_ loop: RunLoop, _ mode: RunLoop.Mode) {
        remove(from: loop, forMode: mode)
        // Released after the lock is let go: it may be the last reference.
        let released = state.withLock { state -> Port? in
            state.memberships -= 1
            guard state.memberships == 0 else { return nil }
            defer { state.held = nil }
            return state.held
        }
        withExtendedLifetime(released) {}
    }

    private func letGo() {
        let (source, observer) = state.withLock { state in
            defer {
                state.source = nil
                state.observer = nil
            }
            return (state.source, state.observer)
        }
        if let observer { NotificationCenter.default.removeObserver(observer.token) }
        source?.invalidate()
    }

    deinit {
        let observer = state.withLock { $0.observer }
        if let observer { NotificationCenter.default.removeObserver(observer.token) }
    }

    /// `@unchecked Sendable`: the notification centre takes its token back on any thread.
    private struct Observation: @unchecked Sendable {
        let token: any NSObjectProtocol

        init(_ token: any NSObjectProtocol) { self.token = token }
    }
}

extension RunLoop {
    /// Keeps `mode` from being empty while `port` is in it. See `Port`.
    public func add(_ port: Port, forMode mode: Mode) {
        if let source = port.sourceToAdd() { add(source, forMode: mode) }
    }

    public func remove(_ port: Port, forMode mode: Mode) {
        if let source = port.source { remove(source, forMode: mode) }
    }
}
