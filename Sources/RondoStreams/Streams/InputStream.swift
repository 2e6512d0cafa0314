public import Dispatch
public import RondoCore

/// Reads bytes from a file, from memory, from a `FileHandle`, from a socket or from a bound pair, and tells
/// its delegate when bytes are available.
///
/// The counterpart of Apple's `NSInputStream`. It replaces Foundation's class of that name, whose schedule
/// delivers no events on Linux: with `import Rondo`, `InputStream` means this class, and as a subclass it is
/// accepted wherever Foundation's is.
///
/// - Note: Not Sendable. A scheduled stream is used on the thread of its loop only (rule ST-20).
open class InputStream: Foundation.InputStream, StreamDelegate {
    private enum Origin {
        /// Foundation's own stream for this path. (A `String` would make every stream a size class larger.)
        case file(NSString)
        case memory(MemoryBytes)
        // One case each instead of one for the protocol: that makes the object a size class smaller.
        case socket(SocketPair)
        case bound(BoundPair)
        case pipe(PipeEnd)
        case handle(HandleInput)
    }

    let core: StreamCore
    private let origin: Origin

    /// Makes a stream that reads a copy of `data`.
    public override init(data: Data) {
        core = StreamCore(.input)
        origin = .memory(MemoryBytes(data))
        super.init(data: data)
        core.attach(self)
    }

    /// Makes a stream that reads a file. `open()` fails if the file does not exist (rule ST-4). It also fails
    /// for a FIFO, because opening and reading one waits for another program: open a FIFO by a `FileHandle`,
    /// and read that (`init(_:)`).
    ///
    /// - Returns: nil if `url` does not name a file.
    public override init?(url: URL) {
        guard url.isFileURL else { return nil }
        core = StreamCore(.input)
        origin = .file(url.path as NSString)
        super.init(url: url)
        core.attach(self)
    }

    convenience init(_ pair: SocketPair) { self.init(pair.input, .socket(pair)) }

    convenience init(_ core: StreamCore, _ pair: BoundPair) { self.init(core, .bound(pair)) }

    /// Makes a stream that reads a pipe and owns its descriptor from here on.
    ///
    /// - Parameters:
    ///   - name: The stream's name in traces.
    ///   - ended: Called once, on any thread and under no lock of the stream, when the stream has met its end
    ///     or an error, or was closed.
    package convenience init(
        pipe descriptor: Int32, name: String, ended: (@Sendable () -> Void)? = nil
    ) {
        let core = StreamCore(.input)
        self.init(core, .pipe(PipeEnd(descriptor, core, .input, name: name, ended: ended)))
    }

    /// Makes a stream that reads the open file of `handle`: a pipe, a FIFO, a connected socket, a terminal, a
    /// device or a file (rule FH-15).
    ///
    /// The stream is open when `open()` returns, unless the handle cannot be read: a closed handle fails with
    /// EBADF, a listening or unconnected socket with ENOTCONN or EINVAL, a datagram socket with EPROTOTYPE,
    /// and a folder, soon after, with EISDIR. While no mode of the stream runs, nothing is read, and the
    /// other end of a pipe or socket waits. A file is read from the handle's offset on, in pieces of at most
    /// 256 KiB, off the loop's thread; the offset advances with the bytes that the stream returns
    /// (`.fileCurrentOffsetKey`).
    ///
    /// The program keeps the handle: the stream retains it until it is closed, has ended or has failed, and
    /// never closes it. The flags of the open file, which other processes may share, are not changed. Bytes
    /// that something else reads from the handle, by a handler or a call in the background, do not reach the
    /// stream. Closing the handle ends the stream with EBADF: at once by Rondo's `close()`; by Foundation's,
    /// in a file that imports Foundation, when bytes arrive or the stream is read.
    public convenience init(_ handle: FileHandle) {
        let core = StreamCore(.input)
        self.init(core, .handle(HandleInput(handle, core)))
    }

    private init(_ core: StreamCore, _ origin: Origin) {
        self.core = core
        self.origin = origin
        // Foundation's own part is initialized and never used.
        super.init(data: Data())
        core.attach(self)
    }

    deinit {
        releaseRegistrations()
        (super.delegate as? any RetainedDelegate)?.end()
    }

    // MARK: - Delegate

    /// The object that receives the events; held weakly. By default, and after setting nil, it is the stream
    /// itself. One that is set while bytes are available is told of them, unless another delegate was told of
    /// them before (rule ST-9).
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
    /// counterpart of `CFReadStreamSetDispatchQueue`.
    public var dispatchQueue: DispatchQueue? {
        get { core.queue }
        set { enter(newValue) }
    }

    // MARK: - Opening and closing

    /// Opens the stream; it can be opened once. Files and memory are open when this returns; a socket opens
    /// in a scheduled mode, or in the first read. The delegate is never called in here (rules ST-2, ST-3).
    open override func open() {
        guard core.update({ $0.open() }) else { return }
        if let backend { return backend.open(.input) }
        if case .file(let path) = origin, let error = NSError.ofFIFO(path as String) {
            return core.update { $0.failed(error) }
        }
        super.open()
        if super.streamStatus == .error { return follow(.error, super.streamError) }
        let isEmpty =
            if case .memory(let bytes) = origin { bytes.rest == 0 } else { !super.hasBytesAvailable }
        core.opened(isReady: !isEmpty)
        if isEmpty { core.update { $0.ended() } }
    }

    /// Closes the stream and takes it out of all loops; it cannot be opened again (rule ST-5).
    open override func close() {
        if leaveAndClose(), backend == nil { super.close() }
    }

    /// The state of the stream. `.reading` is never seen, because a read is over when it returns (rule ST-1).
    open override var streamStatus: Status { statusAskedFor }
    /// The error of a stream in the state `.error`; otherwise nil (rule ST-6).
    open override var streamError: (any Error)? { core.state.error }

    // MARK: - Bytes

    /// Reads at most `len` bytes, and waits for the first one if there is none yet (rule ST-24).
    ///
    /// - Returns: The number of bytes read; 0 at the end; -1 on failure, see `streamError`, and if the stream
    ///   is not open.
    open override func read(_ buffer: UnsafeMutablePointer<UInt8>, maxLength len: Int) -> Int {
        guard len > 0 else { return core.mayTransfer ? 0 : -1 }
        let room = UnsafeMutableRawBufferPointer(start: buffer, count: len)
        switch origin {
        // A connection checks the status itself.
        case .socket(let pair): return pair.read(room)
        case _ where !core.mayTransfer: return -1
        case .bound(let pair): return pair.read(room)
        case .pipe(let pipe): return pipe.read(room)
        case .handle(let handle): return handle.read(room)
        case .memory(let bytes):
            let count = bytes.read(room)
            memoryWasRead(bytes)
            return count
        case .file:
            let count = super.read(buffer, maxLength: len)
            follow(super.streamStatus, super.streamError)
            return count
        }
    }

    /// Returns a pointer to the bytes that are available, without copying them; it never waits (rule ST-27).
    ///
    /// The bytes count as read, and stay valid until the next operation on the stream.
    /// - Returns: False if there are none, and for files, pipes and handles, which must be read.
    open override func getBuffer(
        _ buffer: UnsafeMutablePointer<UnsafeMutablePointer<UInt8>?>, length len: UnsafeMutablePointer<Int>
    ) -> Bool {
        guard let found = lend(atMost: .max) else { return false }
        buffer.pointee = found.baseAddress
        len.pointee = found.count
        return true
    }

    /// As `getBuffer`, but at most `limit` bytes, 1 or more, count as read.
    package func lend(atMost limit: Int) -> UnsafeMutableBufferPointer<UInt8>? {
        guard core.status == .open else { return nil }
        switch origin {
        case .socket(let pair): return pair.lend(atMost: limit)
        case .bound(let pair): return pair.lend(atMost: limit)
        case .pipe, .handle: return nil
        case .memory(let bytes):
            let found = bytes.lend(atMost: limit)
            if found != nil { memoryWasRead(bytes) }
            return found
        case .file: return nil
        }
    }

    private func memoryWasRead(_ bytes: MemoryBytes) {
        core.update { state in
            if bytes.rest == 0 { state.ended() } else { state.used(isReady: true) }
        }
    }

    /// Whether `read` would return without waiting; for a file, only a read can tell (rule ST-26).
    ///
    /// This property never waits. A client that polls without a schedule drives the connection by reading
    /// this property or the status.
    open override var hasBytesAvailable: Bool {
        continueOpening()
        guard core.status == .open else { return false }
        switch origin {
        case .socket(let pair): return pair.hasBytesAvailable
        case .bound(let pair): return pair.hasBytesAvailable
        case .pipe(let pipe): return pipe.hasBytesAvailable
        case .handle(let handle): return handle.hasBytesAvailable
        case .memory(let bytes): return bytes.rest > 0
        case .file: return super.hasBytesAvailable
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
        return super.setProperty(property, forKey: key)
    }
}

extension InputStream: DrivenStream {
    var direction: StreamState.Direction { .input }

    var backend: (any StreamBackend)? {
        switch origin {
        case .socket(let pair): pair
        case .bound(let pair): pair
        case .pipe(let pipe): pipe
        case .handle(let handle): handle
        case .file, .memory: nil
        }
    }
}
