internal import CRondoEv

/// One `ev_io` of a mode, and the mode's data about it.
///
/// Together they take one cache line, so that a ready descriptor among ten thousand costs one access to
/// memory. A watcher is allocated in a `WatcherTable`; libev keeps the address of `io` while it is started.
/// The mode changes it (`ModeLoop`, `ReadySet`), through its address.
struct Watcher {
    /// Must come first: libev calls back with its address, which is then also the address of the watcher.
    var io = ev_io()
    /// The source to serve when the descriptor is ready; nil for the loop's own descriptors, and in a free
    /// watcher.
    ///
    /// `Unmanaged`: retained by hand from `ModeLoop.watch` to `unwatch`, so that a watcher is trivial memory
    /// whose address libev may keep, and serving an event needs no reference counting: its worth
    /// stands at `Pass.serveDescriptor()`.
    var source: Unmanaged<AnyObject>?
    /// The number of times that the watcher was freed: an old pointer with another generation is out of date.
    fileprivate(set) var generation: UInt32 = 0
    var isStarted = false
    /// Whether the watcher is in the mode's ready set.
    var isListed = false

    /// The events asked for, `EV_READ | EV_WRITE`.
    var events: Int32 { io.events & Int32(EV_READ | EV_WRITE) }
}

typealias WatcherPointer = UnsafeMutablePointer<Watcher>

extension WatcherPointer {
    /// - Parameter loop: The `ev_loop`; nil if the mode has none yet. The mode calls `register(with:)` when
    ///   it gets one.
    func start(in loop: OpaquePointer?) {
        guard !pointee.isStarted else { return }
        pointee.isStarted = true
        if let loop { register(with: loop) }
    }

    func stop(in loop: OpaquePointer?) {
        guard pointee.isStarted else { return }
        pointee.isStarted = false
        if let loop { ev_io_stop(loop, io) }
    }

    /// Starts a watcher that is not started, or that libev has stopped itself. Setting it first makes libev
    /// hand it to the kernel again, although libev assumes that the kernel has it.
    func startAnew(
        _ descriptor: Int32, events: Int32, in loop: OpaquePointer, _ callback: rondo_ev_io_callback
    ) {
        guard !pointee.isStarted else { return }
        set(descriptor, events: events, callback)
        start(in: loop)
    }

    /// Registers a started watcher with a loop.
    func register(with loop: OpaquePointer) { ev_io_start(loop, io) }

    /// Takes a started watcher out of a loop that is given up.
    func unregister(from loop: OpaquePointer) { ev_io_stop(loop, io) }

    /// The watcher must be stopped.
    func set(_ descriptor: Int32, events: Int32, _ callback: rondo_ev_io_callback) {
        rondo_ev_io_init(io, callback, descriptor, events)
    }

    /// A pointer to the struct's first member, which has the address of the struct.
    private var io: UnsafeMutablePointer<ev_io> {
        UnsafeMutableRawPointer(self).assumingMemoryBound(to: ev_io.self)
    }

    init(_ io: UnsafeMutablePointer<ev_io>) {
        self = UnsafeMutableRawPointer(io).assumingMemoryBound(to: Watcher.self)
    }
}

/// The memory of a mode's watchers, in pieces that do not move, each as large as all before it together.
/// Loop's thread only.
///
/// Pointers into the table are safe because the memory of a watcher remains a watcher's, in use or free,
/// until the table is destroyed or `shrink(to:)` is called. So a pointer and a generation are a token: a
/// token that is out of date has another generation than the watcher.
///
/// A table that has grown keeps its size while it has a source: 64 bytes for each watcher of the largest
/// number in use at once.
struct WatcherTable: ~Copyable {
    /// The number of watchers that fit in the first piece.
    private static let smallest = 8
    private static let cacheLine = 64

    private var pieces: [WatcherPointer] = []
    /// The number of watchers that were ever allocated; the memory behind them has never been touched.
    private var used = 0
    private var free: [WatcherPointer] = []

    deinit {
        forEach { precondition(!$0.pointee.isStarted, Self.stillStarted) }
        for piece in pieces { UnsafeMutableRawPointer(piece).deallocate() }
    }

    private static var stillStarted: String { "bug in Rondo: libev still has a watcher's address" }

    /// A watcher that is not in use; only its generation differs from a new one's.
    mutating func take() -> WatcherPointer {
        if let watcher = free.popLast() { return watcher }
        if used == Self.room(in: pieces.count) {
            let count = Self.room(in: pieces.count + 1) - used
            // Aligned: a watcher that begins in the middle of a cache line would take two.
            let piece = UnsafeMutableRawPointer.allocate(
                byteCount: count * MemoryLayout<Watcher>.stride, alignment: Self.cacheLine)
            pieces.append(piece.bindMemory(to: Watcher.self, capacity: count))
        }
        used += 1
        let watcher = self[used - 1]
        watcher.initialize(to: Watcher())
        return watcher
    }

    /// Frees a watcher, which must be stopped.
    mutating func giveBack(_ watcher: WatcherPointer) {
        precondition(!watcher.pointee.isStarted, Self.stillStarted)
        watcher.pointee = Watcher(generation: watcher.pointee.generation &+ 1)
        free.append(watcher)
    }

    /// Frees the memory of all pieces but the first.
    ///
    /// - Parameter count: The number of watchers that may be in use and stay: the first ones allocated. The
    ///   others are free, and no pointer to one of them is kept anywhere.
    mutating func shrink(to count: Int) {
        guard pieces.count > 1 else { return }
        for index in count..<used { precondition(!self[index].pointee.isStarted, Self.stillStarted) }
        for piece in pieces[1...] { UnsafeMutableRawPointer(piece).deallocate() }
        pieces = [pieces[0]]
        used = Self.smallest
        free = (count..<used).reversed().map { self[$0] }
    }

    /// All watchers, in use or free.
    func forEach(_ body: (WatcherPointer) -> Void) {
        for index in 0..<used { body(self[index]) }
    }

    /// The number of watchers that fit in the first `pieces` pieces.
    private static func room(in pieces: Int) -> Int { pieces == 0 ? 0 : smallest << (pieces - 1) }

    private subscript(index: Int) -> WatcherPointer {
        // The pieces begin at indices 0, 8, 16, 32 …
        let piece = Int.bitWidth - (index / Self.smallest).leadingZeroBitCount
        return pieces[piece] + (index - Self.room(in: piece))
    }
}
