public import RondoCore
internal import RondoMutex

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
        // Made first, so that nothing has changed if one cannot be made.
        let read = try (readabilityHandler ?? remains?.read).map { _ in
            try FileHandleHandlers.OwnDescriptor(of: self)
        }
        let write = try (writeabilityHandler ?? remains?.write).map { _ in
            try FileHandleHandlers.OwnDescriptor(of: self)
        }
        let handlers = FileHandleHandlers.enter(self, loop, mode)
        // Foundation's own handlers, on its queue, are removed before a loop can call them.
        let released = FileHandleHandlers.changes.withLock { _ in
            (
                move(\.readabilityHandler, to: \.read, of: handlers),
                move(\.writeabilityHandler, to: \.write, of: handlers)
            )
        }
        withExtendedLifetime(released) {}
        // If a handler has no descriptor yet, another thread set it during this call. Connect it as if it had
        // been set afterwards.
        handlers.connectRead(by: read)
        handlers.connectWrite(by: write)
    }

    /// Moves a handler from Foundation's property to a side, unless another thread has removed the handle
    /// from its last mode.
    ///
    /// - Returns: The handler, and the side as it was, to be released without a lock.
    private func move(
        _ property: HandlerProperty, to side: FileHandleHandlers.SidePath, of handlers: FileHandleHandlers
    ) -> (FileHandleHandlers.Handler, FileHandleHandlers.Side)? {
        guard let handler = self[keyPath: property], let old = handlers.store(handler, side) else {
            return nil
        }
        self[keyPath: property] = nil
        return (handler, old)
    }

    /// Undoes `schedule(in:forMode:)`. With the last mode the handlers become Foundation's again, which calls
    /// them on a queue; one that Foundation's property got meanwhile stays there.
    public func remove(from loop: RunLoop, forMode mode: RunLoop.Mode) {
        guard let handlers = FileHandleHandlers.of(self) else { return }
        let (departure, later) = FileHandleHandlers.changes.withLock { _ in
            let departure = handlers.leave(loop, mode)
            let later = (read: readabilityHandler, write: writeabilityHandler)
            if let read = departure.removed?.read.handler, later.read == nil { readabilityHandler = read }
            if let write = departure.removed?.write.handler, later.write == nil {
                writeabilityHandler = write
            }
            return (departure, later)
        }
        handlers.finish(departure)
        withExtendedLifetime(later) {}
    }

    /// The `readabilityHandler`, whether a loop or Foundation calls it.
    package var scheduledReadabilityHandler: (@Sendable (FileHandle) -> Void)? {
        get { handler(\.readabilityHandler, \.read) }
        set { setHandler(newValue, \.readabilityHandler, \.read) { $0.connectRead(by: nil) } }
    }

    /// The `writeabilityHandler`, whether a loop or Foundation calls it.
    package var scheduledWriteabilityHandler: (@Sendable (FileHandle) -> Void)? {
        get { handler(\.writeabilityHandler, \.write) }
        set { setHandler(newValue, \.writeabilityHandler, \.write) { $0.connectWrite(by: nil) } }
    }

    private typealias HandlerProperty = ReferenceWritableKeyPath<FileHandle, FileHandleHandlers.Handler?>

    /// The handler, where it is now. While it moves, it is in neither place.
    private func handler(
        _ property: HandlerProperty, _ side: FileHandleHandlers.SidePath
    ) -> FileHandleHandlers.Handler? {
        let (handler, handlers) = FileHandleHandlers.changes.withLock { _ in
            let handlers = FileHandleHandlers.of(self)
            return (handlers?.handler(side) ?? self[keyPath: property], handlers)
        }
        // Released without the lock, if another thread has ended them.
        withExtendedLifetime(handlers) {}
        return handler
    }

    /// Sets a handler where it belongs now.
    private func setHandler(
        _ new: FileHandleHandlers.Handler?, _ property: HandlerProperty, _ side: FileHandleHandlers.SidePath,
        connect: (FileHandleHandlers) -> Void
    ) {
        let (old, handlers, replaced) = FileHandleHandlers.changes.withLock { _ in
            let old = self[keyPath: property]
            let handlers = FileHandleHandlers.of(self)
            let replaced = handlers?.store(new, side)
            if replaced == nil {
                self[keyPath: property] = new
            } else if old != nil {
                self[keyPath: property] = nil
            }
            return (old, handlers, replaced)
        }
        withExtendedLifetime(old) {}
        guard let handlers, let replaced else { return }
        if new == nil { replaced.source?.invalidate() }
        connect(handlers)
    }
}
