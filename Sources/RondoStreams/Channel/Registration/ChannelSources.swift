internal import RondoCore

/// Makes the sources and timers of a connection, and keeps them in the loops and modes of its channel.
protocol ChannelSources: AnyObject {
    /// Asks for a pass of the channel. Any thread.
    var askForPass: @Sendable () -> Void { get }
    /// As `askForPass`, but before the other channels and loads that wait for a pass.
    var askForPassFirst: @Sendable () -> Void { get }
    /// Makes a source for the descriptor and adds it to all modes.
    func makeSource(_ descriptor: Int32, interest: RunLoop.Source.Interest) -> RunLoop.Source
    /// Adds a source that was made elsewhere; it is not suspended with the others.
    func add(_ source: RunLoop.Source)
    func setInterest(_ interest: RunLoop.Source.Interest, of source: RunLoop.Source)
    /// Removes the source from all loops, permanently.
    func remove(_ source: RunLoop.Source)
    /// Starts timers that bring the channel a pass, one for each loop, because a timer belongs to one loop. A
    /// timer that is no longer valid has fired.
    func startTimers(after seconds: Double) -> [Timer]
    func stop(_ timers: [Timer])
}
