internal import RondoMutex

/// A member that keeps a mode from being empty, and with a delegate receives messages.
///
/// A thread that serves others adds a port to its loop, so that `RunLoop.run()` has something to wait for
/// (rules TH-7 and TH-8). With a delegate a port is also a letter box: any thread may send to it, and the
/// delegate is called on the thread of a loop that holds the port, in a mode that holds it, once for each
/// message (rules PM-1 to PM-10). `SocketPort` does the same between processes. Apple's `NSPort` is a Mach
/// port; Linux has none.
///
/// A subclass may override `schedule(in:forMode:)` and `remove(from:forMode:)`, which loops call for every
/// mode that the port enters and leaves. An override of `invalidate()` calls super or posts
/// `didBecomeInvalidNotification`.
open class Port: NSObject, NSCopying, @unchecked Sendable {
    // `@unchecked Sendable` because the class is open: its own properties are immutable or behind the lock.

    /// Posted by a port that has become invalid, with the port as its object; its loops then release it.
    public static let didBecomeInvalidNotification = Notification.Name("NSPortDidBecomeInvalidNotification")
    /// The initial value of `maximumQueuedMessages`.
    public static let defaultMaximumQueuedMessages = 64

    struct State {
        fileprivate(set) var source: RunLoop.Source?
        fileprivate var observer: Observation?
        fileprivate var memberships = 0
        /// The port itself while a loop holds it (rule RL-16).
        fileprivate var held: Port?
        fileprivate(set) var isValid = true
        fileprivate var label: String?
        var delegate = Delegate()
        var queue = PortQueue(limit: Port.defaultMaximumQueuedMessages)
        /// The thread that is handling a message.
        var handler = CallingThread()
        var warnings: Set<PortWarning> = []
    }

    /// A weak reference to the delegate. `@unchecked Sendable`: the program hands its delegate to the threads
    /// of the loops that hold the port, and the delegate is called nowhere else.
    struct Delegate: @unchecked Sendable {
        weak var object: (any PortDelegate)?
    }

    let state = Mutex(State())
    let backing: (any PortBacking)?

    public override init() {
        backing = nil
        super.init()
    }

    package init(backing: any PortBacking) {
        self.backing = backing
        super.init()
    }

    /// Whether the port can still be scheduled and accepts messages.
    open var isValid: Bool { state.withLock { $0.isValid } }

    /// A name for logs, traces and `whyNotDelivering`; nil at first. Any thread may set it.
    public var label: String? {
        get { state.withLock { $0.label } }
        set {
            let source = state.withLock { state in
                state.label = newValue
                return state.source
            }
            source?.label = newValue
        }
    }

    /// Takes the port out of every mode of every loop, for ever, and drops the messages that wait. Any
    /// thread.
    open func invalidate() {
        // Released with no lock held: a message may hold the last reference to a port.
        let dropped = state.withLock { state -> [PortContent]? in
            guard state.isValid else { return nil }
            state.isValid = false
            return state.queue.removeAll()
        }
        guard dropped != nil else { return }
        backing?.close()
        NotificationCenter.default.post(name: Self.didBecomeInvalidNotification, object: self)
        releaseSource()
    }

    /// Called when the port enters a mode, on the thread that adds it. If the program calls it, it adds the
    /// port.
    open func schedule(in runLoop: RunLoop, forMode mode: RunLoop.Mode) { runLoop.add(self, forMode: mode) }

    /// Called when the port leaves a mode. If the program calls it, it removes the port.
    open func remove(from runLoop: RunLoop, forMode mode: RunLoop.Mode) {
        runLoop.remove(self, forMode: mode)
    }

    /// Returns the port itself, as Apple's does.
    open func copy(with zone: NSZone? = nil) -> Any { self }

    // MARK: Messages

    /// Sets the delegate that receives the port's messages; with nil they are dropped when they are due (rule
    /// PM-8). Any thread.
    ///
    /// The delegate is held weakly.
    open func setDelegate(_ delegate: (any PortDelegate)?) {
        let delegate = Delegate(object: delegate)
        state.withLock { $0.delegate = delegate }
    }

    open func delegate() -> (any PortDelegate)? { state.withLock { $0.delegate }.object }

    /// Bytes that a sender must leave free at the head of a message: 0.
    open var reservedSpaceLength: Int { 0 }

    /// Sends a message with the number 0. See `send(before:msgid:components:from:reserved:)`.
    open func send(
        before limitDate: Date, components: NSMutableArray?, from receivePort: Port?,
        reserved headerSpaceReserved: Int
    ) -> Bool {
        send(
            before: limitDate, msgid: 0, components: components, from: receivePort,
            reserved: headerSpaceReserved)
    }

    /// Hands a message to this port (rules PM-2 and PM-4). Any thread.
    ///
    /// The caller is blocked only while the port's queue is full (`maximumQueuedMessages`), and no longer
    /// than until `limitDate`; a date that has passed never blocks. If the thread's own loop is the only one
    /// that holds the port, the thread waits in vain, and a warning is logged.
    /// - Parameters:
    ///   - msgID: A number for the receiver; its low 32 bits are sent.
    ///   - components: `Data` and ports; anything else is refused. The data is copied (rule PM-5). A waiting
    ///     message retains its ports.
    ///   - receivePort: The port for the answer; the receiver finds it in the message's `sendPort`.
    ///   - headerSpaceReserved: Ignored.
    /// - Returns: False if the message could not be handed over by the date, or the port is invalid.
    open func send(
        before limitDate: Date, msgid msgID: Int, components: NSMutableArray?, from receivePort: Port?,
        reserved headerSpaceReserved: Int
    ) -> Bool {
        guard let content = content(msgid: msgID, components: components, from: receivePort) else {
            return false
        }
        return enqueue(content, before: limitDate)
    }

    // MARK: For the loop

    /// The source that loops hold for the port, made on first use; nil if the port is invalid.
    func sourceToAdd() -> RunLoop.Source? {
        guard isValid else { return nil }
        let (source, isNew) = state.withLock { state -> (RunLoop.Source?, Bool) in
            // The port may have become invalid since; a source made now would never be invalidated.
            guard state.isValid else { return (nil, false) }
            if let source = state.source { return (source, false) }
            let source = makeSource()
            source.label = state.label
            state.source = source
            return (source, true)
        }
        if isNew {
            let observer = Observation(
                NotificationCenter.default.addObserver(
                    forName: Self.didBecomeInvalidNotification, object: self, queue: nil
                ) { [weak self] _ in self?.releaseSource() })
            state.withLock { $0.observer = observer }
        }
        return source
    }

    var source: RunLoop.Source? { state.withLock { $0.source } }

    /// The modes that hold the port.
    package var scheduledModes: [(loop: RunLoop, mode: RunLoop.Mode)] { source?.scheduledModes ?? [] }

    package func isIn(_ loop: RunLoop, _ mode: RunLoop.Mode) -> Bool { source?.isIn(loop, mode) ?? false }

    private func makeSource() -> RunLoop.Source {
        let kind = PortKind(
            describe: { [weak self] in self?.summary }, explain: { [weak self] in self?.obstacle })
        return RunLoop.Source(
            .port(kind),
            schedule: { [weak self] loop, mode in self?.entered(loop, mode) },
            cancel: { [weak self] loop, mode in self?.left(loop, mode) },
            perform: RunLoop.Source.Callback { [weak self] _, _ in self?.deliver() })
    }

    private func entered(_ loop: RunLoop, _ mode: RunLoop.Mode) {
        state.withLock { state in
            state.memberships += 1
            // Another thread may already have removed the port from the mode, and called `left` first.
            state.held = state.memberships > 0 ? self : nil
            // A loop that leaves messages asks again, in this mode too.
            state.handler.endAsking()
        }
        backing?.entered(loop, mode)
        schedule(in: loop, forMode: mode)
        // Last, because before the port was in the mode another loop could have used the signal up.
        signalIfMessagesWait()
    }

    private func left(_ loop: RunLoop, _ mode: RunLoop.Mode) {
        backing?.left(loop, mode)
        remove(from: loop, forMode: mode)
        // Released after the lock: this may be the last reference.
        let released = state.withLock { state -> Port? in
            state.memberships -= 1
            guard state.memberships <= 0 else { return nil }
            defer { state.held = nil }
            return state.held
        }
        withExtendedLifetime(released) {}
    }

    private func releaseSource() {
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
        backing?.close()
        let observer = state.withLock { $0.observer }
        if let observer { NotificationCenter.default.removeObserver(observer.token) }
    }

    /// The registration of an observer with the notification centre. `@unchecked Sendable`: the centre
    /// accepts its token on any thread.
    fileprivate struct Observation: @unchecked Sendable {
        let token: any NSObjectProtocol

        init(_ token: any NSObjectProtocol) { self.token = token }
    }
}

extension RunLoop {
    /// Adds `port` to `mode`: keeps the mode from being empty, and delivers the port's messages there. See
    /// `Port`.
    public func add(_ port: Port, forMode mode: Mode) {
        if let source = port.sourceToAdd() { add(source, forMode: mode) }
    }

    public func remove(_ port: Port, forMode mode: Mode) {
        if let source = port.source { remove(source, forMode: mode) }
    }
}

/// The part of a port besides its queue: the sockets of a `SocketPort`. The port calls these functions on the
/// thread on which the event happens, with no lock held.
package protocol PortBacking: AnyObject, Sendable {
    /// The port has entered a mode. The modes of `.common` come one by one. Another thread may have removed
    /// the port by now, and may already have reported that: ask `Port.isIn`.
    func entered(_ loop: RunLoop, _ mode: RunLoop.Mode)
    func left(_ loop: RunLoop, _ mode: RunLoop.Mode)
    /// A message was taken out of the port's queue.
    func messageWasTaken()
    /// The port has become invalid, or is being freed. May be called more than once.
    func close()
    /// The address that the port listens on, for `RunLoop.debugDescription`.
    var summary: String { get }
}
