internal import RondoCore
internal import RondoHTTP
internal import RondoStreams

/// The body of a request, read from a stream while it is sent (rules UC-37 and UC-38).
///
/// What was read is kept, so that `rewind()` can have it sent again, unless the delegate gives new streams
/// (rules UC-39 and UC-40). A stream of ours that has no bytes yet says when it has; one of another class is
/// asked again and again.
///
/// Used inside the gate of its load; only `onReady` is called from elsewhere.
final class BodyStream: NSObject, StreamDelegate {
    enum Reading {
        case bytes(Int)
        /// Nothing yet: `onReady` is called when it is worth another look.
        case notReady
        case end
        case failed(any Error)
    }

    /// Seconds between two looks at a stream that cannot tell by itself.
    static let pollInterval = 0.01

    /// The stream of the request that this is the body of, which the delegate may have replaced.
    let origin: Foundation.InputStream
    private let stream: Foundation.InputStream
    private let onReady: @Sendable () -> Void
    private var spool: BodySpool?
    /// Bytes handed out since the start, or since the last `rewind()`.
    private var position: Int64 = 0
    /// Bytes that came out of the stream.
    private var taken: Int64 = 0
    private var isFinished = false
    private var isOpened = false
    /// Hashes of the whole, in hexadecimal digits.
    private(set) var digests: [DigestHash: String] = [:]
    private var running: RunningHash?

    /// - Parameter keeps: Whether it can be rewound.
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

    /// Nothing has been read from it: it can be sent as it is.
    var isUntouched: Bool { position == 0 }

    /// Whether it has to be asked again and again whether bytes have come.
    var mustBePolled: Bool { type(of: stream) != RondoStreams.InputStream.self && !neverWaits }

    /// Foundation's own streams are of files and memory.
    private var neverWaits: Bool { type(of: stream) == Foundation.InputStream.self }

    // MARK: - Reading

    /// Opens the stream, under the connection's own schedule (rule UC-37).
    func open(in places: [LoopMode]) {
        guard !isOpened else { return }
        isOpened = true
        if let ours = stream as? RondoStreams.InputStream {
            ours.delegate = self
            for place in places { ours.schedule(in: place.loop, forMode: place.mode) }
        }
        if stream.streamStatus == .notOpen { stream.open() }
    }

    /// Reads at least one byte into `buffer`, without waiting.
    func read(into buffer: UnsafeMutableRawBufferPointer) -> Reading {
        if position < taken, let spool {
            do throws(SystemError) {
                let count = try spool.read(at: position, into: buffer)
                // Another process has cut the file short.
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

    /// What the stream's status says by itself; nil: look for bytes.
    private var verdict: Reading? {
        switch stream.streamStatus {
        case .error: .failed(stream.streamError ?? Self.unexplained)
        case .closed: .end
        // Of ours: the last byte was read. (Another's may be at its end with bytes still to be had.)
        case .atEnd where !stream.hasBytesAvailable: .end
        case .opening: .notReady
        default: nil
        }
    }

    private func keep(_ bytes: UnsafeRawBufferPointer) {
        do throws(SystemError) {
            try spool?.append(bytes)
        } catch {
            // Sent all the same; only a second time is not possible any more.
            Log.connections.warning(
                "A request's body can be sent once only, it could not be kept: \(error)")
            spool = nil
        }
    }

    // MARK: - Again

    /// Starts over with what was kept.
    ///
    /// - Returns: False if it was not kept.
    func rewind() -> Bool {
        guard spool != nil || isUntouched else { return false }
        position = 0
        return true
    }

    // MARK: - Known before it is sent

    enum Hashing {
        /// It is among `digests`, and the body is at its start.
        case done
        /// There is more; the loop serves others before it goes on.
        case more
        case notReady
        case failed(any Error)
        /// It cannot be kept until then.
        case lost
    }

    /// Reads on, and keeps the bytes whatever the delegate can do, until the hash of the whole is known.
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

    /// A class, because a hash under way cannot be copied, and an optional of it not be asked.
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
