public import Dispatch
public import RondoCore

/// Writes bytes to a file, to memory, to a socket or to a bound pair, and tells its delegate when there is
/// space for more.
///
/// The counterpart of Apple's `NSOutputStream`; `InputStream` says how such a class relates to Foundation's.
///
/// - Note: Not Sendable. A scheduled stream is used on the thread of its loop only (rule ST-20).
open class OutputStream: Foundation.OutputStream, StreamDelegate {
    private enum Destination {
        /// Foundation's own file or memory, which accepts all bytes (rule ST-46).
        case foundation
        /// Foundation's own stream for this path; see `InputStream`.
        case file(NSString)
        case buffer(FixedBuffer)
        // One case each instead of one for the protocol: that makes the object a size class smaller.
        case socket(SocketPair)
        case bound(BoundPair)
        case pipe(PipeEnd)
    }

    /// The unused rest of a buffer that the client owns.
    private final class FixedBuffer {
        var rest: UnsafeMutableRawBufferPointer

        init(_ rest: UnsafeMutableRawBufferPointer) { self.rest = rest }
    }

    let core: StreamCore
    private let destination: Destination

    /// Makes a stream that collects the bytes written to it; `.dataWrittenToMemoryStreamKey` returns them
    /// (rule ST-30).
    public required init(toMemory: ()) {
        core = StreamCore(.output)
        destination = .foundation
        super.init(toMemory: ())
        core.attach(self)
    }

    /// Makes a stream that fills `buffer`, which must outlive the stream. When the buffer is full, a write
    /// accepts 0 bytes and the stream is at its end.
    public override init(toBuffer buffer: UnsafeMutablePointer<UInt8>, capacity: Int) {
        core = StreamCore(.output)
        // Foundation's own stream refuses a write that does not fit as a whole (reading D11).
        destination = .buffer(
            FixedBuffer(UnsafeMutableRawBufferPointer(start: buffer, count: capacity)))
        super.init(toBuffer: buffer, capacity: capacity)
        core.attach(self)
    }

    /// Makes a stream that writes a file, which `open()` creates, or empties unless `append` is true.
    /// `open()` fails for a FIFO, because opening and writing one waits for another program.
    ///
    /// - Returns: nil if `url` does not name a file.
    public override init?(url: URL, append shouldAppend: Bool) {
        guard url.isFileURL else { return nil }
        core = StreamCore(.output)
        destination = .file(url.path as NSString)
        super.init(url: url, append: shouldAppend)
        core.attach(self)
    }

    convenience init(_ pair: SocketPair) { self.init(pair.output, .socket(pair)) }

    convenience init(_ core: StreamCore, _ pair: BoundPair) { self.init(core, .bound(pair)) }

    /// Makes a stream that writes into a pipe and owns its descriptor from here on.
    ///
    /// - Parameter name: The stream's name in traces.
    package convenience init(pipe descriptor: Int32, name: String) {
        let core = StreamCore(.output)
        self.init(core, .pipe(PipeEnd(descriptor, core, .output, name: name, ended: nil)))
    }

    private init(_ core: StreamCore, _ destination: Destination) {
        self.core = core
        self.destination = destination
        // Foundation's own part is initialized and never used. Its kind with a buffer is a kilobyte smaller
        // than the one with memory.
        super.init(toBuffer: Self.nowhere, capacity: 0)
        core.attach(self)
    }

    /// One byte that is never written and never freed, which makes `nonisolated(unsafe)` safe.
    private nonisolated(unsafe) static let nowhere = UnsafeMutablePointer<UInt8>.allocate(capacity: 1)

    deinit {
        releaseRegistrations()
        (super.delegate as? any RetainedDelegate)?.end()
    }

    // MARK: - Delegate

    /// The object that receives the events; held weakly. By default, and after setting nil, it is the stream
    /// itself. One that is set while there is space is told of it, unless another delegate was told of it
    /// before (rule ST-9).
    open override weak var delegate: (any StreamDelegate)? {
        get { super.delegate ?? self }
        set {
            let old = super.delegate
            super.delegate = newValue
            if let newValue { DelegateMethodCheck.streams.lookOnce(at: type(of: newValue), conforms: true) }
            if old !== newValue { delegateChanged(from: old) }
        }
    }

    /// Called if the stream is its own delegate. Does nothing; subclasses may override it.
    open func stream(_ aStream: Foundation.Stream, handle eventCode: Foundation.Stream.Event) {
        aStream.noteIgnored(eventCode)
    }

    /// A name for traces; nil by default, and then traces tell streams apart by numbers.
    public var label: String? {
        get { core.label }
        set { core.label = newValue }
    }

    // MARK: - Schedule

    /// Delivers this stream's events to the delegate on the thread of `aRunLoop`, while it runs in `mode`.
    ///
    /// A stream may be in several modes, also by `.common`, and in several loops; each event is delivered
    /// once (rule ST-18). Scheduling takes the stream off its dispatch queue (rule ST-21).
    open func schedule(in aRunLoop: RunLoop, forMode mode: RunLoop.Mode) { enter(aRunLoop, mode) }

    /// Undoes `schedule(in:forMode:)`. A pending event is not lost: it is delivered after the next schedule
    /// (rule ST-17).
    open func remove(from aRunLoop: RunLoop, forMode mode: RunLoop.Mode) { leave(aRunLoop, mode) }

    /// For values of type `Stream` and for `.current` and `.main`: schedules in Rondo's loop of the same
    /// thread.
    @_disfavoredOverload
    open override func schedule(in aRunLoop: Foundation.RunLoop, forMode mode: RunLoop.Mode) {
        schedule(in: RunLoop.counterpart(of: aRunLoop), forMode: mode)
    }

    @_disfavoredOverload
    open override func remove(from aRunLoop: Foundation.RunLoop, forMode mode: RunLoop.Mode) {
        remove(from: RunLoop.counterpart(of: aRunLoop), forMode: mode)
    }

    /// The queue on which the delegate is called, in place of run loops; nil, the default: none.
    ///
    /// Setting one takes the stream off all run loops (rule ST-21). The queue must be serial, or only one
    /// block at a time of it may use this stream; the stream may be used from that queue only. The
    /// counterpart of `CFWriteStreamSetDispatchQueue`.
    public var dispatchQueue: DispatchQueue? {
        get { core.queue }
        set { enter(newValue) }
    }

    // MARK: - Opening and closing

    /// Opens the stream; it can be opened once. Files and memory are open when this returns; a socket opens
    /// in a scheduled mode, or in the first write. The delegate is never called in here (rules ST-2, ST-3).
    open override func open() {
        guard core.update({ $0.open() }) else { return }
        if let backend { return backend.open(.output) }
        if case .file(let path) = destination, let error = NSError.ofFIFO(path as String) {
            return core.update { $0.failed(error) }
        }
        super.open()
        if super.streamStatus == .error { return follow(.error, super.streamError) }
        core.opened(isReady: true)
    }

    /// Closes the stream and takes it out of all loops; it cannot be opened again (rule ST-5).
    ///
    /// If the input of the connection is still open, the peer is told that no more bytes will come, and the
    /// input can still be read. Without TLS, do that to its end before the input is closed: if both are
    /// closed while received bytes are unread, TCP resets the connection, and the peer may lose the last
    /// bytes that were written.
    open override func close() {
        if leaveAndClose(), backend == nil { super.close() }
    }

    /// The state of the stream. `.writing` is never seen, because a write is over when it returns (rule
    /// ST-1).
    open override var streamStatus: Status { statusAskedFor }
    /// The error of a stream in the state `.error`; otherwise nil (rule ST-6).
    open override var streamError: (any Error)? { core.state.error }

    // MARK: - Bytes

    /// Writes at most `len` bytes, and waits until the first one is accepted if there is no space (rule
    /// ST-24).
    ///
    /// - Returns: The number of bytes accepted, always all for a file or growing memory; 0 if a fixed buffer
    ///   is full; -1 on failure, see `streamError`, and if the stream is not open.
    open override func write(_ buffer: UnsafePointer<UInt8>, maxLength len: Int) -> Int {
        guard len > 0 else { return core.mayTransfer ? 0 : -1 }
        let bytes = UnsafeRawBufferPointer(start: buffer, count: len)
        switch destination {
        // A connection checks the status itself.
        case .socket(let pair): return pair.write(bytes)
        case _ where !core.mayTransfer: return -1
        case .bound(let pair): return pair.write(bytes)
        case .pipe(let pipe): return pipe.write(bytes)
        case .buffer(let buffer): return fill(buffer, with: bytes)
        case .foundation, .file: return writeAll(buffer, len)
        }
    }

    /// Writes the bytes of several pieces, in order, as one sequence: for example a head and a body in one
    /// system call and, where they fit, in one segment, without being copied together.
    ///
    /// - Returns: As `write(_:maxLength:)`, with the pieces counted as one.
    open func write(gathering pieces: [UnsafeRawBufferPointer]) -> Int {
        guard core.mayTransfer else { return -1 }
        let pieces = pieces.filter { !$0.isEmpty }
        guard !pieces.isEmpty else { return 0 }
        if let backend { return backend.write(pieces) }
        var written = 0
        for piece in pieces {
            let start = piece.assumingMemoryBound(to: UInt8.self).baseAddress!
            let count = write(start, maxLength: piece.count)
            if count < 0 { return -1 }
            written += count
            if count < piece.count { break }
        }
        return written
    }

    private func fill(_ buffer: FixedBuffer, with bytes: UnsafeRawBufferPointer) -> Int {
        let count = min(buffer.rest.count, bytes.count)
        buffer.rest.copyMemory(from: UnsafeRawBufferPointer(rebasing: bytes.prefix(count)))
        buffer.rest = UnsafeMutableRawBufferPointer(rebasing: buffer.rest.dropFirst(count))
        core.update { state in
            if count == 0 { state.ended() } else { state.used(isReady: true) }
        }
        return count
    }

    private func writeAll(_ buffer: UnsafePointer<UInt8>, _ len: Int) -> Int {
        var written = 0
        while written < len {
            let count = super.write(buffer + written, maxLength: len - written)
            guard count > 0 else { break }
            written += count
        }
        follow(super.streamStatus, super.streamError)
        return written == len ? len : -1
    }

    /// Whether `write` would return without waiting (rule ST-26).
    ///
    /// This property never waits. A client that polls without a schedule drives the connection by reading
    /// this property or the status.
    open override var hasSpaceAvailable: Bool {
        if case .socket = destination, core.isReady { return true }
        continueOpening()
        guard core.status == .open else { return false }
        switch destination {
        case .socket(let pair): return pair.hasSpaceAvailable
        case .bound(let pair): return pair.hasSpaceAvailable
        case .pipe(let pipe): return pipe.hasSpaceAvailable
        case .buffer(let buffer): return buffer.rest.count > 0
        case .foundation, .file: return super.hasSpaceAvailable
        }
    }

    // MARK: - Properties

    open override func property(forKey key: PropertyKey) -> AnyObject? {
        if let backend { return backend.property(forKey: key) }
        return super.property(forKey: key)
    }

    /// - Returns: Whether the value was accepted (rule ST-33).
    open override func setProperty(_ property: AnyObject?, forKey key: PropertyKey) -> Bool {
        if let backend { return backend.setProperty(property, forKey: key) }
        // Rule ST-31: opening determines whether the stream appends.
        if key == .appendToFileKey, core.status != .notOpen { return false }
        return super.setProperty(property, forKey: key)
    }
}

extension OutputStream: DrivenStream {
    var direction: StreamState.Direction { .output }

    var backend: (any StreamBackend)? {
        switch destination {
        case .socket(let pair): pair
        case .bound(let pair): pair
        case .pipe(let pipe): pipe
        case .foundation, .file, .buffer: nil
        }
    }
}
