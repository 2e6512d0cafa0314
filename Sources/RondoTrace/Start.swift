internal import CRondoSystem
internal import RondoCore
internal import RondoMutex

// RONDO_TRACE=FILE records a program without changing it: the constructor of CRondoStart calls this before
// `main`. The file is written while the program runs, so that a program that is ended by a signal loses only
// a tenth of a second.

/// Records the process into the file at `path`, until the process ends.
@_cdecl("rondo_trace_start")
func startTracing(_ path: UnsafePointer<CChar>) {
    let path = String(cString: path)
    do throws(TraceFile.Failure) {
        let file = try TraceFile(path: path)
        TraceFile.ofProcess.withLock { $0 = file }
        file.start()
        // The first use of a static makes it: not in the child, where another thread may have been about to make it.
        Recorder.hasForked.store(false, ordering: .relaxed)
        pthread_atfork(nil, nil) { Recorder.hasForked.store(true, ordering: .relaxed) }
        atexit {
            if Recorder.hasForked.load(ordering: .relaxed) { return }
            TraceFile.ofProcess.withLock { $0 }?.finish()
        }
    } catch {
        error.report(path)
    }
}

/// A recorder that writes its events to a file as they happen.
private final class TraceFile: Sendable {
    static let ofProcess = Mutex<TraceFile?>(nil)

    /// Seconds between two writes.
    private static let interval = 0.1

    struct Failure: Error {
        let reason: String

        init(reason: String) { self.reason = reason }
        init(code: Int32) { reason = String(cString: strerror(code)) }

        func report(_ path: String) {
            let line = "rondo: RONDO_TRACE: cannot write \(path): \(reason)\n"
            _ = line.utf8.withContiguousStorageIfAvailable { bytes in
                bytes.baseAddress.map { rondo_write_quietly(STDERR_FILENO, $0, bytes.count) }
            }
        }
    }

    fileprivate struct State {
        var encoder = TraceEncoder()
        let path: String
        /// -1 once the file is closed: the program has ended, or the disk is full.
        var descriptor: Int32
    }

    private let recorder = Recorder()
    private let state: Mutex<State>
    private let writing = PeriodicThread(name: "rondo.trace", interval: interval)

    init(path: String) throws(Failure) {
        // Opening a FIFO without a reader fails at once instead of blocking.
        let descriptor = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0o644)
        guard descriptor >= 0 else { throw Failure(code: errno) }
        if Self.isFile(descriptor) {
            // Where files cannot be locked, one program at a time has to do.
            guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK else {
                _ = close(descriptor)
                throw Failure(reason: "another program is being recorded into it")
            }
            guard ftruncate(descriptor, 0) == 0 else {
                let failure = Failure(code: errno)
                _ = close(descriptor)
                throw failure
            }
        }
        _ = fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) & ~O_NONBLOCK)
        state = Mutex(State(path: path, descriptor: descriptor))
    }

    /// Whether it is neither a pipe nor a device.
    private static func isFile(_ descriptor: Int32) -> Bool {
        var status = stat()
        return fstat(descriptor, &status) == 0 && status.st_mode & S_IFMT == S_IFREG
    }

    func start() {
        recorder.start()
        state.withLock { [began = recorder.beganAt] in $0.write(TraceEncoder.head(began: began)) }
        writing.start { [self] in flush() }
    }

    private func flush() {
        let new = recorder.drain()
        state.withLock {
            $0.write($0.encoder.frames(new.tables, new.records, begun: new.begun, until: new.until))
        }
    }

    func finish() {
        writing.stop()
        let rest = recorder.finish()
        state.withLock { state in
            state.write(state.encoder.frames(rest.tables, rest.records))
            state.write(TraceEncoder.end(rest.ended, dropped: rest.dropped))
            state.close()
        }
    }
}

extension TraceFile.State {
    mutating func write(_ bytes: [UInt8]) {
        var rest = bytes[...]
        while descriptor >= 0, !rest.isEmpty {
            // The last write is made on a thread of the program's, which does not block SIGPIPE.
            let count = rest.withUnsafeBytes { bytes in
                bytes.baseAddress.map { rondo_write_quietly(descriptor, $0, bytes.count) } ?? 0
            }
            if count < 0 {
                if errno == EINTR { continue }
                // Said once: nothing more is written then.
                TraceFile.Failure(code: errno).report(path)
                return close()
            }
            rest = rest.dropFirst(count)
        }
    }

    mutating func close() {
        if descriptor >= 0 { _ = Foundation.close(descriptor) }
        descriptor = -1
    }
}
