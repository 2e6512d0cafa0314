public import RondoCore
internal import RondoMutex

/// The bytes of an input stream as they come, for `for try await`.
///
/// The stream is driven by a run loop in one mode, like every stream: while the loop does not run in that
/// mode, nothing comes. Bytes are read when the next chunk is asked for and not before, so a task that takes
/// its time holds the peer back, and memory does not grow. The sequence ends with the stream, and throws its
/// error.
///
/// ```swift
/// for try await chunk in StreamChunks(input, in: thread.runLoop, forMode: .default) {
///     received += chunk.count
/// }
/// ```
///
/// Of all iterators of one sequence each chunk goes to one. A task that is cancelled while it waits stops
/// waiting with a `CancellationError`; no byte is lost, and another task may go on. The stream is closed when
/// the last copy of the sequence and its iterators is gone.
public struct StreamChunks: AsyncSequence, Sendable {
    public typealias Element = [UInt8]
    public typealias Failure = any Error

    /// The most bytes of a chunk, unless another number is given.
    public static let defaultLength = 65_536

    private let reader: ChunkReader

    /// - Parameters:
    ///   - stream: Opened already or not; its delegate and schedule are the sequence's from now on.
    ///   - mode: `.common` stands for every common mode.
    ///   - maximumLength: The most bytes of a chunk, at least 1; a chunk has what there is, never nothing.
    public init(
        _ stream: sending InputStream, in loop: RunLoop, forMode mode: RunLoop.Mode = .default,
        maximumLength: Int = StreamChunks.defaultLength
    ) {
        reader = ChunkReader(stream, loop, mode, Swift.max(1, maximumLength))
    }

    public func makeAsyncIterator() -> Iterator { Iterator(reader: reader) }

    /// Opens the stream before bytes are asked for.
    func open() { reader.open() }

    public struct Iterator: AsyncIteratorProtocol {
        fileprivate let reader: ChunkReader

        /// The next bytes, at least one; nil at the end.
        ///
        /// - Throws: The stream's error, again and again; `CancellationError` where the task was cancelled;
        ///   an error `ESRCH` in `NSPOSIXErrorDomain` if the thread of the loop has ended.
        public mutating func next() async throws -> [UInt8]? { try await reader.next() }
    }
}

/// Waiting tasks in order, and the driver of their stream.
private final class ChunkReader: Sendable {
    private typealias Waiter = CheckedContinuation<[UInt8]?, any Error>

    private struct State {
        var waiters: [(id: UInt64, continuation: Waiter)] = []
        var nextID: UInt64 = 0
        var driver: StreamDriver<InputStream>?
    }

    private let state = Mutex(State())
    private let maximumLength: Int

    init(_ stream: sending InputStream, _ loop: RunLoop, _ mode: RunLoop.Mode, _ maximumLength: Int) {
        self.maximumLength = maximumLength
        let driver = StreamDriver(
            stream, loop, mode, serve: { [weak self] in self?.serve($0) },
            abandon: { [weak self] in self?.abandon() })
        state.withLock { $0.driver = driver }
    }

    func open() { state.withLock { $0.driver }?.wake() }

    func next() async throws -> [UInt8]? {
        let id = state.withLock { state in
            state.nextID += 1
            return state.nextID
        }
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let driver = state.withLock { state in
                    state.waiters.append((id, continuation))
                    return state.driver
                }
                // Cancelled before there was anything to cancel: the handler has been called already.
                if Task.isCancelled { cancel(id) }
                driver?.wake()
            }
        } onCancel: {
            cancel(id)
        }
    }

    private func cancel(_ id: UInt64) {
        let waiter = state.withLock { state in
            state.waiters.firstIndex { $0.id == id }.map { state.waiters.remove(at: $0).continuation }
        }
        waiter?.resume(throwing: CancellationError())
    }

    /// On the loop's thread. The first waiter gets what there is, the next one what comes next.
    private func serve(_ stream: InputStream) {
        while state.withLock({ !$0.waiters.isEmpty }), let result = attempt(stream) {
            let waiter = state.withLock { state in
                state.waiters.isEmpty ? nil : state.waiters.removeFirst().continuation
            }
            guard let waiter else { return keep(result) }
            waiter.resume(with: result)
        }
    }

    /// What was read for a task that was cancelled in the meantime.
    private let kept = Mutex<[UInt8]?>(nil)

    private func keep(_ result: Result<[UInt8]?, any Error>) {
        // The end and an error are found again.
        if case .success(let bytes?) = result { kept.withLock { $0 = bytes } }
    }

    /// Nil: nothing has come.
    private func attempt(_ stream: InputStream) -> Result<[UInt8]?, any Error>? {
        let found = kept.withLock { kept -> [UInt8]? in
            defer { kept = nil }
            return kept
        }
        if let found { return .success(found) }
        switch stream.streamStatus {
        case .open: break
        case .error: return .failure(stream.streamError ?? NSError.unexplained)
        case .atEnd, .closed: return .success(nil)
        default: return nil
        }
        guard stream.hasBytesAvailable else { return stream.streamStatus == .open ? nil : attempt(stream) }
        var result = 0
        let bytes = [UInt8](unsafeUninitializedCapacity: maximumLength) { buffer, count in
            result = buffer.baseAddress.map { stream.read($0, maxLength: buffer.count) } ?? 0
            count = max(0, result)
        }
        return result > 0 ? .success(bytes) : attempt(stream)
    }

    private func abandon() {
        let waiters = state.withLock { state in
            defer { state.waiters = [] }
            return state.waiters
        }
        for waiter in waiters { waiter.continuation.resume(throwing: NSError.loopHasEnded) }
    }
}
