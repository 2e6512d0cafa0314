public import RondoCore
internal import RondoMutex

/// The bytes of an input stream in chunks, for `for try await`.
///
/// The stream is driven by a run loop in one mode, like every stream: while the loop does not run in that
/// mode, no chunk comes. Bytes are read only when the next chunk is requested, so a slow task holds the peer
/// back, and memory does not grow. The sequence ends with the stream, and throws its error.
///
/// ```swift
/// for try await chunk in StreamChunks(input, in: thread.runLoop, forMode: .default) {
///     received += chunk.count
/// }
/// ```
///
/// Each chunk goes to one of the sequence's iterators. If a task is cancelled while it waits, it gets a
/// `CancellationError`; no byte is lost, and another task may continue. The stream is closed when the last
/// copy of the sequence and its iterators is released.
public struct StreamChunks: AsyncSequence, Sendable {
    public typealias Element = [UInt8]
    public typealias Failure = any Error

    /// The most bytes of a chunk by default.
    public static let defaultLength = 65_536

    /// The most bytes of any chunk, since memory is allocated before it is known how many have come.
    static let longestLength = 1 << 20

    private let reader: ChunkReader

    /// - Parameters:
    ///   - stream: May be open already; its delegate and schedule belong to the sequence from now on.
    ///   - mode: `.common` stands for every common mode.
    ///   - maximumLength: The most bytes of a chunk, at least 1; more than 1 MiB (1,048,576) means 1 MiB. A
    ///     chunk holds the bytes available, and is never empty.
    public init(
        _ stream: sending InputStream, in loop: RunLoop, forMode mode: RunLoop.Mode = .default,
        maximumLength: Int = StreamChunks.defaultLength
    ) {
        reader = ChunkReader(stream, loop, mode, Swift.min(Swift.max(1, maximumLength), Self.longestLength))
    }

    public func makeAsyncIterator() -> Iterator { Iterator(reader: reader) }

    /// Opens the stream before the first chunk is requested.
    func open() { reader.open() }

    public struct Iterator: AsyncIteratorProtocol {
        fileprivate let reader: ChunkReader

        /// The next bytes, at least one; nil at the end.
        ///
        /// - Throws: The stream's error, on every further call too; `CancellationError` if the task was
        ///   cancelled; an error `ESRCH` in `NSPOSIXErrorDomain` if the loop's thread has ended.
        public mutating func next(isolation actor: isolated (any Actor)?) async throws -> [UInt8]? {
            try await reader.next()
        }
    }
}

/// The waiting tasks in order, and the driver of their stream.
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

    nonisolated(nonsending) func next() async throws -> [UInt8]? {
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
                // If the task was cancelled before the waiter was added, the handler has already run and
                // found nothing.
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

    /// Runs on the loop's thread. The first waiter gets the bytes available, the next one the bytes after
    /// them.
    private func serve(_ stream: InputStream) {
        while state.withLock({ !$0.waiters.isEmpty }), let result = attempt(stream) {
            let waiter = state.withLock { state in
                state.waiters.isEmpty ? nil : state.waiters.removeFirst().continuation
            }
            guard let waiter else { return keep(result) }
            waiter.resume(with: result)
        }
    }

    /// Bytes that were read for a task that was cancelled meanwhile.
    private let kept = Mutex<[UInt8]?>(nil)

    private func keep(_ result: Result<[UInt8]?, any Error>) {
        // The end or an error is found again by the next attempt.
        if case .success(let bytes?) = result { kept.withLock { $0 = bytes } }
    }

    /// Attempts to read once; nil if nothing has arrived.
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
        guard result > 0 else { return attempt(stream) }
        // A short piece is copied, so that it does not keep a large buffer.
        return .success(result < maximumLength / 2 ? bytes.withUnsafeBufferPointer { Array($0) } : bytes)
    }

    private func abandon() {
        let waiters = state.withLock { state in
            defer { state.waiters = [] }
            return state.waiters
        }
        for waiter in waiters { waiter.continuation.resume(throwing: NSError.loopHasEnded) }
    }
}
