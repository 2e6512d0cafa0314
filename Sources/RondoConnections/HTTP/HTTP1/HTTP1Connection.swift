internal import FoundationNetworking
internal import RondoCore
internal import RondoHTTP
internal import RondoStreams

internal import struct Synchronization.Atomic

/// An HTTP/1.1 connection to a server, kept between exchanges: a channel, and the codec that speaks over it.
///
/// While it is in use, only its exchange accesses it; while it is idle, only its origin does: under the origin's lock, or
/// after taking it out and before putting it back.
/// `registration` is atomic.
final class HTTP1Connection: DeferredWork {
    let channel: SocketChannel
    let key: ConnectionKey
    let origin: Origin
    /// See `ConnectionPool.renew()`.
    let generation: Int
    /// Also changed by the exchange that uses the connection.
    // Unchecked: inside the gate of the exchange, or under the origin's lock, so that no two accesses overlap. With the checks
    // of this and of the exchange's variables bench-guard's http.request takes 6 % more instructions.
    @exclusivity(unchecked) var codec = HTTP1Codec()
    /// Whether the connection has served a request before.
    private(set) var isReused = false
    /// Whether a delegate has accepted the server, or shown it an identity: then no other load may use the
    /// connection.
    private(set) var isPrivate = false
    /// Whether a response has come that may belong to no request, so that later responses may belong to other requests.
    private(set) var isDesynchronized = false
    /// The address of the shared queue with which the idle connection is still registered; 0 if there is
    /// none. The channel retains the queue meanwhile.
    private let registration = Atomic<UInt>(0)

    init(_ channel: SocketChannel, key: ConnectionKey, of origin: Origin) {
        self.channel = channel
        self.key = key
        self.origin = origin
        generation = origin.generation
        if let heads = RecentHeads.current?.heads(of: origin) { codec.recentHeads = heads }
    }

    /// Makes a parked connection ready for use again.
    convenience init(resuming socket: ParkedSocket, for key: ConnectionKey, of origin: Origin) {
        self.init(
            SocketChannel(resuming: socket, .init(host: key.host, port: key.port)), key: key, of: origin)
        isReused = true
    }

    // MARK: Its next request

    /// Makes the connection ready for another request.
    ///
    /// - Returns: False if the codec cannot continue.
    func startNextCycle() -> Bool {
        guard codec.startNextCycle() else { return false }
        isReused = true
        return true
    }

    func makePrivate() { isPrivate = true }

    func noteDesynchronized() { isDesynchronized = true }

    /// Shares `head`, which was read just now, with other connections of the loop.
    ///
    /// - Returns: The head that they share, equal to `head`.
    func share(_ head: ResponseHead) -> ResponseHead {
        guard codec.hasUnsharedHeads, let memory = RecentHeads.current else { return head }
        return memory.share(head, of: &codec, to: origin)
    }

    // MARK: The end of its use

    /// Ends the lease of this connection, which is ready for its next exchange and is kept.
    ///
    /// - Parameters:
    ///   - loop: The loop whose idle connections it joins.
    ///   - queue: The queue with which it stays registered for now; the caller ensures that `unregisterIfIdle()` is called
    ///     soon. If nil, it leaves all loops now.
    func endLease(keptFor loop: RunLoop, registeredAt queue: SharedQueue?) {
        // The read interest can stay: the connection is in no loop, or no event is let in.
        channel.wantsWrite = false
        if let queue { noteRegistered(at: queue) } else { channel.removeFromAllLoops() }
        origin.endLease(keeping: self, of: loop)
    }

    // MARK: Registered while idle

    /// Whether the connection is idle and registered with a loop's kernel set.
    var isRegisteredIdle: Bool { registration.load(ordering: .relaxed) != 0 }

    func noteRegistered(at queue: SharedQueue) {
        registration.store(UInt(bitPattern: ObjectIdentifier(queue)), ordering: .relaxed)
    }

    /// - Returns: Whether the connection was registered as idle. It still is in the loop; the caller uses that
    ///   registration, or ends it.
    func takeRegistration() -> Bool { registration.exchange(0, ordering: .relaxed) != 0 }

    /// Unregisters the connection, unless it is registered with `queue`, where it is to be used. Call it after taking the
    /// connection.
    func unregister(unlessAt queue: SharedQueue?) {
        let registered = registration.load(ordering: .relaxed)
        if registered == 0 { return }
        if let queue, registered == UInt(bitPattern: ObjectIdentifier(queue)) { return }
        if takeRegistration() { channel.removeFromAllLoops() }
    }

    /// Unregisters the connection if it is still idle.
    func unregisterIfIdle() { if isRegisteredIdle { origin.unregister(self) } }

    /// Unregisters the connection from the loop, with which it had stayed registered for the next request.
    func performDeferredWork() -> Bool {
        unregisterIfIdle()
        return false
    }
}
