public import RondoCore

extension FileHandle {
    /// Calls `readabilityHandler` and `writeabilityHandler`, the present ones and those that are set from now on,
    /// on the thread of `loop` while that runs in `mode`, and no longer on a queue (rule FH-14).
    ///
    /// The end is told once, by `availableData` that is empty, and the handler is taken off then. In a file that
    /// imports Foundation beside Rondo the properties are Foundation's, and handlers are set before this call.
    /// - Throws: An error of `NSPOSIXErrorDomain` if the kernel has no descriptor left; the handle is scheduled as before then.
    public func schedule(in loop: RunLoop, forMode mode: RunLoop.Mode) throws {
        let (read, write) = (readabilityHandler, writeabilityHandler)
        // First, since nothing has changed yet if there is none.
        let readDescriptor = try read.map { _ in try FileHandleHandlers.OwnDescriptor(of: self) }
        let writeDescriptor = try write.map { _ in try FileHandleHandlers.OwnDescriptor(of: self) }
        let handlers = FileHandleHandlers.make(for: self)
        handlers.enter(loop, mode)
        // Foundation's own, on its queue, are taken off before a loop can call them.
        if let read {
            readabilityHandler = nil
            try handlers.setRead(read, by: readDescriptor)
        }
        if let write {
            writeabilityHandler = nil
            try handlers.setWrite(write, by: writeDescriptor)
        }
    }

    /// Takes back what `schedule(in:forMode:)` said. With the last mode the handlers are Foundation's again, and
    /// called on a queue.
    public func remove(from loop: RunLoop, forMode mode: RunLoop.Mode) {
        guard let handlers = FileHandleHandlers.of(self), handlers.leave(loop, mode) else { return }
        let (read, write) = (handlers.read, handlers.write)
        FileHandleHandlers.cancel(on: self)
        if let read { readabilityHandler = read }
        if let write { writeabilityHandler = write }
    }

    /// `readabilityHandler`, by a loop or by Foundation.
    package var scheduledReadabilityHandler: (@Sendable (FileHandle) -> Void)? {
        get { FileHandleHandlers.of(self)?.read ?? readabilityHandler }
        set {
            if let handlers = FileHandleHandlers.of(self) {
                handlers.set(newValue, by: FileHandleHandlers.setRead)
            } else {
                readabilityHandler = newValue
            }
        }
    }

    /// `writeabilityHandler`, by a loop or by Foundation.
    package var scheduledWriteabilityHandler: (@Sendable (FileHandle) -> Void)? {
        get { FileHandleHandlers.of(self)?.write ?? writeabilityHandler }
        set {
            if let handlers = FileHandleHandlers.of(self) {
                handlers.set(newValue, by: FileHandleHandlers.setWrite)
            } else {
                writeabilityHandler = newValue
            }
        }
    }
}

extension FileHandleHandlers {
    /// A property cannot throw.
    fileprivate func set(
        _ handler: Handler?,
        by setter: (FileHandleHandlers) -> (Handler?, OwnDescriptor?) throws(SystemError) -> Void
    ) {
        do throws(SystemError) {
            try setter(self)(handler, nil)
        } catch {
            RunLoop.warn("A handler of a FileHandle cannot be called on its run loop: \(error).")
        }
    }
}
