// The backend of an input stream that reads a FileHandle.
//
// Pipes, sockets and terminals are watched in the modes of the stream and nowhere else: while none of them
// runs, nothing is read, and the other end waits. Files are always ready; one piece at a time is read ahead
// on a thread of its own, so that no loop waits for a disk.
//
// Threads: the Mutex protects `State`. The calls made while it is held call nothing back. They do not block
// either, with one exception: a read of a file that the kernel cannot read without blocking, if another
// reader has taken the bytes between `poll` and `read`. Any thread may close the handle in the middle of a
// read. Therefore a thread that waits in `read` blocks in no system call, but runs its loop in a private mode
// (rule ST-25), from which the close can wake it.

internal import Glibc
internal import RondoCore
internal import RondoMutex

/// Reads the open file of a file handle, for an `InputStream` (rule FH-15).
final class HandleInput: StreamBackend, Sendable {
    private struct State {
        /// Nil once the stream was closed, has ended or has failed; `descriptor` and `source` likewise.
        var handle: FileHandle?
        /// The handle's descriptor when the stream was opened. Once the handle is closed, it has another one,
        /// or none.
        var original: Int32 = -1
        var descriptor: HandleDescriptor?
        /// The source of everything but files.
        var source: RunLoop.Source?
        var file = FileAhead()
        /// The sources of the threads that wait in a read.
        var waiters: [RunLoop.Source] = []
    }

    private let state: Mutex<State>
    private let core: StreamCore
    private let name: String

    init(_ handle: FileHandle, _ core: StreamCore) {
        name = "file handle \(handle.fileDescriptor)"
        state = Mutex(State(handle: handle))
        self.core = core
    }

    deinit { releaseHandle() }

    // MARK: - Opening and closing

    func open(_ side: StreamState.Direction) {
        guard let handle = state.withLock({ $0.handle }) else { return }
        // Inserted first, so that a close from now on is noticed below.
        FileHandleStreams.insert(self, of: handle)
        let original = handle.fileDescriptor
        let descriptor: HandleDescriptor
        do throws(SystemError) {
            descriptor = try HandleDescriptor(handle)
        } catch {
            return fail(error.code)
        }
        let isOpen = state.withLock { state in
            guard state.handle != nil else { return false }
            state.original = original
            state.descriptor = descriptor
            return true
        }
        guard isOpen, handle.fileDescriptor == original else { return fail(EBADF) }
        core.opened(isReady: false)
        if descriptor.kind == .file { readAhead() } else { watch(descriptor) }
    }

    private func watch(_ descriptor: HandleDescriptor) {
        let source = RunLoop.Source(fileDescriptor: descriptor.number, keepsFile: true, interest: .read) {
            [weak self] source, ready in self?.serve(source, isRefused: ready.isEmpty)
        }
        source.label = name
        let isOpen = state.withLock { state in
            if state.handle != nil { state.source = source }
            return state.handle != nil
        }
        guard isOpen else { return source.invalidate() }
        for mode in core.modes + (core.queue == nil ? [] : [.loader]) { schedule(in: mode) }
    }

    func close(_ side: StreamState.Direction) { releaseHandle() }

    /// Called when the program has closed the handle: the stream fails, because the file was its own. Any
    /// thread.
    func handleWasClosed() { fail(EBADF) }

    private func end() {
        core.update { $0.ended() }
        releaseHandle()
    }

    private func fail(_ code: Int32) {
        core.update { $0.failed(.posix(code, "\(name): \(SocketError.sentence(of: code))")) }
        releaseHandle()
    }

    /// Releases the descriptor and the handle. Further calls do nothing.
    private func releaseHandle() {
        let (handle, source, descriptor, waiters) = state.withLock { state in
            defer { state.file.endReading(nil) }
            return (state.handle.take(), state.source.take(), state.descriptor.take(), state.waiters)
        }
        // The source goes before its descriptor is closed. A loop of another thread releases it when it wakes
        // up.
        source?.invalidateAndWakeUp()
        if let handle { FileHandleStreams.remove(self, of: handle) }
        withExtendedLifetime(descriptor) {}
        for waiter in waiters { waiter.signalAndWakeUp() }
    }

    /// Whether the handle was closed by Foundation's own method, which does not report that.
    private var wasClosed: Bool {
        state.withLock { state in state.handle.map { $0.fileDescriptor != state.original } ?? false }
    }

    // MARK: - Schedule

    func schedule(in mode: LoopMode) {
        if let source = state.withLock({ $0.source }) { mode.add(source) }
    }

    func remove(from mode: LoopMode) {
        if let source = state.withLock({ $0.source }) { mode.remove(source, keeping: core.modes) }
    }

    func advance() {}
    var peerName: String? { name }

    // MARK: - Callbacks of the loop

    private func serve(_ source: RunLoop.Source, isRefused: Bool) {
        if wasClosed { return fail(EBADF) }
        // The kernel refuses to watch the descriptor; the source has the reason.
        if isRefused { return fail(source.refusalCode ?? ENOMEM) }
        let (descriptor, isWaitedFor) = state.withLock { ($0.descriptor, !$0.waiters.isEmpty) }
        guard let descriptor else { return }
        guard core.state.wantsToBeReady || isWaitedFor else {
            // Nothing wants the event: stop watching. Not earlier, because most clients read before the next
            // pass.
            return source.stopWatching(.read) {
                core.state.wantsToBeReady || state.withLock { !$0.waiters.isEmpty }
            }
        }
        let found = core.noteReady(descriptor.look) { $0.hasBytes }
        switch found {
        // Noted; or another reader was first.
        case .bytes, .nothing: break
        case .end: end()
        case .failed(let code): fail(code)
        }
    }

    // MARK: - Files

    /// Starts reading the next piece of a file, if there is none.
    private func readAhead() {
        let file = state.withLock { state in
            guard let descriptor = state.descriptor, descriptor.kind == .file else {
                return nil as HandleDescriptor?
            }
            return state.file.startReading() ? descriptor : nil
        }
        guard let file else { return }
        do throws(SystemError) {
            try SystemThread.start(name: "rondo.file") { [self] in readPiece(of: file) }
        } catch {
            fail(error.code)
        }
    }

    /// Runs on a thread of its own.
    private func readPiece(of file: HandleDescriptor) {
        do throws(SystemError) {
            let piece = try FileAhead.read(file)
            // In one step, as in `waitForMore`.
            let waiters = core.update { stream in
                state.withLock { state -> [RunLoop.Source] in
                    guard state.handle != nil else { return [] }
                    state.file.endReading(piece)
                    stream.setReady(true)
                    return state.waiters
                }
            }
            for waiter in waiters { waiter.signalAndWakeUp() }
        } catch {
            fail(error.code)
        }
    }

    // MARK: - Bytes

    func read(_ buffer: UnsafeMutableRawBufferPointer) -> Int {
        attempt(buffer) ?? wait { attempt(buffer) }
    }

    /// Attempts to read once; nil: no bytes have arrived yet.
    private func attempt(_ buffer: UnsafeMutableRawBufferPointer) -> Int? {
        if core.status == .atEnd { return 0 }
        if wasClosed { fail(EBADF) }
        let outcome = state.withLock { state -> HandleDescriptor.Outcome in
            guard let descriptor = state.descriptor else { return .failed(EBADF) }
            return descriptor.kind == .file
                ? state.file.take(buffer, of: descriptor) : descriptor.read(buffer)
        }
        switch outcome {
        case .bytes(let count):
            waitForMore()
            return count
        case .nothing:
            waitForMore()
            return nil
        case .end:
            end()
            return 0
        case .failed(let code):
            fail(code)
            return -1
        }
    }

    /// Arms the stream for its next event, and watches the descriptor or reads ahead again.
    private func waitForMore() {
        // In one step: the thread that reads ahead may have the next piece at this moment.
        let (source, isReady) = core.update { stream in
            let (source, isReady) = state.withLock { ($0.source, $0.file.isReady) }
            stream.used(isReady: isReady)
            return (source, isReady)
        }
        if let source {
            if source.interest != .read { source.interest = .read }
        } else if !isReady {
            readAhead()
        }
    }

    /// Repeats `attempt` until it returns a result, and runs the thread's loop in the waiting mode in
    /// between.
    private func wait(_ attempt: () -> Int?) -> Int {
        let waiter = WaitingThreads.Waiter()
        let (own, loop) = (waiter.source, waiter.loop)
        let source = state.withLock { state in
            state.waiters.append(own)
            return state.source
        }
        if let source { loop.add(source, forMode: WaitingThreads.mode) }
        defer {
            if let source { loop.remove(source, forMode: WaitingThreads.mode) }
            state.withLock { state in state.waiters.removeAll { $0 === own } }
            waiter.end()
        }
        while true {
            if let result = attempt() { return result }
            guard waiter.waitForChange() else { return -1 }
        }
    }

    func lend(atMost limit: Int) -> UnsafeMutableBufferPointer<UInt8>? { nil }

    /// Whether `read` would return without waiting. For a file that is scheduled nowhere only a read can tell
    /// (rule ST-26), because no loop reports its next piece.
    var hasBytesAvailable: Bool {
        if wasClosed { return true }
        let outcome = state.withLock { state -> HandleDescriptor.Outcome in
            guard let descriptor = state.descriptor else { return .end }
            if descriptor.kind == .file { return state.file.isReady ? .bytes(1) : .nothing }
            return descriptor.look()
        }
        // The kernel reports the error of a socket once, and looking has consumed it: a read would find an
        // orderly end.
        if case .failed(let code) = outcome { fail(code) }
        guard outcome == .nothing else { return true }
        // Another reader has taken the bytes, or none have arrived: an event follows when more come (rule
        // ST-13).
        waitForMore()
        return state.withLock { $0.descriptor?.kind == .file } && !core.isScheduled
    }

    var hasSpaceAvailable: Bool { false }
    func write(_ bytes: UnsafeRawBufferPointer) -> Int { -1 }
    func write(_ pieces: [UnsafeRawBufferPointer]) -> Int { -1 }

    // MARK: - Properties

    /// The offset of a file, as a number (rule ST-32).
    func property(forKey key: Foundation.Stream.PropertyKey) -> AnyObject? {
        guard key == .fileCurrentOffsetKey else { return nil }
        let offset = state.withLock { state in
            state.descriptor.map { $0.kind == .file ? lseek($0.number, 0, SEEK_CUR) : -1 } ?? -1
        }
        return offset < 0 ? nil : NSNumber(value: offset)
    }

    func setProperty(_ property: AnyObject?, forKey key: Foundation.Stream.PropertyKey) -> Bool {
        guard key == .fileCurrentOffsetKey, let offset = (property as? NSNumber)?.int64Value else {
            return false
        }
        return state.withLock { state in
            guard let descriptor = state.descriptor, descriptor.kind == .file else { return false }
            return lseek(descriptor.number, off_t(offset), SEEK_SET) >= 0
        }
    }
}
