/// The reason why an object that is scheduled on run loops does not call back.
public struct DeliveryObstacle: Sendable, Equatable, CustomStringConvertible {
    /// The reason. Later versions may know more reasons: a `switch` needs a `default`.
    public struct Reason: Sendable, Hashable, CustomStringConvertible {
        private let name: String
        /// The mode that the loop runs in, if that is the reason.
        public let runningMode: RunLoop.Mode?

        private init(_ name: String, runningMode: RunLoop.Mode? = nil) {
            self.name = name
            self.runningMode = runningMode
        }

        public var description: String { runningMode.map { "\(name)(\($0.shortName))" } ?? name }

        /// The object was invalidated, has ended or was cancelled.
        public static let invalid = Reason("invalid")
        /// The object is in no mode of any loop.
        public static let notScheduled = Reason("notScheduled")
        /// The loop has never been run, or only in modes that were empty.
        public static let loopNeverRan = Reason("loopNeverRan")
        /// The loop is not running now.
        public static let loopNotRunning = Reason("loopNotRunning")
        /// The loop runs in a mode in which the object is not scheduled.
        public static func runsInAnotherMode(_ mode: RunLoop.Mode) -> Reason {
            Reason("runsInAnotherMode", runningMode: mode)
        }
        /// The loop runs in a mode of the object's, but is inside a callback that has not returned.
        public static let busy = Reason("busy")
        /// The closure was performed on a thread that has not asked for its loop yet.
        public static let noLoopYet = Reason("noLoopYet")
        /// The thread of the loop has ended.
        public static let threadEnded = Reason("threadEnded")
        /// The object was suspended, or never resumed.
        public static let suspended = Reason("suspended")
        /// A delegate owes the object an answer, or the object waits for a connection, a network, descriptors
        /// or memory that have run out, or for its turn on a queue.
        public static let waits = Reason("waits")
        /// The source was signalled, and its loop sleeps until `wakeUp()` is called (rule SRC-2).
        public static let loopNotWoken = Reason("loopNotWoken")
        /// The object is in a mode and valid, but waits for nothing: its interest is empty.
        public static let waitsForNothing = Reason("waitsForNothing")
        /// There is no obstacle: there is nothing to deliver yet.
        public static let nothingToDeliver = Reason("nothingToDeliver")
    }

    public let reason: Reason
    /// The reason in a sentence for people.
    public let description: String

    package init(reason: Reason, description: String) {
        self.reason = reason
        self.description = description
    }
}
