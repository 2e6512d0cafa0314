internal import RondoCore
internal import RondoHTTP
internal import RondoStreams

/// The body of a request, read from a stream while it is sent (rules UC-37 and UC-38).
///
/// Bytes that were read are kept, so that `rewind()` can repeat them, unless the delegate gives new streams
/// (rules UC-39 and UC-40). A stream of Rondo's that has no bytes yet reports when it has some; a stream of
/// another class is polled.
///
/// Used inside the gate of its load; only `onReady` is called from elsewhere.
final class BodyStream: NSObject, StreamDelegate {
    enum Reading {
        case bytes(Int)
        /// No bytes yet: `onReady` is called when it is worth trying again.
        case notReady
        case end
        case failed(any Error)
    }

    /// The seconds between two polls of a stream that does not report when it has bytes.
    static let pollInterval = 0.01

    /// The body stream of the request, in whose place the delegate may have given another one.
    let origin: Foundation.InputStream
    private let stream: Foundation.InputStream
    private let onReady: @Sendable () -> Void
    private var spool: BodySpool?
    /// The number of bytes read by the sender since the start, or since the last `rewind()`.
    private var position: Int64 = 0
    /// The number of bytes read from the stream.
    private var taken: Int64 = 0
    private var isFinished = false
    private var isOpened = false
    /// Hashes of the whole body, in hexadecimal digits.
    private(set) var digests: [DigestHash: String] = [:]
    private var running: RunningHash?

    /// - Parameter keeps: Whether bytes are kept, so that the body can be rewound.
    init(
        _ stream: Foundation.InputStream, of origin: Foundation.InputStream, keeps: Bool,
        onReady: @escaping @Sendable () -> Void
    ) {
        self.stream = stream
        self.origin = origin
        self.onReady = onReady
        spool = keeps ? BodySpool() : nil
    }

    deinit { close() }

    /// Whether nothing has been read since the start or the last `rewind()`: the body can be sent as it is.
    var isUntouched: Bool { position == 0 }

    /// Whether the stream has to be polled for bytes.
    var mustBePolled: Bool { type(of: stream) != RondoStreams.InputStream.self && !neverWaits }

    /// Foundation's own streams read files and memory.
    private var neverWaits: Bool { type(of: stream) == Foundation.InputStream.self }

    // MARK: - Reading

    /// Opens the stream, under the connection's own schedule (rule UC-37).
    func open(in modes: [LoopMode]) {
        guard !isOpened else { return }
        isOpened = true
        if let ours = stream as? RondoStreams.InputStream {
            ours.delegate = self
            for scheduled in modes { ours.schedule(in: scheduled.loop, forMode: scheduled.mode) }
        }
        if stream.streamStatus == .notOpen { stream.open() }
    }

    /// Reads at least one byte into `buffer`, without waiting.
    func read(into buffer: UnsafeMutableRawBufferPointer) -> Reading {
        if position < taken, let spool {
            do throws(SystemError) {
                let count = try spool.read(at: position, into: buffer)
                // Another process has truncated the file.
                guard count > 0 else { return .failed(SystemError("pread", code: EIO)) }
                position += Int64(count)
                return .bytes(count)
            } catch {
                return .failed(error)
            }
        }
        if isFinished { return .end }
        let reading = readStream(buffer)
        switch reading {
        case .bytes(let count):
            keep(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
            taken += Int64(count)
            position = taken
        case .end:
            isFinished = true
            stream.close()
        case .notReady, .failed:
            break
        }
        return reading
    }

    private func readStream(_ buffer: UnsafeMutableRawBufferPointer) -> Reading {
        guard let base = buffer.bindMemory(to: UInt8.self).baseAddress else { return .notReady }
        if let result = verdict { return result }
        if !neverWaits && !stream.hasBytesAvailable { return verdict ?? .notReady }
        let count = stream.read(base, maxLength: buffer.count)
        if count > 0 { return .bytes(min(count, buffer.count)) }
        if count < 0 { return .failed(stream.streamError ?? Self.unexplained) }
        return .end
    }

    /// The result that follows from the stream's status alone; nil if the stream has to be read.
    private var verdict: Reading? {
        switch stream.streamStatus {
        case .error: .failed(stream.streamError ?? Self.unexplained)
        case .closed: .end
        // For a stream of Rondo's the last byte was read. (Streams of other classes may be at their end and
        // still have bytes.)
        case .atEnd where !stream.hasBytesAvailable: .end
        case .opening: .notReady
        default: nil
        }
    }

    private func keep(_ bytes: UnsafeRawBufferPointer) {
        do throws(SystemError) {
            try spool?.append(bytes)
        } catch {
            // The body is sent all the same; it only cannot be sent a second time.
            Log.connections.warning(
                "The body of a request can be sent only once, because it could not be stored: \(error)")
            spool = nil
        }
    }

    // MARK: - Repeating

    /// Starts again with the bytes that were kept.
    ///
    /// - Returns: False if they were not kept.
    func rewind() -> Bool {
        guard spool != nil || isUntouched else { return false }
        position = 0
        return true
    }

    // MARK: - Hashing before sending

    enum Hashing {
        /// The hash is among `digests`, and the body is at its start.
        case done
        /// There is more to read; the loop serves others first.
        case more
        case notReady
        case failed(any Error)
        /// The body is too long, or the disk too full, to keep its bytes until the hash is known.
        case lost
    }

    /// Reads on until the hash of the whole is known, and keeps the bytes even if the delegate can give new
    /// streams.
    func hash(by function: DigestHash, piece: inout [UInt8]) -> Hashing {
        if digests[function] != nil { return .done }
        if running?.function != function {
            if spool == nil, taken == 0 { spool = BodySpool() }
            guard rewind(), let hash = RunningHash(function) else { return .lost }
            running = hash
        }
        let reading = piece.withUnsafeMutableBytes { read(into: $0) }
        guard spool != nil else { return .lost }
        switch reading {
        case .bytes(let count):
            running?.update(piece.span.extracting(first: count).bytes)
            return .more
        case .notReady: return .notReady
        case .failed(let error): return .failed(error)
        case .end:
            guard let digest = running?.finish() else { return .lost }
            running = nil
            digests[function] = digest
            position = 0
            return .done
        }
    }

    /// The hash of the bytes that were read so far. A class, because a `RunningHash` of `DigestHash` is not
    /// copyable, and an optional of one cannot be tested without consuming it.
    private final class RunningHash {
        let function: DigestHash
        private var state: DigestHash.RunningHash?

        init?(_ function: DigestHash) {
            guard let state = DigestHash.RunningHash(function) else { return nil }
            self.function = function
            self.state = consume state
        }

        func update(_ bytes: RawSpan) { state?.update(bytes) }
        func finish() -> String? { state.take()?.finish() }
    }

    func close() {
        isFinished = true
        spool = nil
        guard isOpened else { return }
        stream.delegate = nil
        stream.close()
    }

    // MARK: - StreamDelegate

    func stream(_ aStream: Foundation.Stream, handle eventCode: Foundation.Stream.Event) { onReady() }

    private static var unexplained: any Error {
        NSError(
            domain: NSPOSIXErrorDomain, code: Int(EIO),
            userInfo: [NSLocalizedDescriptionKey: "the stream failed without a reason"])
    }
}
