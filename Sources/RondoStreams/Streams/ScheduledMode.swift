internal import RondoCore

/// One mode of one run loop, in which a stream or a channel is scheduled.
struct ScheduledMode: Equatable, Sendable {
    let loop: RunLoop
    let mode: RunLoop.Mode

    /// The mode in which the sockets of streams with a dispatch queue are driven.
    static var loader: ScheduledMode { .init(loop: .loader, mode: .default) }
}
