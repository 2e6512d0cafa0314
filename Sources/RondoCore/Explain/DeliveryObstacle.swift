// Why has a callback not come? Silence is what users of run loops have suffered from most, so everything that
// is scheduled can say it, and a loop that nobody runs is warned about.

/// Why something that is scheduled on run loops does not call back just now.
public struct DeliveryObstacle: Sendable, Equatable, CustomStringConvertible {
    public enum Reason: Sendable, Equatable {
        /// It was invalidated, has ended or was cancelled.
        case invalid
        /// It is in no mode of any loop.
        case notScheduled
        /// The loop has never been run since it was scheduled there, or at all.
        case loopNeverRan
        /// The loop is not running now.
        case loopNotRunning
        /// The loop runs, in a mode that it is not scheduled in.
        case runsInAnotherMode(RunLoop.Mode)
        /// The loop runs in a scheduled mode, but is inside a callback that has not returned.
        case busy
        /// The thread of the loop has ended.
        case threadEnded
        /// It was signalled, and its loop sleeps: nobody has called `wakeUp()` (rule SRC-2).
        case loopNotWoken
        /// It is in a mode and valid, but waits for nothing: its interest is empty.
        case waitsForNothing
        /// Nothing stands in the way: there is nothing to deliver yet.
        case nothingToDeliver
    }

    public let reason: Reason
    /// The same in a sentence for people.
    public let description: String

    package init(reason: Reason, description: String) {
        self.reason = reason
        self.description = description
    }
}
