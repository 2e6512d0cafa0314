public import RondoCore

extension FileHandle {
    /// Calls `readabilityHandler` and `writeabilityHandler`, those set now and those set later, on the thread
    /// of `loop` while it runs in `mode`, and no longer on a queue (rule FH-14). Handlers of a loop whose
    /// thread has ended are among them.
    ///
    /// The end is reported once, by empty `availableData`; the handler is removed then. In a file that
    /// imports Foundation beside Rondo the properties are Foundation's, so handlers must be set before this
    /// call.
    /// - Throws: An error of `NSPOSIXErrorDomain` if the kernel has no descriptor left; the handle's schedule
    ///   is unchanged then.
    public func schedule(in loop: RunLoop, forMode mode: RunLoop.Mode) throws {
        // The sources are retained until `loop` has them: a loop that holds them may end meanwhile.
        let remains = FileHandleHandlers.of(self)?.remains
        defer { withExtendedLifetime(remains) {} }
        let read = readabilityHandler ?? remains?.read
        let write = writeabilityHandler ?? remains?.write
        // Made first, so that nothing has changed if one cannot be made.
        let readDescriptor = try read.map { _ in try FileHandleHandlers.OwnDescriptor(of: self) }
        let writeDescriptor = try write.map { _ in try FileHandleHandlers.OwnDescriptor(of: self) }
        let handlers = FileHandleHandlers.enter(self, loop, mode)
        // Foundation's own handlers, on its queue, are removed before a loop can call them. They are set again if another
        // thread has removed the handle from the mode meanwhile.
        if let read {
            readabilityHandler = nil
            if try !handlers.setRead(read, by: readDescriptor) { readabilityHandler = read }
        }
        if let write {
            writeabilityHandler = nil
            if try !handlers.setWrite(write, by: writeDescriptor) { writeabilityHandler = write }
        }
    }

    /// Undoes `schedule(in:forMode:)`. With the last mode the handlers become Foundation's again, which calls
    /// them on a queue.
    public func remove(from loop: RunLoop, forMode mode: RunLoop.Mode) {
        guard let (read, write) = FileHandleHandlers.of(self)?.leave(loop, mode) else { return }
        // One that is there was set by another thread since then.
        if let read, readabilityHandler == nil { readabilityHandler = read }
        if let write, writeabilityHandler == nil { writeabilityHandler = write }
    }

    /// The `readabilityHandler`, whether a loop or Foundation calls it.
    package var scheduledReadabilityHandler: (@Sendable (FileHandle) -> Void)? {
        get { FileHandleHandlers.of(self)?.read ?? readabilityHandler }
        set {
            let isScheduled = FileHandleHandlers.of(self)?.set(newValue, by: FileHandleHandlers.setRead)
            if !(isScheduled ?? false) { readabilityHandler = newValue }
        }
    }

    /// The `writeabilityHandler`, whether a loop or Foundation calls it.
    package var scheduledWriteabilityHandler: (@Sendable (FileHandle) -> Void)? {
        get { FileHandleHandlers.of(self)?.write ?? writeabilityHandler }
        set {
            let isScheduled = FileHandleHandlers.of(self)?.set(newValue, by: FileHandleHandlers.setWrite)
            if !(isScheduled ?? false) { writeabilityHandler = newValue }
        }
    }
}

extension FileHandleHandlers {
    /// Sets a handler and logs a failure, because a property cannot throw.
    ///
    /// - Returns: False if the handle is scheduled no longer.
    fileprivate func set(
        _ handler: Handler?,
        by setter: (FileHandleHandlers) -> (Handler?, OwnDescriptor?) throws(SystemError) -> Bool
    ) -> Bool {
        do throws(SystemError) {
            return try setter(self)(handler, nil)
        } catch {
            RunLoop.warn("A handler of a FileHandle cannot be called on its run loop: \(error).")
            return true
        }
    }
}
