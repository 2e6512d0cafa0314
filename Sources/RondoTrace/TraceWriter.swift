internal import CRondoSystem
internal import RondoCore
internal import RondoMutex

internal import struct Synchronization.Atomic

/// A recorder that writes its events to a file as they happen, in a bounded amount of space.
///
/// The file is rotated as logs are: when it is full it is renamed to FILE.1, in place of an older one, and
/// FILE begins anew, at the moment up to which FILE.1 was written. It is also full when the tables are. FILE
/// can be read alone: it repeats the tables, or begins new ones, and names the activations and held-back
/// members that had begun before. Where it cannot be renamed, it begins anew all the same, and there is no
/// FILE.1.
final class TraceWriter: Sendable {
    enum Limits {
        /// The bytes at which a file is full: those of as many events as a recorder keeps, apart from the
        /// tables with which it began.
        static let length = Recorder.Limits.events * TraceRecord.encodedSize
        /// Seconds between two writes.
        static let interval = 0.1
    }

    struct Failure: Error {
        let path: String
        let reason: String

        init(_ path: String, reason: String) {
            self.path = path
            self.reason = reason
        }

        init(_ path: String, code: Int32) { self.init(path, reason: String(cString: strerror(code))) }

        /// Prints it on standard error.
        func report() {
            let line = "rondo: RONDO_TRACE: cannot write \(path): \(reason)\n"
            _ = line.utf8.withContiguousStorageIfAvailable { bytes in
                bytes.baseAddress.map { rondo_write_quietly(STDERR_FILENO, $0, bytes.count) }
            }
        }
    }

    private struct State {
        var encoder = TraceEncoder()
        /// -1 once the file is closed: the program has ended, or the file could not be written.
        var descriptor: Int32
        /// The bytes that were written since the file began.
        var length = 0
        /// Whether it was said that the file cannot be renamed.
        var hasReportedRotation = false
    }

    /// Taken by `fork` (`startTracing`), and while files are renamed. Not `Recorder.forkLock`, for which
    /// loops wait: a disk may be slow.
    static let forkLock = DispatchSemaphore(value: 1)
    /// The writer of RONDO_TRACE.
    static let ofProcess = Mutex<TraceWriter?>(nil)
    /// The descriptor of its file, -1 if none is open: a child by `fork` cannot take the lock of the writer's
    /// state.
    private static let descriptorOfProcess = Atomic<Int32>(-1)

    let recorder = Recorder()
    private let path: String
    private let maximumLength: Int
    private let isOfProcess: Bool
    /// False for pipes and devices, which are not rotated.
    private let isFile: Bool
    private let state: Mutex<State>
    private let writing = PeriodicThread(name: "rondo.trace", interval: Limits.interval)

    init(path: String, maximumLength: Int = Limits.length, isOfProcess: Bool = false) throws(Failure) {
        let file = try Self.openFile(path)
        // The program may change its working directory, and what is renamed is the file and no symbolic link.
        self.path = Self.resolved(path)
        self.maximumLength = maximumLength
        self.isOfProcess = isOfProcess
        isFile = file.isRegular
        state = Mutex(State(descriptor: -1))
        state.withLock { state in
            replaceDescriptor(by: file.descriptor, &state)
            write(TraceEncoder.head(began: recorder.beganAt), &state)
        }
    }

    /// Closes the file of RONDO_TRACE in a child by `fork`, which would keep the file's lock, and the reader
    /// of a pipe waiting for the end, as long as it lives.
    static func closeInChild() {
        let descriptor = descriptorOfProcess.exchange(-1, ordering: .relaxed)
        if descriptor >= 0 { _ = close(descriptor) }
    }

    // MARK: - The recording

    func start() {
        recorder.start()
        writing.start { [self] in flush() }
    }

    /// Writes what was recorded since the last call.
    func flush() {
        state.withLock { state in
            let isFull =
                isFile && state.descriptor >= 0
                && (state.length >= maximumLength || recorder.isExhausted)
            let new = recorder.drain(isLast: isFull)
            write(
                state.encoder.frames(new.tables, new.records, begun: new.begun, until: new.until), &state)
            if let next = new.next, state.descriptor >= 0 { rotate(&state, to: next, at: new.until) }
        }
    }

    func finish() {
        writing.stop()
        let rest = recorder.finish()
        state.withLock { state in
            write(state.encoder.frames(rest.tables, rest.records), &state)
            write(TraceEncoder.end(rest.ended, dropped: rest.dropped), &state)
            replaceDescriptor(by: -1, &state)
        }
    }

    // MARK: - The file

    private static func openFile(
        _ path: String, _ flags: Int32 = 0
    ) throws(Failure) -> (descriptor: Int32, isRegular: Bool) {
        // Opening a FIFO without a reader fails at once instead of blocking.
        let descriptor = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NONBLOCK | flags, 0o644)
        guard descriptor >= 0 else { throw Failure(path, code: errno) }
        _ = fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) & ~O_NONBLOCK)
        var status = stat()
        let isRegular = fstat(descriptor, &status) == 0 && status.st_mode & S_IFMT == S_IFREG
        guard isRegular else { return (descriptor, false) }
        // A file system without locks refuses them for another reason. A program that has renamed the file
        // between the two calls has locked another one, which has its name now.
        guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK,
            isOpen(path, as: descriptor)
        else {
            _ = close(descriptor)
            throw Failure(path, reason: "another program is being recorded into it")
        }
        guard ftruncate(descriptor, 0) == 0 else {
            let failure = Failure(path, code: errno)
            _ = close(descriptor)
            throw failure
        }
        return (descriptor, true)
    }

    /// The path without symbolic links, of a file that is open; the same path if it has no other.
    private static func resolved(_ path: String) -> String {
        guard let resolved = realpath(path, nil) else { return path }
        defer { free(resolved) }
        return String(cString: resolved)
    }

    /// Whether the file at `path` is the one that is open.
    private static func isOpen(_ path: String, as descriptor: Int32, _ flags: Int32 = 0) -> Bool {
        var named = stat()
        var opened = stat()
        return fstatat(AT_FDCWD, path, &named, flags) == 0 && fstat(descriptor, &opened) == 0
            && named.st_dev == opened.st_dev && named.st_ino == opened.st_ino
    }

    private func rotate(_ state: inout State, to next: Recorder.Beginning, at moment: Int64) {
        state.encoder = TraceEncoder()
        var beginning = TraceEncoder.head(began: moment)
        if let kept = next.kept { beginning += TraceEncoder.kept(kept) }
        beginning += state.encoder.frames(next.tables, [], begun: next.open)
        beginning += TraceEncoder.running(next.running, at: moment)
        do throws(Failure) {
            // No child comes into being while there are two.
            Self.forkLock.wait()
            defer { Self.forkLock.signal() }
            try replaceDescriptor(by: nextFile(after: state.descriptor, beginning), &state)
        } catch {
            // The newest events are written all the same, in place of the older ones.
            if !state.hasReportedRotation { error.report() }
            state.hasReportedRotation = true
            guard ftruncate(state.descriptor, 0) == 0, lseek(state.descriptor, 0, SEEK_SET) == 0 else {
                Failure(path, code: errno).report()
                return replaceDescriptor(by: -1, &state)
            }
            write(beginning, &state)
        }
        state.length = 0
    }

    /// Makes the next file with its beginning, and renames the one that is full.
    private func nextFile(after descriptor: Int32, _ beginning: [UInt8]) throws(Failure) -> Int32 {
        let (earlier, next) = (path + ".1", path + ".next")
        // A program that ended in between has left it.
        _ = unlink(next)
        // Made and written before anything is renamed: where there can be no further file, both are left as
        // they are, and of a program that is killed meanwhile there is no file without a beginning.
        let made = try Self.openFile(next, O_EXCL).descriptor
        do throws(Failure) {
            let code = Self.writeAll(beginning, to: made)
            guard code == 0 else { throw Failure(next, code: code) }
            // A file that was removed or moved leaves its place to the next one. Another one in its place is
            // not touched.
            let isNamed = access(path, F_OK) == 0
            guard !isNamed || Self.isOpen(path, as: descriptor, AT_SYMLINK_NOFOLLOW) else {
                throw Failure(path, reason: "another file has taken its place")
            }
            guard !isNamed || rename(path, earlier) == 0 else { throw Failure(earlier, code: errno) }
            guard rename(next, path) == 0 else {
                let failure = Failure(path, code: errno)
                // It is written on, so it gets its name back.
                if isNamed { _ = rename(earlier, path) }
                throw failure
            }
            return made
        } catch {
            _ = unlink(next)
            _ = close(made)
            throw error
        }
    }

    /// Closes the file, and goes on with another one; with none if `descriptor` is -1.
    private func replaceDescriptor(by descriptor: Int32, _ state: inout State) {
        let last = state.descriptor
        state.descriptor = descriptor
        // Before the number is free for a file of the program's, which a child must not close.
        if isOfProcess { Self.descriptorOfProcess.store(descriptor, ordering: .relaxed) }
        if last >= 0 { _ = close(last) }
    }

    private func write(_ bytes: [UInt8], _ state: inout State) {
        state.length += bytes.count
        guard state.descriptor >= 0 else { return }
        let code = Self.writeAll(bytes, to: state.descriptor)
        if code == 0 { return }
        // Said once: nothing more is written then.
        Failure(path, code: code).report()
        replaceDescriptor(by: -1, &state)
    }

    /// Returns 0, or the errno.
    private static func writeAll(_ bytes: [UInt8], to descriptor: Int32) -> Int32 {
        var rest = bytes[...]
        while !rest.isEmpty {
            // The last write is made on a thread of the program's, which does not block SIGPIPE.
            let count = rest.withUnsafeBytes { bytes in
                bytes.baseAddress.map { rondo_write_quietly(descriptor, $0, bytes.count) } ?? 0
            }
            if count < 0 {
                let code = errno
                if code == EINTR { continue }
                return code
            }
            rest = rest.dropFirst(count)
        }
        return 0
    }
}
