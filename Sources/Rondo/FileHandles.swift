// Methods that hide Foundation's of the same names in a file that imports only Rondo. An extension method
// hides a method of the same type from another module only if the file imports the method's own module. In a
// file that also imports Foundation the eight methods are ambiguous, and the compiler reports that.

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

// Disfavoured: in a file that also imports Foundation these names mean Foundation's, and the compiler does
// not complain. A close is then noticed only when an event arrives for the handle.
extension FileHandle {
    /// Closes the handle. A background call in progress ends without a notification (rule FH-11), and an open
    /// `InputStream` of the handle ends with EBADF (rule FH-15).
    @_disfavoredOverload
    public func close() throws { try closeAfterBackground() }

    /// Closes the handle, and traps if that fails, like Foundation's.
    @_disfavoredOverload
    public func closeFile() {
        do {
            try closeAfterBackground()
        } catch {
            fatalError("FileHandle.closeFile() has failed: \(error). Use close() to handle the error.")
        }
    }

    /// Called when there are bytes to read, or the end of the file: on a queue, or on the loop on which
    /// `schedule(in:forMode:)` has scheduled the handle.
    @_disfavoredOverload
    public var readabilityHandler: (@Sendable (FileHandle) -> Void)? {
        get { scheduledReadabilityHandler }
        set { scheduledReadabilityHandler = newValue }
    }

    /// Called when bytes can be written: on a queue, or on the loop on which `schedule(in:forMode:)` has
    /// scheduled the handle.
    @_disfavoredOverload
    public var writeabilityHandler: (@Sendable (FileHandle) -> Void)? {
        get { scheduledWriteabilityHandler }
        set { scheduledWriteabilityHandler = newValue }
    }
}
