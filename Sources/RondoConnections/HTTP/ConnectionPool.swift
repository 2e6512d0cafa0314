internal import RondoCore
internal import RondoStreams
internal import Synchronization

/// Connections that are kept for the next request to their server. They are in no run loop meanwhile, but for those whose
/// load is just over and another one about to begin: they stay where they are until that had its chance. A timer on the
/// loader closes those that nobody has used for long, and those that their servers have closed.
///
/// To be told of each server's end at once, every connection would have to enter and leave a loop's kernel set with
/// each request. One `poll` of all that are kept, every few seconds and off the way of any request, costs a
/// request nothing and the connection no memory; what dies in between is noticed before it is used.
///
/// Time is the machine's: loops whose clocks are tests' share the pool with others.
final class Pool: Sendable {
    static let shared = Pool()

    /// A connection on its way from one load to the next.
    ///
    /// `@unchecked Sendable`: the load that hands it in has let go of it, and it is handed out once.
    enum IdleLink: @unchecked Sendable {
        /// Ready for use.
        case link(HTTPLink)
        /// There are many to its server: nothing is kept of this one but the connection itself.
        case parked(ParkedSocket)
    }

    /// Of the connections to one server as many stay as they are, those that were used last; the others are
    /// parked, and take a microsecond or two to be made ready again.
    static let maximumReady = 64

    /// How long a connection may stay that its server has closed, in seconds, more or less. Chromium looks every
    /// ten seconds, curl once a second at most while it begins transfers.
    static let secondsBetweenLooks = 5.0

    private let secondsBetweenLooks: Double
    private let maximumReady: Int
    private let state = Mutex(PoolState<IdleLink>())
    /// Looks at what is kept every now and then, and keeps the pool; nil while nothing is.
    private let watcher = Mutex<Timer?>(nil)

    init(
        secondsBetweenLooks: Double = Pool.secondsBetweenLooks, maximumReady: Int = Pool.maximumReady
    ) {
        self.secondsBetweenLooks = secondsBetweenLooks
        self.maximumReady = maximumReady
    }

    /// A kept connection that shows no sign of being dead, or nil. On the thread of a loop that is to serve it.
    ///
    /// One that stays at `courier` is there still (`HTTPLink.endStay()` tells), any other in no run loop.
    ///
    /// - Parameter courier: Where it is to be served, and nowhere else; nil: in several places.
    func take(for key: PoolKey, at courier: StreamCourier? = nil) -> HTTPLink? {
        // One whose last response is still being told of, and the delegate runs the loop for another: that run would hear
        // nothing of it. Hardly ever there is one.
        let servesFurtherOut = RunLoop.servesFurtherOut
        while true {
            let (taken, dropped) = state.withLock { state in
                state.take(for: key, now: LoopClock.machineNow) {
                    !servesFurtherOut || !$0.isServedFurtherOut
                }
            }
            for idle in dropped { idle.close() }
            switch taken {
            case nil:
                return nil
            case .link(let link):
                link.leaveLoops(except: courier)
                if link.channel.isAliveWhenIdle { return link }
                link.channel.close()
            case .parked(let socket):
                if socket.isQuiet { return HTTPLink(resuming: socket, for: key) }
                socket.close()
            }
        }
    }

    /// Keeps a connection that is ready for its next exchange; it leaves its run loops, or that of `courier` a little later:
    /// whoever keeps it so sees to it that `endStay(of:)` is called then.
    ///
    /// - Parameter courier: Where it may stay, and is scheduled, and nowhere else; nil: nowhere.
    func keep(_ link: HTTPLink, stayingAt courier: StreamCourier? = nil) {
        // It does not matter that the next exchange will want to read: it is in no loop, or nobody is let in.
        link.channel.wantsWrite = false
        if let courier { link.noteStay(at: courier) } else { link.channel.removeFromAllLoops() }
        add(link)
    }

    /// A connection that stays where it was leaves, unless somebody has it by now. Any thread.
    ///
    /// The pool's lock comes before those of channels, couriers, sources and loops.
    func endStay(of link: HTTPLink) {
        let (key, identity) = (link.key, ObjectIdentifier(link))
        let (left, parked) = state.withLock { state -> (StreamSchedule.Left?, IdleLink?) in
            guard let (idle, later) = state.last(for: key, where: { $0.isLink(identity) }),
                case .link(let link) = idle, link.endStay()
            else { return (nil, nil) }
            // Under the lock: nobody else has it meanwhile, nor finds it missing.
            let left = link.channel.takeOutOfLoops()
            // Its turn to be parked may have come while it stayed.
            return (left, later < maximumReady ? nil : state.change(behind: later, of: key) { $0.parked() })
        }
        // Without it: what is released by that may be the program's, and whoever is woken is told of in traces.
        left?.leave()
        if parked != nil { HeapTrimmer.shared.noteParked() }
    }

    /// The same of one that is in no run loop.
    func add(_ link: HTTPLink) {
        // What is parked is released without the lock.
        let (dropped, parked) = state.withLock { state in
            (
                state.add(.link(link), for: link.key, now: LoopClock.machineNow),
                state.change(behind: maximumReady, of: link.key) { $0.parked() }
            )
        }
        for idle in dropped { idle.close() }
        if parked != nil { HeapTrimmer.shared.noteParked() }
        watch()
    }

    /// Has what is kept looked at after a while, unless that is arranged already.
    private func watch() {
        watcher.withLock { watcher in
            // Nil: there is no thread for it now, and what is kept next asks again.
            if watcher == nil { watcher = sweepLater(in: secondsBetweenLooks) }
        }
    }

    private func sweepLater(in seconds: Double) -> Timer? {
        guard let loader = try? RunLoop.startedLoader() else { return nil }
        let date = LoopClock.machineDate(inSeconds: seconds)
        let timer = Timer(fire: date, interval: 0, repeats: false) { [self] _ in
            sweep(now: LoopClock.machineNow)
        }
        loader.add(timer, forMode: .default)
        return timer
    }

    /// Closes what has been idle for too long or has died, and comes back for the rest.
    func sweep(now: LoopInstant) {
        for idle in state.withLock({ $0.takeExpired(now: now) }) + takeDead() { idle.close() }
        let seconds = state.withLock { state in
            state.forgetUnused()
            return state.secondsToExpiry(now: now)
        }
        HeapTrimmer.shared.trimAfterBurst()
        // A moment after it expires.
        watchAgain(in: seconds.map { min($0 + 0.1, secondsBetweenLooks) })
    }

    private func takeDead() -> [IdleLink] {
        let descriptors = state.withLock { state in state.all.compactMap(\.descriptor) }
        // Without the lock: what is taken, or closed, by another thread meanwhile is not found below.
        let stirring = SocketChannel.stirring(among: descriptors)
        guard !stirring.isEmpty else { return [] }
        return state.withLock { state in
            state.remove { idle in
                idle.descriptor.map(stirring.contains) ?? true && !idle.isAlive
            }
        }
    }

    /// - Parameter seconds: Nil: nothing is kept, as far as is known.
    private func watchAgain(in seconds: Double?) {
        watcher.withLock { watcher in
            watcher?.invalidate()
            watcher = seconds.flatMap { sweepLater(in: $0) }
        }
        // One may have been kept in between.
        if seconds == nil, state.withLock({ $0.count > 0 }) { watch() }
    }

    func setLimits(_ limits: URLConnection.Limits) {
        for idle in state.withLock({ $0.setLimits(limits) }) { idle.close() }
    }

    /// How many connections are kept.
    var count: Int { state.withLock { $0.count } }

    func closeAll() {
        for idle in state.withLock({ $0.removeAll() }) { idle.close() }
        watchAgain(in: nil)
    }
}

extension Pool.IdleLink {
    var descriptor: Int32? {
        switch self {
        case .link(let link): link.channel.descriptor
        case .parked(let socket): socket.descriptor
        }
    }

    /// See `SocketChannel.isServedFurtherOut`.
    var isServedFurtherOut: Bool {
        switch self {
        case .link(let link): link.channel.isServedFurtherOut
        case .parked: false
        }
    }

    func isLink(_ identity: ObjectIdentifier) -> Bool {
        if case .link(let link) = self { ObjectIdentifier(link) == identity } else { false }
    }

    /// It shows no sign of being dead.
    var isAlive: Bool {
        switch self {
        case .link(let link): link.channel.isAliveWhenIdle
        case .parked(let socket): socket.isQuiet
        }
    }

    func close() {
        switch self {
        case .link(let link): link.channel.close()
        case .parked(let socket): socket.close()
        }
    }

    /// Nil: it is parked already, or cannot be.
    func parked() -> Pool.IdleLink? {
        guard case .link(let link) = self, !link.isStaying else { return nil }
        return link.channel.park().map { .parked($0) }
    }
}

extension URLConnection {
    /// Closes the connections to servers that are kept open for later requests and serve none now. Any
    /// thread.
    ///
    /// Each is closed by itself after 55 s without use, and soon after its server has closed it: a program that
    /// will load nothing for long may call this before.
    public static func closeIdleConnections() {
        Pool.shared.closeAll()
    }
}
