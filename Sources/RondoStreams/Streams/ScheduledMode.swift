internal import RondoCore

/// One mode of one run loop, in which a stream or a channel is scheduled.
struct ScheduledMode: Equatable, Sendable {
    let loop: RunLoop
    let mode: RunLoop.Mode

    /// The mode in which the sockets of streams with a dispatch queue are driven.
    static var loader: ScheduledMode { .init(loop: .loader, mode: .default) }

    func add(_ source: RunLoop.Source) { loop.add(source, forMode: mode) }

    func remove(_ source: RunLoop.Source) {
        loop.remove(source, forMode: mode)
        // A loop of another thread, as the loader's is, releases the source when it wakes up.
        if !loop.isCurrent { loop.wakeUp() }
    }
}
