internal import RondoCore
internal import RondoStreams
internal import Synchronization

/// Connections that are kept for the next request to their server. They are in no run loop meanwhile; a timer on
/// the loader closes those that nobody has used for long.
final class Pool: Sendable {
    static let shared = Pool()

    /// A link on its way from one load to the next.
    ///
    /// `@unchecked Sendable`: the load that hands it in has let go of it, and it is handed out once.
    struct IdleLink: @unchecked Sendable {
        let link: HTTPLink
    }

    private let state = Mutex(PoolState<IdleLink>())
    /// A timer looks at what is kept.
    private let isWatched = Mutex(false)

    /// A kept connection that shows no sign of being dead, or nil.
    func take(for key: PoolKey) -> HTTPLink? {
        while true {
            let (taken, dropped) = state.withLock { $0.take(for: key, now: LoopClock.now) }
            for idle in dropped { idle.link.channel.close() }
            guard let link = taken?.link else { return nil }
            if link.channel.isAliveWhenIdle { return link }
            link.channel.close()
        }
    }

    /// Keeps a connection whose exchange is over.
    func keep(_ link: HTTPLink) {
        link.codec.startNextCycle()
        link.isReused = true
        // In no loop, it does not matter that the next exchange will want to read.
        link.channel.wantsWrite = false
        link.channel.removeFromAllLoops()
        let idle = IdleLink(link: link)
        for idle in state.withLock({ $0.add(idle, for: link.key, now: LoopClock.now) }) {
            idle.link.channel.close()
        }
        watch()
    }

    /// Has what is kept looked at when the first of it expires, unless that is arranged already.
    private func watch() {
        let isNew = isWatched.withLock { isWatched in
            defer { isWatched = true }
            return !isWatched
        }
        if isNew { sweepLater(in: PoolState<IdleLink>.maximumIdleSeconds) }
    }

    private func sweepLater(in seconds: Double) {
        // A moment later, so that it has expired by then.
        let timer = Timer(timeInterval: seconds + 0.1, repeats: false) { [self] _ in
            sweep(now: LoopClock.now)
        }
        RunLoop.loader.add(timer, forMode: .default)
    }

    /// Closes what has been idle for too long, and comes back for the rest.
    func sweep(now: LoopInstant) {
        let (expired, seconds) = state.withLock { ($0.takeExpired(now: now), $0.secondsToExpiry(now: now)) }
        for idle in expired { idle.link.channel.close() }
        if let seconds { return sweepLater(in: seconds) }
        isWatched.withLock { $0 = false }
        // One may have been kept in between.
        if state.withLock({ $0.count > 0 }) { watch() }
    }

    func setLimits(_ limits: URLConnection.Limits) {
        for idle in state.withLock({ $0.setLimits(limits) }) { idle.link.channel.close() }
    }

    func closeAll() {
        for idle in state.withLock({ $0.removeAll() }) { idle.link.channel.close() }
    }
}

extension URLConnection {
    /// Closes the connections to servers that are kept open for later requests and serve none now. Any
    /// thread.
    ///
    /// Each is closed by itself after 55 s without use: a program that will load nothing for long may call this
    /// before.
    public static func closeIdleConnections() {
        Pool.shared.closeAll()
    }
}
