public import Dispatch
public import RondoCore

/// Writes bytes to a file, to memory, or to what makes streams itself (a host, a bound pair), and tells its
/// delegate when there is space for more.
///
/// The counterpart of Apple's `NSOutputStream`; see `InputStream` for how it stands to Foundation's class.
///
/// - Note: Not Sendable. A scheduled stream is used on the thread of its loop only (rule ST-20).
open class OutputStream: Foundation.OutputStream, StreamDelegate {
    private enum Destination {
        /// Foundation's own file or memory, which takes all (rule ST-46).
        case foundation
        /// The same, of that path; see `InputStream`.
        case file(NSString)
        case buffer(FixedBuffer)
        // One case each, not one for the protocol: the object is a size class smaller by that.
        case socket(SocketPair)
        case bound(BoundPair)
        case pipe(PipeEnd)
    }

    /// The free rest of a buffer of the client's.
    private final class FixedBuffer {
        var rest: UnsafeMutableRawBufferPointer

        init(_ rest: UnsafeMutableRawBufferPointer) { self.rest = rest }
    }

    let core: StreamCore
    private let destination: Destination

    /// A stream that collects what is written; `.dataWrittenToMemoryStreamKey` reads it (rule ST-30).
    public required init(toMemory: ()) {
        core = StreamCore(.output)
        destination = .foundation
        super.init(toMemory: ())
        core.attach(self)
    }

    /// A stream that fills `buffer`, which must outlive it. When it is full, 0 bytes are taken and that is
    /// the end.
    public override init(toBuffer buffer: UnsafeMutablePointer<UInt8>, capacity: Int) {
        core = StreamCore(.output)
        // Foundation's own refuses what does not fit as a whole (reading D11).
        destination = .buffer(
            FixedBuffer(UnsafeMutableRawBufferPointer(start: buffer, count: capacity)))
        super.init(toBuffer: buffer, capacity: capacity)
        core.attach(self)
    }

    /// A stream that writes a file, which `open()` creates, or empties unless `append` is true. A FIFO is an error there,
    /// since to open and to write it waits for another program.
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

    /// A stream that writes into a pipe, whose descriptor it owns from here on.
    ///
    /// - Parameter name: What traces call it.
    package convenience init(pipe descriptor: Int32, name: String) {
        let core = StreamCore(.output)
        self.init(core, .pipe(PipeEnd(descriptor, core, .output, name: name, ended: nil)))
    }

    private init(_ core: StreamCore, _ destination: Destination) {
        self.core = core
        self.destination = destination
        // Foundation's own stream is made and never used: of its kinds, this is a kilobyte smaller than
        // memory.
        super.init(toBuffer: Self.nowhere, capacity: 0)
        core.attach(self)
    }

    /// One byte, never written and never freed, which makes `nonisolated(unsafe)` safe.
    private nonisolated(unsafe) static let nowhere = UnsafeMutablePointer<UInt8>.allocate(capacity: 1)

    deinit {
        letGo()
        (super.delegate as? any LastingDelegate)?.end()
    }

    // MARK: - Delegate

    /// The object that is told of events; held weakly. By default, and after setting nil, the stream itself (rule ST-9).
    open override weak var delegate: (any StreamDelegate)? {
        get { super.delegate ?? self }
        set {
            let old = super.delegate
            super.delegate = newValue
            if let newValue { DelegateMethodCheck.streams.lookOnce(at: type(of: newValue), conforms: true) }
            if let old = old as? any LastingDelegate, old !== newValue { old.end() }
        }
    }

    /// What the stream does as its own delegate: nothing, unless a subclass does something.
    open func stream(_ aStream: Foundation.Stream, handle eventCode: Foundation.Stream.Event) {}

    /// A name for traces; nil at first: they tell streams apart by numbers then.
    public var label: String? {
        get { core.label }
        set { core.label = newValue }
    }

    // MARK: - Schedule

    /// Tells the delegate of this stream's events on the thread of `aRunLoop`, while it runs in `mode`.
    ///
    /// In several modes, also by `.common`, and in several loops: each event is delivered once (rule ST-18).
    /// It takes the stream off its dispatch queue (rule ST-21).
    open func schedule(in aRunLoop: RunLoop, forMode mode: RunLoop.Mode) { enter(aRunLoop, mode) }

    /// Takes back what `schedule(in:forMode:)` said. An event that is owed then is not lost: the next schedule brings
    /// it (rule ST-17).
    open func remove(from aRunLoop: RunLoop, forMode mode: RunLoop.Mode) { leave(aRunLoop, mode) }

    /// For values typed `Stream` and the words `.current` and `.main`: Rondo's loop of the same thread is
    /// meant.
    @_disfavoredOverload
    open override func schedule(in aRunLoop: Foundation.RunLoop, forMode mode: RunLoop.Mode) {
        schedule(in: RunLoop.counterpart(of: aRunLoop), forMode: mode)
    }

    @_disfavoredOverload
    open override func remove(from aRunLoop: Foundation.RunLoop, forMode mode: RunLoop.Mode) {
        remove(from: RunLoop.counterpart(of: aRunLoop), forMode: mode)
    }

    /// The queue on which the delegate is told, in place of run loops; nil, as at first: none.
    ///
    /// Setting one takes the stream off all run loops (rule ST-21). The queue has to be serial, or to have
    /// this stream alone use it one block at a time; the stream is used from there only. The counterpart of
    /// `CFWriteStreamSetDispatchQueue`.
    public var dispatchQueue: DispatchQueue? {
        get { core.queue }
        set { enter(newValue) }
    }

    // MARK: - Opening and closing

    /// Opens the stream, once. Files and memory are open when this returns; a socket opens in a scheduled
    /// mode, or in the first write. The delegate is never called in here (rules ST-2, ST-3).
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

    /// Ends the flow of bytes and takes the stream out of all loops; it cannot be opened again (rule ST-5).
    ///
    /// Of a connection whose input is open the peer is told that no more will come, and is still read.
    open override func close() {
        if leaveAndClose(), backend == nil { super.close() }
    }

    /// What the stream does; `.writing` is never seen, since a write is over when it returns (rule ST-1).
    open override var streamStatus: Status { statusAskedFor }
    /// Why the stream is in the state of error; otherwise nil (rule ST-6).
    open override var streamError: (any Error)? { core.state.error }

    // MARK: - Bytes

    /// Writes at most `len` bytes, and waits for the first one to be taken if there is no space (rule ST-24).
    ///
    /// - Returns: How many were taken, of a file or growing memory all; 0 if a fixed buffer is full; -1 on
    ///   failure, see `streamError`, and if the stream is not open.
    open override func write(_ buffer: UnsafePointer<UInt8>, maxLength len: Int) -> Int {
        guard len > 0 else { return core.mayTransfer ? 0 : -1 }
        let bytes = UnsafeRawBufferPointer(start: buffer, count: len)
        switch destination {
        // A connection asks for the status itself.
        case .socket(let pair): return pair.write(bytes)
        case _ where !core.mayTransfer: return -1
        case .bound(let pair): return pair.write(bytes)
        case .pipe(let pipe): return pipe.write(bytes)
        case .buffer(let buffer): return fill(buffer, with: bytes)
        case .foundation, .file: return writeAll(buffer, len)
        }
    }

    /// Writes the bytes of several pieces, in order, as if they lay behind one another: a head and a body in
    /// one call of the kernel's and, where they fit, in one segment, without being copied together.
    ///
    /// - Returns: As of `write(_:maxLength:)`, with the pieces counted as one.
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

    /// Whether `write` would answer without waiting (rule ST-26).
    ///
    /// It never waits itself. A client that polls without a schedule drives the connection by asking, here or for
    /// the status.
    open override var hasSpaceAvailable: Bool {
        if case .socket = destination, core.isReady { return true }
        goOnOpening()
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
        // Rule ST-31: whether to append is settled by opening.
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
