internal import RondoCore
internal import RondoMutex

/// The handlers of one handle that is scheduled on run loops, instead of Foundation's queue.
///
/// The loops retain the sources; each source retains the handle, this object and a descriptor of its own.
/// Without a handler there is no source, and nothing retains the handle.
final class FileHandleHandlers: Sendable {
    typealias Handler = @Sendable (FileHandle) -> Void

    /// One of the two handlers, with its source.
    struct Side {
        fileprivate(set) var handler: Handler?
        /// Weak, because the source retains this object.
        fileprivate(set) weak var source: RunLoop.Source?
        /// The thread that calls the handler.
        fileprivate var server = CallingThread()

        var hasSource: Bool { source?.isValid ?? false }

        /// The handler, if no loop can call it: its source was released with the last loop that held it.
        var orphan: Handler? { hasSource ? nil : handler }

        // What is replaced or removed is returned, because the caller must release it without the lock.

        /// Leaves the source there.
        ///
        /// - Returns: The side as it was.
        mutating func replaceHandler(by new: @escaping Handler) -> Side {
            defer { handler = new }
            return self
        }

        mutating func removeHandler() -> Side {
            defer {
                handler = nil
                source = nil
            }
            return self
        }
    }

    struct State {
        fileprivate weak var handle: FileHandle?
        var read = Side()
        var write = Side()
        fileprivate var modes: [LoopMode] = []
        /// Whether the handle has left its last mode: then this object belongs to it no longer.
        fileprivate var isDetached = false

        fileprivate var sources: [RunLoop.Source] { [read.source, write.source].compactMap(\.self) }

        fileprivate var isOnSeveralLoops: Bool { modes.contains { $0.loop !== modes[0].loop } }

        /// Removes modes, and those of loops whose threads have ended.
        ///
        /// - Returns: The modes as they were, which the caller must release without the lock.
        fileprivate mutating func removeModes(where isRemoved: (LoopMode) -> Bool) -> [LoopMode] {
            let old = modes
            modes.removeAll { !$0.loop.isAlive || isRemoved($0) }
            return old
        }

        /// - Returns: Both sides as they were.
        fileprivate mutating func detach() -> Sides {
            isDetached = true
            return (read.removeHandler(), write.removeHandler())
        }
    }

    typealias Sides = (read: Side, write: Side)
    typealias SidePath = any WritableKeyPath<State, Side> & Sendable

    /// A descriptor for the same open file as the handle's: after the program has closed the handle, it
    /// cannot refer to another file.
    final class OwnDescriptor: Sendable {
        fileprivate let number: Int32

        init(of handle: FileHandle) throws(SystemError) {
            let original = handle.fileDescriptor
            number = try systemCall("fcntl") { fcntl(original, F_DUPFD_CLOEXEC, 0) }
        }

        deinit { close(number) }
    }

    /// The handlers of all handles, keyed by handle. Entries of released handles are removed when there are
    /// twice as many entries as after the last removal, so that adding one takes constant time on average.
    /// Until then they stay: the table has at most twice as many entries as handles were in use at that
    /// removal, and 16 more.
    struct Table<Handlers> {
        private var entries: [ObjectIdentifier: Handlers] = [:]
        private var limit = 16

        /// - Returns: The entries that were removed, which the caller must release without the lock.
        mutating func add(
            _ new: Handlers, for handle: ObjectIdentifier, unlessReleased isInUse: (Handlers) -> Bool
        ) -> [Handlers] {
            var removed: [Handlers] = []
            if let old = entries.updateValue(new, forKey: handle) { removed.append(old) }
            guard entries.count > limit else { return removed }
            for (handle, old) in entries where !isInUse(old) {
                removed.append(old)
                entries[handle] = nil
            }
            limit = 2 * entries.count + 16
            return removed
        }

        subscript(handle: ObjectIdentifier) -> Handlers? { entries[handle] }

        mutating func remove(_ handle: ObjectIdentifier) -> Handlers? { entries.removeValue(forKey: handle) }
    }

    /// Held while a handler moves between Foundation's property and a side, or is set where it belongs. The
    /// first lock to be taken; no object of the program is released under it, and no loop called.
    static let changes = Mutex(())

    private static let all = Mutex(Table<FileHandleHandlers>())

    private let handleID: ObjectIdentifier
    private let state: Mutex<State>

    private init(_ handle: FileHandle) {
        handleID = ObjectIdentifier(handle)
        state = Mutex(State(handle: handle))
    }

    // MARK: Any thread

    /// The handlers of `handle`; nil if it is scheduled on no loop.
    static func of(_ handle: FileHandle) -> FileHandleHandlers? {
        all.withLock { $0[ObjectIdentifier(handle)] }.flatMap { $0.isOf(handle) ? $0 : nil }
    }

    /// Adds `handle` to a mode.
    static func enter(_ handle: FileHandle, _ loop: RunLoop, _ mode: RunLoop.Mode) -> FileHandleHandlers {
        while true {
            let handlers = make(for: handle)
            if handlers.enter(loop, mode) { return handlers }
        }
    }

    private static func make(for handle: FileHandle) -> FileHandleHandlers {
        if let handlers = of(handle) { return handlers }
        let made = FileHandleHandlers(handle)
        let (handlers, released) = all.withLock { table -> (FileHandleHandlers, [FileHandleHandlers]) in
            // Another thread may have made them meanwhile.
            if let known = table[made.handleID], known.isOf(handle) { return (known, []) }
            return (made, table.add(made, for: made.handleID) { $0.hasHandle })
        }
        withExtendedLifetime(released) {}
        return handlers
    }

    static func source(of handle: FileHandle) -> RunLoop.Source? {
        of(handle)?.state.withLock { $0.read.source ?? $0.write.source }
    }

    /// Removes the handlers of a scheduled handle, which is scheduled no longer.
    static func cancel(on handle: FileHandle) {
        guard let handlers = of(handle) else { return }
        handlers.end(handlers.state.withLock { $0.detach() })
    }

    func handler(_ side: SidePath) -> Handler? { state.withLock { $0[keyPath: side].handler } }

    /// Sets or removes a handler. The caller then calls `connectRead(by:)` or `connectWrite(by:)` for one
    /// that was set, and invalidates the source of one that was removed.
    ///
    /// - Returns: The side as it was, to be released without a lock; nil, and nothing has changed, if the
    ///   handle is scheduled no longer.
    func store(_ handler: Handler?, _ side: SidePath) -> Side? {
        state.withLock { state -> Side? in
            guard !state.isDetached else { return nil }
            guard let handler else { return state[keyPath: side].removeHandler() }
            return state[keyPath: side].replaceHandler(by: handler)
        }
    }

    /// Makes the source of the handler, if that has none.
    ///
    /// - Parameter descriptor: Nil: one is made if necessary. If the kernel has none left, that is logged.
    func connectRead(by descriptor: OwnDescriptor?) {
        connect(\.read, by: descriptor, .read, "readabilityHandler")
    }

    /// Makes the source of the handler, if that has none.
    ///
    /// - Parameter descriptor: Nil: one is made if necessary. If the kernel has none left, that is logged.
    func connectWrite(by descriptor: OwnDescriptor?) {
        connect(\.write, by: descriptor, .write, "writeabilityHandler")
    }

    /// The sources, and the handlers that have none any more and must be set again.
    var remains: (sources: [RunLoop.Source], read: Handler?, write: Handler?) {
        state.withLock { ($0.sources, $0.read.orphan, $0.write.orphan) }
    }

    /// - Returns: False if the handle has left its last mode meanwhile.
    private func enter(_ loop: RunLoop, _ mode: RunLoop.Mode) -> Bool {
        let scheduled = LoopMode(loop: loop, mode: mode)
        let entered = state.withLock { state -> ([RunLoop.Source], [LoopMode])? in
            guard !state.isDetached else { return nil }
            let old = state.removeModes { $0 == scheduled }
            state.modes.append(scheduled)
            return (state.sources, old)
        }
        guard let (sources, old) = entered else { return false }
        for source in sources { add(source, in: scheduled) }
        withExtendedLifetime(old) {}
        return true
    }

    /// The objects that a handle leaves behind in a mode, to be ended and released without a lock.
    struct Departure {
        fileprivate let mode: LoopMode
        fileprivate let sources: [RunLoop.Source]
        fileprivate let old: [LoopMode]
        fileprivate let remaining: [LoopMode]
        /// Both sides as they were, if that was the last of the modes.
        let removed: Sides?
    }

    /// Removes the handle from a mode. The caller then calls `finish(_:)`.
    func leave(_ loop: RunLoop, _ mode: RunLoop.Mode) -> Departure {
        let mode = LoopMode(loop: loop, mode: mode)
        return state.withLock { state -> Departure in
            let old = state.removeModes { $0 == mode }
            return Departure(
                mode: mode, sources: state.sources, old: old, remaining: state.modes,
                removed: state.modes.isEmpty ? state.detach() : nil)
        }
    }

    func finish(_ departure: Departure) {
        let (loop, mode) = (departure.mode.loop, departure.mode.mode)
        for source in departure.sources { loop.remove(source, forMode: mode, keeping: departure.remaining) }
        if let removed = departure.removed { end(removed) }
    }

    /// Ends what `detach()` has removed.
    private func end(_ removed: Sides) {
        removed.read.source?.invalidate()
        removed.write.source?.invalidate()
        // Handlers that another thread has made for the handle since then stay.
        let entry = Self.all.withLock { $0[handleID] === self ? $0.remove(handleID) : nil }
        withExtendedLifetime(entry) {}
    }

    private var hasHandle: Bool { state.withLock { $0.handle != nil } }

    private func isOf(_ handle: FileHandle) -> Bool {
        state.withLock { $0.handle === handle && !$0.isDetached }
    }

    /// Removes a handler and its source.
    ///
    /// - Returns: What was there.
    private func takeOff(_ side: SidePath) -> Side {
        let removed = state.withLock { state -> Side in state[keyPath: side].removeHandler() }
        removed.source?.invalidate()
        return removed
    }

    private func connect(
        _ side: SidePath, by prepared: OwnDescriptor?, _ interest: RunLoop.Source.Interest, _ label: String
    ) {
        let found = state.withLock { state in
            state[keyPath: side].orphan == nil ? nil : state.handle
        }
        guard let handle = found else { return }
        let original = handle.fileDescriptor
        let descriptor: OwnDescriptor
        do throws(SystemError) {
            descriptor = if let prepared { prepared } else { try OwnDescriptor(of: handle) }
        } catch {
            RunLoop.warn("A handler of a FileHandle cannot be called on its run loop: \(error).")
            return
        }
        let source = RunLoop.Source(fileDescriptor: descriptor.number, keepsFile: true, interest: interest) {
            [self] source, ready in
            // Once the handle is closed, it has another descriptor, or none.
            guard !ready.isEmpty, handle.fileDescriptor == original else { return source.invalidate() }
            serve(handle, descriptor.number, side, interest)
        }
        source.label = label
        let modes = state.withLock { state -> [LoopMode] in
            // Another thread may have stored a source meanwhile, which calls the handler, or have removed the
            // handler.
            guard state[keyPath: side].orphan != nil else { return [] }
            state[keyPath: side].source = source
            return state.modes
        }
        for scheduled in modes { add(source, in: scheduled) }
    }

    private func add(_ source: RunLoop.Source, in scheduled: LoopMode) {
        scheduled.loop.add(source, forMode: scheduled.mode)
        // The handle may have left the mode meanwhile.
        let modes = state.withLock { $0.modes }
        guard !modes.contains(scheduled) else { return }
        scheduled.loop.remove(source, forMode: scheduled.mode, keeping: modes)
    }

    // MARK: Loop's thread

    /// Calls the handler, unless another thread is calling it. Until that one has read or written, this loop
    /// finds the descriptor ready in each pass.
    private func serve(
        _ handle: FileHandle, _ descriptor: Int32, _ side: SidePath,
        _ interest: RunLoop.Source.Interest
    ) {
        let (mayServe, isShared) = state.withLock { state -> (Bool, Bool) in
            (state[keyPath: side].server.begin(), state.isOnSeveralLoops)
        }
        guard mayServe else { return }
        defer { state.withLock { $0[keyPath: side].server.end() } }
        let reads = interest == .read
        // Another loop, or another reader, may have served the descriptor since this one found it ready: the
        // handler would block.
        if !reads, isShared, !SocketCalls.isWritable(descriptor) { return }
        let content =
            reads ? Self.content(of: descriptor, found: SocketCalls.poll(descriptor, for: POLLIN)) : nil
        if content == .nothing { return }
        // The end is reported once: the handler finds no data, and is not called again (rule FH-14).
        let called = content == .end ? takeOff(side) : state.withLock { $0[keyPath: side] }
        called.handler?(handle)
    }

    /// The result that a read of a descriptor would have now.
    enum Content {
        case bytes
        case end
        /// A read would wait.
        case nothing
    }

    /// Checks what the handler would read.
    ///
    /// - Parameter events: The events that `poll(2)` has found before. A pipe that had no writer then, and
    ///   has no bytes now, is at its end.
    static func content(of descriptor: Int32, found events: Int32) -> Content {
        guard events != 0 else { return .nothing }
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { return .end }
        switch status.st_mode & S_IFMT {
        case S_IFREG: return lseek(descriptor, 0, SEEK_CUR) >= status.st_size ? .end : .bytes
        case S_IFSOCK: return content(ofSocket: descriptor)
        default:
            var count: Int32 = 0
            if ioctl(descriptor, UInt(FIONREAD), &count) == 0 {
                if count > 0 { return .bytes }
                // Another reader may have taken the bytes that `poll(2)` has found in a pipe.
                return status.st_mode & S_IFMT == S_IFIFO && events & POLLHUP == 0 ? .nothing : .end
            }
            // Devices that do not count their bytes: only of the null device, and of a terminal that has hung
            // up, the end is known.
            let isNullDevice = status.st_mode & S_IFMT == S_IFCHR && status.st_rdev == nullDevice
            return isNullDevice || SocketCalls.poll(descriptor, for: POLLIN) & POLLHUP != 0 ? .end : .bytes
        }
    }

    /// The number of `/dev/null`: major 1, minor 3.
    private static let nullDevice: dev_t = 0x103

    private static func content(ofSocket descriptor: Int32) -> Content {
        var (kind, size) = (Int32(0), socklen_t(MemoryLayout<Int32>.size))
        guard getsockopt(descriptor, SOL_SOCKET, SO_TYPE, &kind, &size) == 0 else { return .bytes }
        // Datagram sockets have no end; an empty datagram is a datagram too.
        let isForDatagrams = kind == Int32(SOCK_DGRAM.rawValue)
        var byte: UInt8 = 0
        let count = recv(descriptor, &byte, 1, Int32(MSG_PEEK) | Int32(MSG_DONTWAIT))
        if count >= 0 { return count == 0 && !isForDatagrams ? .end : .bytes }
        switch errno {
        // Another reader has taken what `poll(2)` has found. If a connection has ended since, the next pass
        // finds its end.
        case EAGAIN where !isForDatagrams: return .nothing
        case EAGAIN:
            // A read of a datagram socket that is shut down for reading does not wait. One with IP_RECVERR
            // stays ready until the handler has emptied its queue of errors.
            let isShut = SocketCalls.readingHasEnded
            return SocketCalls.poll(descriptor, for: isShut) & (isShut | POLLERR) == 0 ? .nothing : .bytes
        // The kernel reports an error, such as a broken connection, once, and this call has consumed it. The
        // handler finds the end of a connection; for a datagram that could not be sent it would wait.
        case _ where isForDatagrams: return .nothing
        case ECONNRESET, EPIPE, ETIMEDOUT, ECONNABORTED, EHOSTUNREACH, ENETUNREACH: return .end
        // Other errors are no end: a listening socket gives ENOTCONN or EINVAL.
        default: return .bytes
        }
    }
}
