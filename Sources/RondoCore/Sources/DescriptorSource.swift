internal import CRondoEv

/// A source that is served when its file descriptor can be read or written: version 1 of `CFRunLoopSource`.
struct DescriptorKind: SourceKind {
    let watched: Int32
    var descriptor: Int32? { watched }
    var takesSignals: Bool { false }

    func obstacle(of source: RunLoop.Source) -> DeliveryObstacle? {
        // Another loop of the source would serve it.
        let modes = source.scheduledModes
        let runsLoop = modes.allSatisfy { member in
            member.loop.state.withLock { state in state.servedInOuterRuns.contains { $0 === source } }
        }
        if runsLoop, !modes.isEmpty { return .callbackRunsLoop }
        guard source.interest.isEmpty else { return nil }
        return DeliveryObstacle(
            reason: .waitsForNothing,
            description: "its interest is empty: it is served neither for reading nor for writing")
    }

    func summary(of source: RunLoop.Source) -> String {
        "source\(source.quotedLabel), descriptor \(watched), \(source.interest.names)"
    }
}

extension RunLoop.Source {
    /// A source that is served when `fileDescriptor` is ready.
    ///
    /// The descriptor stays the caller's; make it non-blocking, since another callback may already have read
    /// the bytes (rule SRC-17). Invalidate the source before you close the descriptor: a descriptor found
    /// closed invalidates the source and sets `error` (rule SRC-27). One case cannot be caught: another
    /// thread closes the descriptor, without having invalidated the source, just after the loop's thread has
    /// checked it and before it hands it to the kernel. libev, as Debian builds it, then ends the process (an
    /// assertion in `ev_epoll.c`).
    /// - Parameter perform: Gets the source and the events it is ready for; called on the loop's thread.
    public convenience init(
        fileDescriptor: Int32, interest: Interest, schedule: ModeCallback? = nil,
        cancel: ModeCallback? = nil, perform: @escaping @Sendable (RunLoop.Source, Interest) -> Void
    ) {
        self.init(
            fileDescriptor: fileDescriptor, keepsFile: false, interest: interest, schedule: schedule,
            cancel: cancel, perform: perform)
    }

    /// - Parameters:
    ///   - keepsFile: The caller promises to invalidate the source before the descriptor is closed, always.
    ///   - perform: Called once with an empty set if the kernel refuses to watch the descriptor: the source
    ///     is then invalid, for the reason in `error`.
    package convenience init(
        fileDescriptor: Int32, keepsFile: Bool, interest: Interest, schedule: ModeCallback? = nil,
        cancel: ModeCallback? = nil, perform: @escaping @Sendable (RunLoop.Source, Interest) -> Void
    ) {
        self.init(
            .descriptor(DescriptorKind(watched: fileDescriptor)), keepsFile: keepsFile, interest: interest,
            schedule: schedule, cancel: cancel, perform: Callback(call: perform))
    }

    // MARK: - From the pass

    /// Invalidates the source because the kernel refuses to watch its descriptor. On the thread of `loop`.
    ///
    /// - Returns: Whether the source's owner was called.
    func handleRefusal(_ error: SystemError, in mode: Int, of loop: RunLoop) -> Bool {
        guard let perform = invalidate(because: error) else { return false }
        guard keepsFile else {
            Log.core.warning(
                """
                A source\(quotedLabel) is not watched any more, and has become invalid: the kernel \
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
            // Since it was found ready, the source may have left the mode, or its interest may have changed.
            let isMember = state.memberships.contains(LoopMode(loop: loop, mode: name))
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

    /// The same events in the terms of `poll(2)`.
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
