public import RondoCore

/// Reads bytes from a file, from memory, or from what makes streams itself (a host, a bound pair), and tells
/// its delegate when there are some.
///
/// The counterpart of Apple's `NSInputStream`. It stands in for Foundation's class of that name, whose
/// schedule delivers no event on Linux: with `import Rondo` this one is the `InputStream`, and as a subclass
/// it is accepted wherever Foundation's is.
///
/// - Note: Not Sendable. A scheduled stream is used on the thread of its loop only (rule ST-20).
open class InputStream: Foundation.InputStream, StreamDelegate {
    let core: StreamCore
    /// Nil: Foundation's own file or memory, which never makes anybody wait.
    private let backend: (any StreamBackend)?

    /// A stream that reads a copy of `data`.
    public override init(data: Data) {
        core = StreamCore(.input)
        backend = nil
        super.init(data: data)
    }

    /// A stream that reads a file. Whether it exists is found out by `open()` (rule ST-4).
    ///
    /// - Returns: nil if `url` does not name a file.
    public override init?(url: URL) {
        guard url.isFileURL else { return nil }
        core = StreamCore(.input)
        backend = nil
        super.init(url: url)
    }

    init(_ core: StreamCore, backend: any StreamBackend) {
        self.core = core
        self.backend = backend
        super.init(data: Data())
    }

    deinit {
        core.invalidate()
        backend?.close(.input)
    }

    // MARK: - Delegate

    /// Whom to tell; held weakly. By default, and after setting nil, the stream itself (rule ST-9).
    open override weak var delegate: (any StreamDelegate)? {
        get { super.delegate ?? self }
        set { super.delegate = newValue }
    }

    /// What the stream does as its own delegate: nothing, unless a subclass does something.
    open func stream(_ aStream: Foundation.Stream, handle eventCode: Foundation.Stream.Event) {}

    // MARK: - Schedule

    /// Tells the delegate of this stream's events on the thread of `aRunLoop`, while it runs in `mode`.
    ///
    /// In several modes, also by `.common`, and in several loops: each event is delivered once (rule ST-18).
    open func schedule(in aRunLoop: RunLoop, forMode mode: RunLoop.Mode) {
        guard core.schedule(in: aRunLoop, forMode: mode, StreamCore.Way(stream: self)) else { return }
        backend?.schedule(in: aRunLoop, forMode: mode)
    }

    open func remove(from aRunLoop: RunLoop, forMode mode: RunLoop.Mode) {
        guard core.remove(from: aRunLoop, forMode: mode) else { return }
        backend?.remove(from: aRunLoop, forMode: mode)
    }

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

    // MARK: - Opening and closing

    /// Opens the stream, once. Files and memory are open when this returns; a socket opens in a scheduled
    /// mode, or in the first read. The delegate is never called in here (rules ST-2, ST-3).
    open override func open() {
        guard core.update({ $0.open() }) else { return }
        if let backend { return backend.open(.input) }
        super.open()
        if super.streamStatus == .error { return follow() }
        let isEmpty = !super.hasBytesAvailable
        core.opened(isReady: !isEmpty)
        if isEmpty { core.update { $0.ended() } }
    }

    /// Ends the flow of bytes and takes the stream out of all loops; it cannot be opened again (rule ST-5).
    open override func close() {
        guard let places = core.close() else { return }
        guard let backend else { return super.close() }
        for place in places { backend.remove(from: place.loop, forMode: place.mode) }
        backend.close(.input)
    }

    open override var streamStatus: Status { core.state.status }
    open override var streamError: (any Error)? { core.state.error }

    // MARK: - Bytes

    /// Reads at most `len` bytes, and waits for the first one if there is none yet (rule ST-24).
    ///
    /// - Returns: How many were read; 0 at the end; -1 on failure, see `streamError`, and if the stream is
    ///   not open.
    open override func read(_ buffer: UnsafeMutablePointer<UInt8>, maxLength len: Int) -> Int {
        guard core.state.mayTransfer else { return -1 }
        guard len > 0 else { return 0 }
        if let backend { return backend.read(UnsafeMutableRawBufferPointer(start: buffer, count: len)) }
        let count = super.read(buffer, maxLength: len)
        follow()
        return count
    }

    /// Refuses, as it may (rule ST-27): Foundation's own gives no bytes on Linux, and sockets lend none.
    open override func getBuffer(
        _ buffer: UnsafeMutablePointer<UnsafeMutablePointer<UInt8>?>, length len: UnsafeMutablePointer<Int>
    ) -> Bool {
        false
    }

    /// Whether `read` would answer without waiting; of a file, only trying can tell.
    open override var hasBytesAvailable: Bool {
        guard core.state.status == .open else { return false }
        return backend?.hasBytesAvailable ?? super.hasBytesAvailable
    }

    /// Takes over what has become of Foundation's stream.
    private func follow() {
        let status = super.streamStatus
        // Foundation's own traps on Linux when it is asked for an error that is not there.
        let error = status == .error ? super.streamError : nil
        core.update { state in
            switch status {
            case .atEnd: state.ended()
            case .error: state.failed(error as NSError? ?? .unexplained)
            default: state.used(isReady: true)
            }
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
