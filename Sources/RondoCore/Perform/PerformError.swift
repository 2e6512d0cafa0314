extension RunLoop {
    /// The reason why a closure that was performed on a loop, with a caller waiting, was not called.
    public struct PerformError: Error, Hashable, Sendable, CustomStringConvertible {
        public let description: String

        private init(_ description: String) { self.description = description }

        /// The loop's thread ended before it called the closure.
        public static let threadEnded = PerformError("the thread has ended, and has not called the closure")
        /// The array of modes was empty.
        public static let noModes = PerformError("the closure was performed in no mode, and is not called")
    }
}
