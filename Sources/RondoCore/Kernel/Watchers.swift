internal import CEv

/// One `ev_io` of a mode, and what the mode knows about it: a line of the processor's cache together, since among ten
/// thousand that is what finding one of them ready costs.
///
/// It stands in a `WatcherTable`, where libev keeps the address of `io` while it is started.
struct Watcher {
    /// Comes first: the address that libev calls back with is that of the watcher.
    var io = ev_io()
    /// What to serve when the descriptor is ready, retained by the watcher; nil for the loop's own descriptors, and in a
    /// place that is free.
    var source: Unmanaged<AnyObject>?
    /// Tells apart those that have stood here.
    var generation: UInt32 = 0
    var isStarted = false
    /// It stands in the mode's ready set.
    var isListed = false

    /// The events asked for, `EV_READ | EV_WRITE`.
    var events: Int32 { io.events & Int32(EV_READ | EV_WRITE) }
}

typealias WatcherPointer = UnsafeMutablePointer<Watcher>

extension WatcherPointer {
    /// - Parameter loop: The `ev_loop`; nil where the mode has none so far: it is told by `tell(_:)` then.
    func start(in loop: OpaquePointer?) {
        guard !pointee.isStarted else { return }
        pointee.isStarted = true
        if let loop { tell(loop) }
    }

    func stop(in loop: OpaquePointer?) {
        guard pointee.isStarted else { return }
        pointee.isStarted = false
        if let loop { ev_io_stop(loop, io) }
    }

    /// Starts what is not started, and what libev has stopped itself: having been set, it is handed to the kernel again,
    /// though libev thinks that it is there.
    func startAnew(
        _ descriptor: Int32, events: Int32, in loop: OpaquePointer, _ callback: rondo_ev_io_callback
    ) {
        guard !pointee.isStarted else { return }
        set(descriptor, events: events, callback)
        start(in: loop)
    }

    /// Makes a loop know a watcher that is started.
    func tell(_ loop: OpaquePointer) { ev_io_start(loop, io) }

    /// A loop that the watcher is known to is given up.
    func forget(_ loop: OpaquePointer) { ev_io_stop(loop, io) }

    /// It must be stopped.
    func set(_ descriptor: Int32, events: Int32, _ callback: rondo_ev_io_callback) {
        rondo_ev_io_init(io, callback, descriptor, events)
    }

    /// The struct's first member has its address.
    private var io: UnsafeMutablePointer<ev_io> {
        UnsafeMutableRawPointer(self).assumingMemoryBound(to: ev_io.self)
    }

    init(_ io: UnsafeMutablePointer<ev_io>) {
        self = UnsafeMutableRawPointer(io).assumingMemoryBound(to: Watcher.self)
    }
}

/// The memory of a mode's watchers, in pieces that do not move, each as large as all before it. Loop's thread only.
///
/// What makes its pointers safe: whether anybody stands there or not, the memory of a place is a watcher's as long as the
/// table is there, or until `shrink(to:)`. So a pointer and a generation are a token: out of date they find nobody.
///
/// A table that has been large stays so while anybody stands in it: 64 bytes for each watcher that there was at once.
struct WatcherTable: ~Copyable {
    /// How many watchers the first piece has room for.
    private static let smallest = 8
    private static let cacheLine = 64

    private var pieces: [WatcherPointer] = []
    /// Places that have been taken at some time; those behind them have never been touched.
    private var used = 0
    private var free: [WatcherPointer] = []

    deinit {
        forEach { precondition(!$0.pointee.isStarted, Self.stillStarted) }
        for piece in pieces { UnsafeMutableRawPointer(piece).deallocate() }
    }

    private static var stillStarted: String { "bug in Rondo: libev still has a watcher's address" }

    /// A place for a watcher, as new but for its generation.
    mutating func take() -> WatcherPointer {
        if let place = free.popLast() { return place }
        if used == Self.room(in: pieces.count) {
            let count = Self.room(in: pieces.count + 1) - used
            // One that begins in the middle of a line takes two.
            let piece = UnsafeMutableRawPointer.allocate(
                byteCount: count * MemoryLayout<Watcher>.stride, alignment: Self.cacheLine)
            pieces.append(piece.bindMemory(to: Watcher.self, capacity: count))
        }
        used += 1
        let place = self[used - 1]
        place.initialize(to: Watcher())
        return place
    }

    /// Whoever stood there has been stopped.
    mutating func giveBack(_ place: WatcherPointer) {
        precondition(!place.pointee.isStarted, Self.stillStarted)
        place.pointee = Watcher(generation: place.pointee.generation &+ 1)
        free.append(place)
    }

    /// Gives back what the many have taken that are gone.
    ///
    /// - Parameter count: Somebody may stand at the first so many places that were taken, and stays there. The others are
    ///   empty, and nobody has a pointer to one of them.
    mutating func shrink(to count: Int) {
        guard pieces.count > 1 else { return }
        for index in count..<used { precondition(!self[index].pointee.isStarted, Self.stillStarted) }
        for piece in pieces[1...] { UnsafeMutableRawPointer(piece).deallocate() }
        pieces = [pieces[0]]
        used = Self.smallest
        free = (count..<used).reversed().map { self[$0] }
    }

    /// All that stand anywhere, and places where nobody stands.
    func forEach(_ body: (WatcherPointer) -> Void) {
        for index in 0..<used { body(self[index]) }
    }

    /// How many watchers the first so many pieces have room for.
    private static func room(in pieces: Int) -> Int { pieces == 0 ? 0 : smallest << (pieces - 1) }

    private subscript(index: Int) -> WatcherPointer {
        // They begin at 0, 8, 16, 32 …
        let piece = Int.bitWidth - (index / Self.smallest).leadingZeroBitCount
        return pieces[piece] + (index - Self.room(in: piece))
    }
}
