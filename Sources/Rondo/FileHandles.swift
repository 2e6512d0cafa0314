// What hides Foundation's methods of the same names in a file that imports Rondo alone: an extension method hides
// another module's of the same type only from the module that the file imports by itself. In a file that imports
// Foundation as well the eight are ambiguous, which the compiler says.

extension FileHandle {
    /// `readInBackground(on:forModes:)` on the calling thread's loop, in the default mode.
    @available(*, noasync, message: "A task has no thread of its own: use readInBackground(on:forModes:).")
    public func readInBackgroundAndNotify() { readInBackground(on: .current) }

    /// `readInBackground(on:forModes:)` on the calling thread's loop.
    @available(*, noasync, message: "A task has no thread of its own: use readInBackground(on:forModes:).")
    public func readInBackgroundAndNotify(forModes modes: [RunLoop.Mode]?) {
        readInBackground(on: .current, forModes: modes)
    }

    /// `readToEndOfFileInBackground(on:forModes:)` on the calling thread's loop, in the default mode.
    @available(
        *, noasync, message: "A task has no thread of its own: use readToEndOfFileInBackground(on:forModes:)."
    )
    public func readToEndOfFileInBackgroundAndNotify() { readToEndOfFileInBackground(on: .current) }

    /// `readToEndOfFileInBackground(on:forModes:)` on the calling thread's loop.
    @available(
        *, noasync, message: "A task has no thread of its own: use readToEndOfFileInBackground(on:forModes:)."
    )
    public func readToEndOfFileInBackgroundAndNotify(forModes modes: [RunLoop.Mode]?) {
        readToEndOfFileInBackground(on: .current, forModes: modes)
    }

    /// `acceptConnectionInBackground(on:forModes:)` on the calling thread's loop, in the default mode.
    @available(
        *, noasync,
        message: "A task has no thread of its own: use acceptConnectionInBackground(on:forModes:)."
    )
    public func acceptConnectionInBackgroundAndNotify() { acceptConnectionInBackground(on: .current) }

    /// `acceptConnectionInBackground(on:forModes:)` on the calling thread's loop.
    @available(
        *, noasync,
        message: "A task has no thread of its own: use acceptConnectionInBackground(on:forModes:)."
    )
    public func acceptConnectionInBackgroundAndNotify(forModes modes: [RunLoop.Mode]?) {
        acceptConnectionInBackground(on: .current, forModes: modes)
    }

    /// `waitForDataInBackground(on:forModes:)` on the calling thread's loop, in the default mode.
    @available(
        *, noasync, message: "A task has no thread of its own: use waitForDataInBackground(on:forModes:)."
    )
    public func waitForDataInBackgroundAndNotify() { waitForDataInBackground(on: .current) }

    /// `waitForDataInBackground(on:forModes:)` on the calling thread's loop.
    @available(
        *, noasync, message: "A task has no thread of its own: use waitForDataInBackground(on:forModes:)."
    )
    public func waitForDataInBackgroundAndNotify(forModes modes: [RunLoop.Mode]?) {
        waitForDataInBackground(on: .current, forModes: modes)
    }
}

// Disfavoured: in a file that imports Foundation as well they are Foundation's, without a question of the
// compiler's. A close is noticed then when something comes for the handle.
extension FileHandle {
    /// Closes the handle. A call in the background that is under way ends without a notification (rule FH-11), and
    /// an open `InputStream` of the handle with EBADF (rule FH-15).
    @_disfavoredOverload
    public func close() throws { try closeAfterBackground() }

    /// Closes the handle, and traps where that fails, as Foundation's does.
    @_disfavoredOverload
    public func closeFile() {
        do {
            try closeAfterBackground()
        } catch {
            fatalError("FileHandle.closeFile() has failed: \(error). Use close() to handle the error.")
        }
    }

    /// Called when there is something to read, or the end: on a queue, or on the loop that the handle was
    /// scheduled on by `schedule(in:forMode:)`.
    @_disfavoredOverload
    public var readabilityHandler: (@Sendable (FileHandle) -> Void)? {
        get { scheduledReadabilityHandler }
        set { scheduledReadabilityHandler = newValue }
    }

    /// Called when something can be written: on a queue, or on the loop that the handle was scheduled on by
    /// `schedule(in:forMode:)`.
    @_disfavoredOverload
    public var writeabilityHandler: (@Sendable (FileHandle) -> Void)? {
        get { scheduledWriteabilityHandler }
        set { scheduledWriteabilityHandler = newValue }
    }
}
