public import RondoCore

// Reading, accepting and waiting in the background on a named run loop. The methods by Apple's names, which take
// the calling thread's, are declared in the module `Rondo` itself: only there do they hide Foundation's.

extension FileHandle {
    /// Reads what is available once, and posts `readCompletionNotification` with it, empty at the end, under
    /// `NSFileHandleNotificationDataItem` (rules FH-1 to FH-3).
    ///
    /// At most 64 KiB, of a file 1 MiB. The notification is posted once to the default centre with this handle as
    /// its object, on the thread of `loop`, while that runs in one of `modes`; while none of them runs nothing is
    /// read. An error is the number of `errno` under `"NSFileHandleError"`, with empty data.
    /// - Parameter modes: Nil: the default mode. `.common` stands for every common mode.
    /// - Note: Any thread. A second call before the notification traps; closing the handle ends the call.
    public func readInBackground(on loop: RunLoop, forModes modes: [RunLoop.Mode]? = nil) {
        FileHandleActivity.begin(.read, self, on: loop, modes)
    }

    /// Reads to the end, and posts `NSFileHandleReadToEndOfFileCompletion` with all bytes (rule FH-4); as
    /// `readInBackground(on:forModes:)`. More than 2 GiB are the error EFBIG.
    public func readToEndOfFileInBackground(on loop: RunLoop, forModes modes: [RunLoop.Mode]? = nil) {
        FileHandleActivity.begin(.readToEnd, self, on: loop, modes)
    }

    /// Accepts one connection of a listening socket, and posts `NSFileHandleConnectionAccepted` with a
    /// `FileHandle` for it under `NSFileHandleNotificationFileHandleItem`, which closes its descriptor when it
    /// goes (rule FH-5); as `readInBackground(on:forModes:)`.
    public func acceptConnectionInBackground(on loop: RunLoop, forModes modes: [RunLoop.Mode]? = nil) {
        FileHandleActivity.begin(.accept, self, on: loop, modes)
    }

    /// Posts `NSFileHandleDataAvailable` when there is something to read, or the end, and reads nothing (rule
    /// FH-6); as `readInBackground(on:forModes:)`.
    public func waitForDataInBackground(on loop: RunLoop, forModes modes: [RunLoop.Mode]? = nil) {
        FileHandleActivity.begin(.waitForData, self, on: loop, modes)
    }

    /// Why the notification of a call in the background, or a handler that was scheduled on a loop, has not come.
    public var whyNotDelivering: DeliveryObstacle {
        if let source = FileHandleActivities.source(of: self) { return source.whyNotDelivering }
        return FileHandleHandlers.source(of: self)?.whyNotDelivering
            ?? DeliveryObstacle(
                reason: .notScheduled,
                description: "no call in the background is under way, and no handler is scheduled on a loop")
    }

    /// Closes the handle, as Foundation does, after what is under way in the background was ended without a
    /// notification, and its streams with an error.
    package func closeAfterBackground() throws {
        FileHandleActivities.cancel(on: self)
        FileHandleHandlers.cancel(on: self)
        FileHandleStreams.end(of: self)
        try close()
    }
}
