public import RondoCore
internal import RondoMutex

/// Writes to an output stream from tasks; each write waits until the stream has accepted all of it.
///
/// The stream is driven by a run loop in one mode, like every stream: while the loop does not run in that
/// mode, nothing is written. A write returns when the stream has accepted its bytes, which are then in the
/// buffer of the kernel or of a bound pair. A task that writes in a loop is therefore as fast as the peer
/// reads.
///
/// ```swift
/// let writer = StreamWriter(output, in: thread.runLoop, forMode: .default)
/// try await writer.write(Array("hello\n".utf8))
/// await writer.close()
/// ```
public final class StreamWriter: Sendable {
    private typealias Waiter = CheckedContinuation<Void, any Error>

    private struct Job {
        let id: UInt64
        var bytes: ArraySlice<UInt8>
        /// True if this job closes the stream.
        let isLast: Bool
        let continuation: Waiter
    }

    private struct State {
        /// The job that was begun.
        private var current: Job?
        /// By their IDs: two tasks may add theirs in the other order.
        var waiting = KeyedQueue<UInt64, Job>()
        var nextID: UInt64 = 0
        var driver: StreamDriver<OutputStream>?

        var count: Int { waiting.count + (current == nil ? 0 : 1) }

        /// The job to go on with.
        mutating func next() -> Job? {
            if current == nil { current = waiting.popFirst() }
            return current
        }

        /// - Returns: The job, if that was all of it; nil also if it was cancelled.
        mutating func noteWritten(_ count: Int, of id: UInt64) -> Job? {
            guard let job = current, job.id == id else { return nil }
            let rest = job.bytes.dropFirst(count)
            current?.bytes = rest
            return rest.isEmpty ? current.take() : nil
        }

        mutating func remove(_ id: UInt64) -> Job? {
            current?.id == id ? current.take() : waiting.remove(id)
        }

        mutating func takeAll() -> [Job] {
            defer { waiting = KeyedQueue() }
            return (current.take().map { [$0] } ?? []) + waiting.elements
        }

        /// All but a close.
        mutating func takeWrites() -> [Job] {
            let all = takeAll()
            for job in all where job.isLast { waiting.insert(job, key: job.id) }
            return all.filter { !$0.isLast }
        }
    }

    private let state = Mutex(State())

    /// - Parameters:
    ///   - stream: May be open already; its delegate and schedule belong to the writer from now on.
    ///   - mode: `.common` stands for every common mode.
    public init(_ stream: sending OutputStream, in loop: RunLoop, forMode mode: RunLoop.Mode = .default) {
        let driver = StreamDriver(
            stream, loop, mode, serve: { [weak self] in self?.serve($0) },
            abandon: { [weak self] in self?.failAll(NSError.loopHasEnded) })
        state.withLock { $0.driver = driver }
    }

    /// Writes all of `bytes`, after earlier writes, and returns when the stream has accepted them.
    ///
    /// If the task is cancelled while it waits, it stops waiting. A part may have been written then, and the
    /// peer could not make sense of further bytes: close the writer.
    /// - Throws: The stream's error; `CancellationError`; `ENOSPC` in `NSPOSIXErrorDomain` if a fixed buffer
    ///   is full; `ESRCH` if the loop's thread has ended.
    public func write(_ bytes: [UInt8]) async throws { try await add(bytes[...], isLast: false) }

    /// Writes a part of an array, like `write(_:)` for arrays.
    public func write(_ bytes: ArraySlice<UInt8>) async throws { try await add(bytes, isLast: false) }

    /// Writes data, like `write(_:)` for arrays.
    public func write(_ data: Data) async throws { try await add(Array(data)[...], isLast: false) }

    /// Closes the stream after earlier writes are done; if the input can still be read, the peer is told that
    /// no more bytes will come. It does not wait for a connection that is still being made. Releasing the
    /// writer closes the stream as well.
    public func close() async {
        // A stream that has failed is closed all the same.
        try? await add([], isLast: true)
    }

    /// The number of writes and closes that wait; for tests.
    package var waitingCount: Int { state.withLock { $0.count } }

    private func add(_ bytes: ArraySlice<UInt8>, isLast: Bool) async throws {
        let id = state.withLock { state in
            state.nextID += 1
            return state.nextID
        }
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let driver = state.withLock { state in
                    let job = Job(id: id, bytes: bytes, isLast: isLast, continuation: continuation)
                    state.waiting.insert(job, key: id)
                    return state.driver
                }
                if !isLast, Task.isCancelled { cancel(id) }
                driver?.wake()
            }
        } onCancel: {
            // A close is not cancelled: it only waits for the writes before it.
            if !isLast { cancel(id) }
        }
    }

    private func cancel(_ id: UInt64) {
        let (job, driver) = state.withLock { ($0.remove(id), $0.driver) }
        guard let job else { return }
        job.continuation.resume(throwing: CancellationError())
        // A close that has waited for this write may be next.
        driver?.wake()
    }

    /// Runs on the loop's thread.
    private func serve(_ stream: OutputStream) {
        while let job = state.withLock({ $0.next() }) {
            switch attempt(job, stream) {
            case .wait: return
            case .wrote(let count):
                let done = state.withLock { $0.noteWritten(count, of: job.id) }
                done?.continuation.resume()
            case .failed(let error):
                failWrites(error)
            }
        }
    }

    private enum Outcome {
        case wait
        case wrote(Int)
        case failed(any Error)
    }

    private func attempt(_ job: Job, _ stream: OutputStream) -> Outcome {
        switch stream.streamStatus {
        case .notOpen: return .wait
        case _ where job.isLast:
            stream.close()
            return .wrote(0)
        case .opening: return .wait
        case .open: break
        case .error:
            stream.close()
            return .failed(stream.streamError ?? NSError.unexplained)
        case .closed: return .failed(NSError.posix(EPIPE))
        default: return .failed(NSError.posix(ENOSPC))
        }
        guard !job.bytes.isEmpty else { return .wrote(0) }
        guard stream.hasSpaceAvailable else {
            // A fixed buffer that is full stays full.
            return stream.backend == nil ? .failed(NSError.posix(ENOSPC)) : .wait
        }
        let count = job.bytes.withUnsafeBufferPointer { buffer in
            buffer.baseAddress.map { stream.write($0, maxLength: buffer.count) } ?? 0
        }
        if count > 0 { return .wrote(count) }
        return .failed(count == 0 ? NSError.posix(ENOSPC) : stream.streamError ?? NSError.unexplained)
    }

    /// Fails what waits, but for a close, which is made.
    private func failWrites(_ error: any Error) {
        let failed = state.withLock { $0.takeWrites() }
        for job in failed { job.continuation.resume(throwing: error) }
    }

    private func failAll(_ error: any Error) {
        let jobs = state.withLock { $0.takeAll() }
        for job in jobs { job.continuation.resume(throwing: error) }
    }
}

/// Both directions of a connection, for tasks.
///
/// The two streams of a pair are sent together, because the compiler cannot know that they may be separated.
public struct AsyncStreamPair: Sendable {
    public let chunks: StreamChunks
    public let writer: StreamWriter

    /// - Parameters:
    ///   - pair: The streams of a connection or of a bound pair; they may be open already.
    ///   - mode: `.common` stands for every common mode.
    public init(
        _ pair: sending StreamPair, in loop: RunLoop, forMode mode: RunLoop.Mode = .default
    ) {
        // Each stream is used by its own driver alone from here on, and their shared state has a lock
        // (SocketPair, BoundPair).
        nonisolated(unsafe) let (input, output) = (pair.input, pair.output)
        chunks = StreamChunks(input, in: loop, forMode: mode)
        writer = StreamWriter(output, in: loop, forMode: mode)
        // Otherwise a writer that is closed before the first chunk is requested would close the only open
        // stream, and the connection with it.
        chunks.open()
    }

    /// Makes both directions of a connection that a listener has accepted.
    ///
    /// - Parameter mode: `.common` stands for every common mode.
    public init(
        _ connection: StreamListener.Connection, in loop: RunLoop, forMode mode: RunLoop.Mode = .default
    ) {
        // Sent with the connection, whose streams have no other owner.
        nonisolated(unsafe) let pair = StreamPair(input: connection.input, output: connection.output)
        self.init(pair, in: loop, forMode: mode)
    }
}
