internal import CEv

/// Names a watcher of one mode. A number, not a pointer: one that is out of date finds nothing.
struct WatcherToken: Hashable, Sendable {
    let rawValue: UInt

    init(index: UInt32, generation: UInt32) {
        rawValue = UInt(generation) << 32 | UInt(index)
    }

    init(rawValue: UInt) {
        self.rawValue = rawValue
    }

    var index: Int { Int(rawValue & 0xFFFF_FFFF) }
}

/// Owns one `ev_io`: its memory, which libev keeps the address of while the watcher runs, and its state.
///
/// The `ev_io` is the object's one element, and so of one piece with it; a buffer's elements do not move.
/// Loop's thread only.
final class IOWatcher: ManagedBuffer<IOWatcher.State, ev_io> {
    struct State {
        let token: WatcherToken
        let source: RunLoop.Source?
        /// The `ev_loop`, owned by the `ModeLoop` that owns this watcher as well.
        let loop: OpaquePointer
        var isStarted = false
        var isListed = false
    }

    /// - Parameters:
    ///   - loop: The `ev_loop`.
    ///   - source: What to serve when the descriptor is ready; nil for the loop's own descriptors.
    static func make(
        loop: OpaquePointer, descriptor: Int32, events: Int32, token: WatcherToken, source: RunLoop.Source?
    ) -> IOWatcher {
        let buffer = create(minimumCapacity: 1) { _ in State(token: token, source: source, loop: loop) }
        let made = unsafeDowncast(buffer, to: IOWatcher.self)
        made.withUnsafeMutablePointerToElements { watcher in
            watcher.initialize(to: ev_io())
            rondo_ev_io_init(watcher, ioReadiness, descriptor, events)
            watcher.pointee.data = UnsafeMutableRawPointer(bitPattern: token.rawValue)
        }
        return made
    }

    deinit {
        precondition(!isStarted, "bug in Rondo: a watcher was released while libev still had its address")
    }

    // By pointer, since one thread alone touches it: each access to `header` would be checked for exclusivity.
    private func withState<Result>(_ body: (inout State) -> Result) -> Result {
        withUnsafeMutablePointerToHeader { body(&$0.pointee) }
    }

    var token: WatcherToken { withState { $0.token } }
    /// Not counted: the watcher keeps it.
    var source: Unmanaged<RunLoop.Source>? { withState { $0.source.map { .passUnretained($0) } } }
    var isStarted: Bool { withState { $0.isStarted } }

    /// It stands in the mode's ready set.
    var isListed: Bool {
        get { withState { $0.isListed } }
        set { withState { $0.isListed = newValue } }
    }

    var descriptor: Int32 { withUnsafeMutablePointerToElements { $0.pointee.fd } }

    /// The events asked for, `EV_READ | EV_WRITE`.
    var events: Int32 {
        withUnsafeMutablePointerToElements { $0.pointee.events & Int32(EV_READ | EV_WRITE) }
    }

    func start() {
        guard !isStarted else { return }
        withUnsafeMutablePointers { state, watcher in
            state.pointee.isStarted = true
            ev_io_start(state.pointee.loop, watcher)
        }
    }

    func stop() {
        guard isStarted else { return }
        withUnsafeMutablePointers { state, watcher in
            state.pointee.isStarted = false
            ev_io_stop(state.pointee.loop, watcher)
        }
    }

    /// The watcher must be stopped.
    func set(events: Int32) {
        withUnsafeMutablePointerToElements { rondo_ev_io_set($0, $0.pointee.fd, events) }
    }
}

/// libev's callback for every descriptor: notes what is ready and returns. User code is called by the pass.
///
/// `ev_userdata` is the `ModeLoop`, unretained: it owns the `ev_loop` and outlives it.
private func ioReadiness(loop: OpaquePointer, watcher: UnsafeMutablePointer<ev_io>, events: Int32) {
    guard let userdata = ev_userdata(loop) else { return }
    Unmanaged<ModeLoop>.fromOpaque(userdata)._withUnsafeGuaranteedRef {
        $0.report(WatcherToken(rawValue: UInt(bitPattern: watcher.pointee.data)), events: events)
    }
}
