extension RunLoop {
    /// Why a closure that was performed on a loop, and waited for, was not called.
    public struct PerformError: Error, Hashable, Sendable, CustomStringConvertible {
        public let description: String

        private init(_ description: String) { self.description = description }

        /// The thread of the loop has ended, or ended before it called the closure.
        public static let threadEnded = PerformError("the thread has ended, and has not called the closure")
        /// The closure was performed in no mode.
        public static let noModes = PerformError("the closure was performed in no mode, and is not called")
    }
}
