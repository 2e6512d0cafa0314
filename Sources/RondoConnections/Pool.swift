internal import RondoCore
internal import RondoStreams
internal import Synchronization

/// Connections that are kept for the next request to their server. They are in no run loop meanwhile.
final class Pool: Sendable {
    static let shared = Pool()

    /// A link on its way from one load to the next.
    ///
    /// `@unchecked Sendable`: the load that hands it in has let go of it, and it is handed out once.
    struct IdleLink: @unchecked Sendable {
        let link: HTTPLink
    }

    private let state = Mutex(PoolState<IdleLink>())

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
        link.channel.wantsRead = false
        link.channel.wantsWrite = false
        link.channel.removeFromAllLoops()
        let idle = IdleLink(link: link)
        for idle in state.withLock({ $0.add(idle, for: link.key, now: LoopClock.now) }) {
            idle.link.channel.close()
        }
    }

    func closeAll() {
        for idle in state.withLock({ $0.removeAll() }) { idle.link.channel.close() }
    }
}

extension URLConnection {
    /// Closes the connections to servers that are kept open for later requests and serve none now. Any
    /// thread.
    ///
    /// They are closed by themselves only when a later load finds them idle for 55 s: a program that will
    /// load nothing for long should call this.
    public static func closeIdleConnections() {
        Pool.shared.closeAll()
    }
}
