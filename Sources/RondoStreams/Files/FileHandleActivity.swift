internal import RondoCore
internal import RondoMutex

/// One call of a method `…InBackgroundAndNotify`, until its notification: reads, accepts or waits on the run
/// loop of the calling thread.
///
/// A loop retains the source, the source retains the activity, and the activity retains the handle, so all of
/// them live until the notification. The activity ends with its source: when the handle is closed, or the
/// loop's thread ends, no notification is posted.
final class FileHandleActivity: Sendable {
    enum Kind: String {
        case read = "readInBackgroundAndNotify"
        case readToEnd = "readToEndOfFileInBackgroundAndNotify"
        case accept = "acceptConnectionInBackgroundAndNotify"
        case waitForData = "waitForDataInBackgroundAndNotify"
    }

    /// The most bytes of one `readInBackgroundAndNotify`: from a pipe, socket or terminal, and from a file.
    static let maximumRead = 65_536
    static let maximumFileRead = 1 << 20
    /// The most bytes of one `readToEndOfFileInBackgroundAndNotify`, 2 GiB less one, about as many as one
    /// call of `read(2)` returns. More fail with EFBIG.
    static let maximumReadToEnd = Int(Int32.max)

    private struct State {
        var data = Data()
        /// The result of the thread that reads a file.
        var outcome: Outcome?
        var isReading = false
    }

    private enum Outcome {
        case data(Data)
        case failed(Int32)
    }

    let kind: Kind
    private let handle: FileHandle
    /// The handle's descriptor at the time of the call. Once the handle is closed, it has another one, or
    /// none.
    private let original: Int32
    /// The activity's own descriptor for the same open file: after the program has closed the handle, it
    /// cannot refer to another file. -1 if it could not be made.
    private let descriptor: Int32
    private let refusal: Int32?
    private let isFile: Bool
    private let state = Mutex(State())

    private init(_ kind: Kind, _ handle: FileHandle) {
        self.kind = kind
        self.handle = handle
        original = handle.fileDescriptor
        descriptor = original < 0 ? -1 : fcntl(original, F_DUPFD_CLOEXEC, 0)
        // The null device has no descriptor, and counts as being at its end.
        refusal = descriptor >= 0 || handle === FileHandle.nullDevice ? nil : original < 0 ? EBADF : errno
        var status = stat()
        let format = fstat(descriptor, &status) == 0 ? status.st_mode & S_IFMT : S_IFREG
        isFile = format == S_IFREG || format == S_IFDIR || format == S_IFBLK
    }

    deinit {
        FileHandleActivities.end(of: handle, self)
        if descriptor >= 0 { close(descriptor) }
    }

    /// Starts a call of `kind` on `loop`. Traps if another call on the handle is in progress (rule FH-10).
    static func begin(_ kind: Kind, _ handle: FileHandle, on loop: RunLoop, _ modes: [RunLoop.Mode]?) {
        let modes = modes ?? [.default]
        guard !modes.isEmpty else {
            RunLoop.warn("\(kind.rawValue)(forModes:) was called with no mode, and does nothing.")
            return
        }
        let activity = FileHandleActivity(kind, handle)
        let source = activity.makeSource()
        source.label = kind.rawValue
        FileHandleActivities.begin(activity, of: handle, source)
        for mode in modes { loop.add(source, forMode: mode) }
    }

    private func makeSource() -> RunLoop.Source {
        guard isFile || descriptor < 0 else {
            return RunLoop.Source(fileDescriptor: descriptor, keepsFile: true, interest: .read) {
                [self] source, ready in
                if ready.isEmpty { end(source, error: source.refusalCode ?? EIO) } else { serve(source) }
            }
        }
        let reference = WeakSource()
        let source = RunLoop.Source { [self] in
            if let source = reference.source { serveFile(source) }
        }
        reference.source = source
        source.signal()
        return source
    }

    // MARK: - On the loop's thread: pipes, sockets, terminals

    private func serve(_ source: RunLoop.Source) {
        guard !wasClosed(source) else { return }
        switch kind {
        case .read, .readToEnd: read(source)
        case .accept: accept(source)
        case .waitForData: end(source, [:])
        }
    }

    private func read(_ source: RunLoop.Source) {
        var found = 0
        var bytes = Data(count: Self.maximumRead)
        bytes.withUnsafeMutableBytes { buffer in
            guard let base = buffer.baseAddress else { return }
            found = readAvailable(descriptor, into: base, count: buffer.count)
        }
        // Another reader has taken the bytes.
        if found == -Int(EAGAIN) || found == -Int(EINTR) { return }
        guard found >= 0 else { return end(source, error: Int32(-found)) }
        bytes = Data(bytes.prefix(found))
        guard kind == .readToEnd else { return end(source, data: bytes) }
        if found == 0 { return end(source, data: state.withLock { $0.data }) }
        let isTooLong = state.withLock { state in
            state.data.append(bytes)
            return state.data.count > Self.maximumReadToEnd
        }
        if isTooLong { end(source, error: EFBIG) }
    }

    private func accept(_ source: RunLoop.Source) {
        var request = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        // Another thread or process has taken the connection.
        if poll(&request, 1, 0) == 0 { return }
        let accepted = acceptConnection(on: descriptor)
        guard accepted >= 0 else {
            switch -accepted {
            // accept(2): no connection is left, or a connection was lost.
            case EAGAIN, EINTR, ECONNABORTED, EPROTO, EPERM, ENETDOWN, ENOPROTOOPT, EHOSTDOWN, ENONET,
                EHOSTUNREACH, ENETUNREACH, ETIMEDOUT:
                return
            default: return end(source, error: -accepted)
            }
        }
        // The methods of a `FileHandle` expect a blocking descriptor.
        _ = fcntl(accepted, F_SETFL, fcntl(accepted, F_GETFL) & ~O_NONBLOCK)
        let nearEnd = FileHandle(fileDescriptor: accepted, closeOnDealloc: true)
        end(source, [NSFileHandleNotificationFileHandleItem: nearEnd])
    }

    // MARK: - Files, which are read on a thread of their own (rule FH-12)

    private func serveFile(_ source: RunLoop.Source) {
        guard !wasClosed(source) else { return }
        if let refusal { return end(source, error: refusal) }
        switch kind {
        case .waitForData: return end(source, [:])
        case .accept: return end(source, error: descriptor < 0 ? EBADF : ENOTSOCK)
        case .read, .readToEnd: break
        }
        if descriptor < 0 { return end(source, data: Data()) }
        let (outcome, isReading) = state.withLock { state in
            defer { state.isReading = true }
            return (state.outcome, state.isReading)
        }
        switch outcome {
        case .data(let data): end(source, data: data)
        case .failed(let code): end(source, error: code)
        case nil:
            guard !isReading else { return }
            do throws(SystemError) {
                try SystemThread.start(name: "rondo.file") { [self] in
                    let outcome = readFile()
                    state.withLock { $0.outcome = outcome }
                    source.signalAndWakeUp()
                }
            } catch {
                end(source, error: error.code)
            }
        }
    }

    private func readFile() -> Outcome {
        var data = Data()
        var buffer = [UInt8](repeating: 0, count: Self.maximumFileRead)
        repeat {
            let found = Glibc.read(descriptor, &buffer, buffer.count)
            if found < 0, errno == EINTR { continue }
            if found < 0 { return .failed(errno) }
            data.append(contentsOf: buffer[..<found])
            if kind == .read || found == 0 { return .data(data) }
        } while data.count <= Self.maximumReadToEnd
        return .failed(EFBIG)
    }

    // MARK: - The end

    /// A call whose handle was closed ends without a notification (rule FH-11).
    private func wasClosed(_ source: RunLoop.Source) -> Bool {
        guard handle.fileDescriptor != original else { return false }
        source.invalidate()
        return true
    }

    private func end(_ source: RunLoop.Source, error: Int32) {
        var userInfo: [AnyHashable: Any] = ["NSFileHandleError": Int(error)]
        if kind == .read || kind == .readToEnd { userInfo[NSFileHandleNotificationDataItem] = Data() }
        end(source, userInfo)
    }

    private func end(_ source: RunLoop.Source, data: Data) {
        end(source, [NSFileHandleNotificationDataItem: data])
    }

    private func end(_ source: RunLoop.Source, _ userInfo: [AnyHashable: Any]) {
        source.invalidate()
        // An observer may make the next call on the handle.
        FileHandleActivities.end(of: handle, self)
        let name =
            switch kind {
            case .read: FileHandle.readCompletionNotification
            case .readToEnd: Notification.Name.NSFileHandleReadToEndOfFileCompletion
            case .accept: Notification.Name.NSFileHandleConnectionAccepted
            case .waitForData: Notification.Name.NSFileHandleDataAvailable
            }
        NotificationCenter.default.post(name: name, object: handle, userInfo: userInfo)
    }
}

/// A weak reference to a signalled source, for the source's own closure, which must not retain it.
private final class WeakSource: Sendable {
    private struct Reference {
        weak var source: RunLoop.Source?
    }

    private let reference = Mutex(Reference())

    var source: RunLoop.Source? {
        get { reference.withLock { $0.source } }
        set { reference.withLock { $0.source = newValue } }
    }
}
