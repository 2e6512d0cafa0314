public import RondoCore

// Reading, accepting and waiting in the background on a given run loop. The methods with Apple's names, which
// use the calling thread's loop, are declared in the module `Rondo` itself, because only there do they hide
// Foundation's.

extension FileHandle {
    /// Reads the available bytes once, and posts `readCompletionNotification` with them under
    /// `NSFileHandleNotificationDataItem`, empty at the end (rules FH-1 to FH-3).
    ///
    /// Reads at most 64 KiB, from a file 1 MiB. The notification is posted once to the default centre with
    /// this handle as its object, on the thread of `loop`, while it runs in one of `modes`; while none of
    /// them runs, nothing is read. After an error the data are empty, and `"NSFileHandleError"` holds the
    /// errno.
    /// - Parameter modes: Nil: the default mode. `.common` stands for every common mode.
    /// - Note: Any thread. A second call before the notification traps; closing the handle cancels the call.
    public func readInBackground(on loop: RunLoop, forModes modes: [RunLoop.Mode]? = nil) {
        FileHandleActivity.begin(.read, self, on: loop, modes)
    }

    /// Reads to the end, and posts `NSFileHandleReadToEndOfFileCompletion` with all bytes (rule FH-4);
    /// otherwise as `readInBackground(on:forModes:)`. 2 GiB or more fail with EFBIG.
    public func readToEndOfFileInBackground(on loop: RunLoop, forModes modes: [RunLoop.Mode]? = nil) {
        FileHandleActivity.begin(.readToEnd, self, on: loop, modes)
    }

    /// Accepts one connection of a listening socket, and posts `NSFileHandleConnectionAccepted` with a
    /// `FileHandle` for it under `NSFileHandleNotificationFileHandleItem`. That handle closes its descriptor
    /// in its deinit (rule FH-5). Otherwise as `readInBackground(on:forModes:)`.
    public func acceptConnectionInBackground(on loop: RunLoop, forModes modes: [RunLoop.Mode]? = nil) {
        FileHandleActivity.begin(.accept, self, on: loop, modes)
    }

    /// Posts `NSFileHandleDataAvailable` when there are bytes to read, or the end, and reads nothing (rule
    /// FH-6); otherwise as `readInBackground(on:forModes:)`.
    public func waitForDataInBackground(on loop: RunLoop, forModes modes: [RunLoop.Mode]? = nil) {
        FileHandleActivity.begin(.waitForData, self, on: loop, modes)
    }

    /// The reason why a call in the background has not posted its notification, or a handler scheduled on a
    /// loop was not called.
    public var whyNotDelivering: DeliveryObstacle {
        if let source = FileHandleActivities.source(of: self) { return source.whyNotDelivering }
        return FileHandleHandlers.source(of: self)?.whyNotDelivering
            ?? DeliveryObstacle(
                reason: .notScheduled,
                description: "no call in the background is under way, and no handler is scheduled on a loop")
    }

    /// Closes the handle, like Foundation's `close()`. Before that, calls in the background are cancelled
    /// without a notification, and the handle's streams end with an error.
    package func closeAfterBackground() throws {
        FileHandleActivities.cancel(on: self)
        FileHandleHandlers.cancel(on: self)
        FileHandleStreams.end(of: self)
        try close()
    }
}
