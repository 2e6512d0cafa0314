public import Dispatch
public import RondoCore

/// Reads bytes from a file, from memory, from a `FileHandle`, or from what makes streams itself (a host, a bound
/// pair), and tells its delegate when there are some.
///
/// The counterpart of Apple's `NSInputStream`. It stands in for Foundation's class of that name, whose
/// schedule delivers no event on Linux: with `import Rondo` this one is the `InputStream`, and as a subclass
/// it is accepted wherever Foundation's is.
///
/// - Note: Not Sendable. A scheduled stream is used on the thread of its loop only (rule ST-20).
open class InputStream: Foundation.InputStream, StreamDelegate {
    private enum Origin {
        /// Foundation's own, of that path. (A `String` would make every stream a size class larger.)
        case file(NSString)
        case memory(MemoryBytes)
        // One case each, not one for the protocol: the object is a size class smaller by that.
        case socket(SocketPair)
        case bound(BoundPair)
        case pipe(PipeEnd)
        case handle(HandleInput)
    }

    let core: StreamCore
    private let origin: Origin

    /// A stream that reads a copy of `data`.
    public override init(data: Data) {
        core = StreamCore(.input)
        origin = .memory(MemoryBytes(data))
        super.init(data: data)
        core.attach(self)
    }

    /// A stream that reads a file. Whether it exists is found out by `open()` (rule ST-4). A FIFO is an error there, since
    /// to open and to read it waits for another program: open it by a `FileHandle`, and read that (`init(_:)`).
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

    /// A stream that reads a pipe, whose descriptor it owns from here on.
    ///
    /// - Parameters:
    ///   - name: What traces call it.
    ///   - ended: Called once, on any thread and perhaps under a lock of the stream: its end or an error has been met, or it
    ///     was closed.
    package convenience init(
        pipe descriptor: Int32, name: String, ended: (@Sendable () -> Void)? = nil
    ) {
        let core = StreamCore(.input)
        self.init(core, .pipe(PipeEnd(descriptor, core, .input, name: name, ended: ended)))
    }

    /// A stream that reads what `handle` has open: a pipe, a FIFO, a connected socket, a terminal, a device or a file
    /// (rule FH-15).
    ///
    /// It is open when `open()` returns, unless the handle cannot be read: a closed one is EBADF, a socket that listens
    /// or is not connected ENOTCONN or EINVAL, one of datagrams EPROTOTYPE; a folder is EISDIR soon after. While no mode
    /// of the stream runs nothing is read, and the other end of a pipe or socket waits. A file is read from the handle's
    /// offset on, which moves with what the stream gives (`.fileCurrentOffsetKey`), in pieces of at most 256 KiB, off the
    /// loop's thread.
    ///
    /// The handle stays the program's: the stream retains it until it is closed, has ended or has failed, and never closes
    /// it. The flags of the open file, which other processes may share, are left alone. What something else reads of the
    /// handle meanwhile, by a handler or a call in the background, the stream does not get. Closing the handle ends the
    /// stream with EBADF: at once by Rondo's `close()`, and in a file that imports Foundation as well when something comes
    /// for it or the stream is read.
    public convenience init(_ handle: FileHandle) {
        let core = StreamCore(.input)
        self.init(core, .handle(HandleInput(handle, core)))
    }

    private init(_ core: StreamCore, _ origin: Origin) {
        self.core = core
        self.origin = origin
        // Foundation's own stream is made and never used.
        super.init(data: Data())
        core.attach(self)
    }

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
    /// `CFReadStreamSetDispatchQueue`.
    public var dispatchQueue: DispatchQueue? {
        get { core.queue }
        set { enter(newValue) }
    }

    // MARK: - Opening and closing

    /// Opens the stream, once. Files and memory are open when this returns; a socket opens in a scheduled
    /// mode, or in the first read. The delegate is never called in here (rules ST-2, ST-3).
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

    /// Ends the flow of bytes and takes the stream out of all loops; it cannot be opened again (rule ST-5).
    open override func close() {
        if leaveAndClose(), backend == nil { super.close() }
    }

    /// What the stream does; `.reading` is never seen, since a read is over when it returns (rule ST-1).
    open override var streamStatus: Status { statusAskedFor }
    /// Why the stream is in the state of error; otherwise nil (rule ST-6).
    open override var streamError: (any Error)? { core.state.error }

    // MARK: - Bytes

    /// Reads at most `len` bytes, and waits for the first one if there is none yet (rule ST-24).
    ///
    /// - Returns: How many were read; 0 at the end; -1 on failure, see `streamError`, and if the stream is
    ///   not open.
    open override func read(_ buffer: UnsafeMutablePointer<UInt8>, maxLength len: Int) -> Int {
        guard len > 0 else { return core.mayTransfer ? 0 : -1 }
        let room = UnsafeMutableRawBufferPointer(start: buffer, count: len)
        switch origin {
        // A connection asks for the status itself.
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

    /// Gives the bytes that are at hand where they lie, without a copy; it never waits (rule ST-27).
    ///
    /// They count as read, and stay valid until the next operation on the stream.
    /// - Returns: False where there are none, and for files, pipes and handles: read them.
    open override func getBuffer(
        _ buffer: UnsafeMutablePointer<UnsafeMutablePointer<UInt8>?>, length len: UnsafeMutablePointer<Int>
    ) -> Bool {
        guard let found = lend(atMost: .max) else { return false }
        buffer.pointee = found.baseAddress
        len.pointee = found.count
        return true
    }

    /// `getBuffer` with a limit, 1 byte or more, on what counts as read.
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

    /// Whether `read` would answer without waiting; of a file, only trying can tell (rule ST-26).
    ///
    /// It never waits itself. A client that polls without a schedule drives the connection by asking, here or for
    /// the status.
    open override var hasBytesAvailable: Bool {
        goOnOpening()
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
