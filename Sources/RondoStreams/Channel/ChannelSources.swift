internal import RondoCore

/// Makes the sources and timers of a connection, and keeps them in the loops and modes of its channel.
protocol ChannelSources: AnyObject {
    /// Asks for a pass of the channel. Any thread.
    var signal: @Sendable () -> Void { get }
    /// As `signal`, before others that wait for a pass.
    var signalFirst: @Sendable () -> Void { get }
    /// A source of the descriptor, watched from now on.
    func makeSource(_ descriptor: Int32, interest: RunLoop.Source.Interest) -> RunLoop.Source
    /// Adds a source that was made elsewhere, and is not suspended with the others.
    func add(_ source: RunLoop.Source)
    func setInterest(_ interest: RunLoop.Source.Interest, of source: RunLoop.Source)
    /// Removes the source from all loops, for good.
    func remove(_ source: RunLoop.Source)
    /// Starts timers that bring the channel a pass: one for each loop, since a timer belongs to one. Any of them that is no
    /// longer valid has fired.
    func startTimers(after seconds: Double) -> [Timer]
    func stop(_ timers: [Timer])
}
