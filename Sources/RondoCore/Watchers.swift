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
    var generation: UInt32 { UInt32(truncatingIfNeeded: rawValue >> 32) }
}

/// Owns one `ev_io`: its memory, which libev keeps the address of while the watcher runs, and its state.
///
/// Loop's thread only.
final class IOWatcher {
    let token: WatcherToken
    let source: RunLoop.Source?
    private let watcher: UnsafeMutablePointer<ev_io>
    private let loop: OpaquePointer
    @exclusivity(unchecked) private(set) var isStarted = false
    /// It stands in the mode's ready set.
    @exclusivity(unchecked) var isListed = false

    /// - Parameters:
    ///   - loop: The `ev_loop`, owned by the `ModeLoop` that owns this watcher as well.
    ///   - source: What to serve when the descriptor is ready; nil for the loop's own descriptors.
    init(loop: OpaquePointer, descriptor: Int32, events: Int32, token: WatcherToken, source: RunLoop.Source?)
    {
        self.loop = loop
        self.token = token
        self.source = source
        watcher = .allocate(capacity: 1)
        watcher.initialize(to: ev_io())
        rondo_ev_io_init(watcher, ioReadiness, descriptor, events)
        watcher.pointee.data = UnsafeMutableRawPointer(bitPattern: token.rawValue)
    }

    deinit {
        precondition(!isStarted, "bug in Rondo: a watcher was released while libev still had its address")
        watcher.deallocate()
    }

    var descriptor: Int32 { watcher.pointee.fd }

    /// The events asked for, `EV_READ | EV_WRITE`.
    var events: Int32 { watcher.pointee.events & Int32(EV_READ | EV_WRITE) }

    func start() {
        guard !isStarted else { return }
        isStarted = true
        ev_io_start(loop, watcher)
    }

    func stop() {
        guard isStarted else { return }
        isStarted = false
        ev_io_stop(loop, watcher)
    }

    /// The watcher must be stopped.
    func set(events: Int32) {
        rondo_ev_io_set(watcher, descriptor, events)
    }
}

/// libev's callback for every descriptor: notes what is ready and returns. User code is called by the pass.
///
/// `ev_userdata` is the `ModeLoop`, unretained: it owns the `ev_loop` and outlives it.
private func ioReadiness(loop: OpaquePointer, watcher: UnsafeMutablePointer<ev_io>, events: Int32) {
    guard let userdata = ev_userdata(loop) else { return }
    Unmanaged<ModeLoop>.fromOpaque(userdata).takeUnretainedValue()
        .report(WatcherToken(rawValue: UInt(bitPattern: watcher.pointee.data)), events: events)
}
