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
    /// Looks at what is kept when the first of it expires; nil while nothing is.
    private let watcher = Mutex<Timer?>(nil)

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
        watcher.withLock { watcher in
            if watcher == nil { watcher = sweepLater(in: PoolState<IdleLink>.maximumIdleSeconds) }
        }
    }

    private func sweepLater(in seconds: Double) -> Timer {
        // A moment later, so that it has expired by then.
        let timer = Timer(timeInterval: seconds + 0.1, repeats: false) { [self] _ in
            sweep(now: LoopClock.now)
        }
        RunLoop.loader.add(timer, forMode: .default)
        return timer
    }

    /// Closes what has been idle for too long, and comes back for the rest.
    func sweep(now: LoopInstant) {
        let (expired, seconds) = state.withLock { ($0.takeExpired(now: now), $0.secondsToExpiry(now: now)) }
        for idle in expired { idle.link.channel.close() }
        watchAgain(in: seconds)
    }

    /// - Parameter seconds: Nil: nothing is kept, as far as is known.
    private func watchAgain(in seconds: Double?) {
        watcher.withLock { watcher in
            watcher?.invalidate()
            watcher = seconds.map { sweepLater(in: $0) }
        }
        // One may have been kept in between.
        if seconds == nil, state.withLock({ $0.count > 0 }) { watch() }
    }

    func setLimits(_ limits: URLConnection.Limits) {
        for idle in state.withLock({ $0.setLimits(limits) }) { idle.link.channel.close() }
    }

    func closeAll() {
        for idle in state.withLock({ $0.removeAll() }) { idle.link.channel.close() }
        watchAgain(in: nil)
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
