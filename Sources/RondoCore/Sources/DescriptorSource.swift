internal import CRondoEv

/// A source that is served when the kernel says that its file descriptor can be read or written: version 1 of
/// `CFRunLoopSource`.
struct DescriptorKind: SourceKind {
    let watched: Int32
    var order: Int { 0 }
    var descriptor: Int32? { watched }
    var takesSignals: Bool { false }

    func obstacle(of source: RunLoop.Source) -> DeliveryObstacle? {
        guard source.interest.isEmpty else { return nil }
        return DeliveryObstacle(
            reason: .waitsForNothing, description: "it waits for nothing: its interest is empty")
    }

    func summary(of source: RunLoop.Source) -> String {
        let label = source.label.map { " “\($0)”" } ?? ""
        return "source\(label), descriptor \(watched), \(source.interest.names)"
    }
}

extension RunLoop.Source {
    /// A source that is served when `fileDescriptor` is ready.
    ///
    /// The descriptor stays the caller's; it should be non-blocking, since another callback may have read
    /// what made it ready (rule SRC-17). Invalidate the source before you close it: a descriptor found
    /// closed invalidates the source and sets `error` (rule SRC-27). What cannot be helped is a descriptor that another
    /// thread closes, without having invalidated the source, at the very moment at which the loop's thread has looked at it
    /// and hands it to the kernel: libev, as Debian builds it, ends the process there (an assertion in `ev_epoll.c`).
    /// - Parameter perform: Gets the source and what it is ready for; called on the loop's thread.
    public convenience init(
        fileDescriptor: Int32, interest: Interest, schedule: ModeCallback? = nil,
        cancel: ModeCallback? = nil, perform: @escaping @Sendable (RunLoop.Source, Interest) -> Void
    ) {
        self.init(
            fileDescriptor: fileDescriptor, keepsFile: false, interest: interest, schedule: schedule,
            cancel: cancel, perform: perform)
    }

    /// - Parameters:
    ///   - keepsFile: The caller invalidates the source before the descriptor is closed, always.
    ///   - perform: Called once with nothing that is ready, when the kernel has refused to watch the
    ///     descriptor: the source has become invalid then, for the reason in `error`.
    package convenience init(
        fileDescriptor: Int32, keepsFile: Bool, interest: Interest, schedule: ModeCallback? = nil,
        cancel: ModeCallback? = nil, perform: @escaping @Sendable (RunLoop.Source, Interest) -> Void
    ) {
        self.init(
            .descriptor(DescriptorKind(watched: fileDescriptor)), keepsFile: keepsFile, interest: interest,
            schedule: schedule, cancel: cancel, perform: Callback(call: perform))
    }

    // MARK: - From the pass

    /// Invalidates the source, whose descriptor the kernel refuses to watch. On the thread of `loop`.
    ///
    /// - Returns: Whether its owner was called.
    func handleRefusal(_ error: SystemError, in mode: Int, of loop: RunLoop) -> Bool {
        guard let perform = invalidate(because: error) else { return false }
        guard keepsFile else {
            Log.core.warning(
                """
                A source\(label.map { " “\($0)”" } ?? "") is not watched any more, and has become invalid: the kernel \
                refuses its descriptor (\(error)).
                """)
            return false
        }
        Trace.callOut(loop, mode, .descriptorSource([]), label: label, of: self) {
            perform.call(self, [])
        }
        return true
    }

    func perform(ready: Interest, in mode: Int, named name: RunLoop.Mode, of loop: RunLoop) -> Bool {
        let (perform, ready) = state.withLock { state in
            // The source may have left the mode since it was found ready, or wait for something else.
            let isMember =
                !state.isLeaving && state.memberships.contains(Membership(loop: loop, mode: name))
            return (isMember ? state.perform : nil, ready.intersection(state.interest))
        }
        guard let perform, !ready.isEmpty else { return false }
        Trace.callOut(loop, mode, .descriptorSource(ready), label: label, of: self) {
            perform.call(self, ready)
        }
        return true
    }
}

extension RunLoop.Source.Interest {
    /// libev's `EV_READ | EV_WRITE`.
    var events: Int32 {
        (contains(.read) ? Int32(EV_READ) : 0) | (contains(.write) ? Int32(EV_WRITE) : 0)
    }

    init(events: Int32) {
        self = []
        if events & Int32(EV_READ) != 0 { insert(.read) }
        if events & Int32(EV_WRITE) != 0 { insert(.write) }
    }

    /// What `poll(2)` calls it.
    var pollEvents: Int16 {
        (contains(.read) ? Int16(POLLIN) : 0) | (contains(.write) ? Int16(POLLOUT) : 0)
    }

    init(pollEvents: Int16) {
        self = []
        if pollEvents & Int16(POLLIN) != 0 { insert(.read) }
        if pollEvents & Int16(POLLOUT) != 0 { insert(.write) }
    }

    fileprivate var names: String {
        switch (contains(.read), contains(.write)) {
        case (true, true): "reading and writing"
        case (true, false): "reading"
        case (false, true): "writing"
        case (false, false): "not watched"
        }
    }
}
