import RondoCore
import RondoStreams
import RondoTestSupport
import Testing

typealias InputStream = RondoStreams.InputStream
typealias OutputStream = RondoStreams.OutputStream

/// Writes down what a stream tells it, and does what the test wants done then.
final class StreamNotes: StreamDelegate {
    private(set) var events: [String] = []
    var handler: ((Foundation.Stream, Foundation.Stream.Event) -> Void)?

    init(_ handler: ((Foundation.Stream, Foundation.Stream.Event) -> Void)? = nil) { self.handler = handler }

    func stream(_ aStream: Foundation.Stream, handle eventCode: Foundation.Stream.Event) {
        note(eventCode.word)
        handler?(aStream, eventCode)
    }

    func note(_ event: String) { events.append(event) }

    func count(of event: String) -> Int { events.count { $0 == event } }
}

extension Foundation.Stream.Event {
    var word: String {
        switch self {
        case .openCompleted: "open"
        case .hasBytesAvailable: "bytes"
        case .hasSpaceAvailable: "space"
        case .errorOccurred: "error"
        case .endEncountered: "end"
        default: "unknown \(rawValue)"
        }
    }
}

/// The results of a test's body, which the test compares on its own thread.
typealias Findings = [String]

/// Runs a test's body on a thread with a loop of its own; what it throws is its last finding.
func onStreamThread(_ body: @escaping @Sendable (RunLoop) throws -> Findings) throws -> Findings {
    try onLoopThread { loop in
        do { return try body(loop) } catch { return ["threw \(error)"] }
    }
}

extension RunLoop {
    /// Runs until something is the case; only a failure takes long.
    func run(inMode mode: RunLoop.Mode = .default, until isDone: () -> Bool) throws {
        let limit = Date(timeIntervalSinceNow: 30)
        while !isDone() {
            let ran = run(mode: mode, before: limit)
            if !ran || Date() > limit { throw PeerIsSilent() }
        }
    }

    /// A few passes that wait for nothing, after which what should not come has not come.
    func pass(inMode mode: RunLoop.Mode = .default) {
        for _ in 0..<8 { _ = run(mode: mode, before: .distantPast) }
    }
}

extension InputStream {
    /// Reads once.
    func bytes(_ capacity: Int = 65_536) -> (Int, [UInt8]) {
        var buffer = [UInt8](repeating: 0, count: capacity)
        let count = read(&buffer, maxLength: capacity)
        return (count, Array(buffer.prefix(max(0, count))))
    }

    /// Reads to the end, waiting as long as that takes; the last answer is 0 or -1.
    func allBytes(_ capacity: Int = 65_536) -> (Int, [UInt8]) {
        var all: [UInt8] = []
        while true {
            let (count, bytes) = bytes(capacity)
            if count <= 0 { return (count, all) }
            all += bytes
        }
    }
}

extension OutputStream {
    /// Writes until there is no space any more, and never waits: no piece is taken in full.
    func fill() {
        let piece = [UInt8](repeating: 7, count: 1 << 26)
        while hasSpaceAvailable, write(piece, maxLength: piece.count) > 0 {}
    }

    /// Writes everything, waiting as long as that takes.
    func writeAll(_ bytes: [UInt8]) -> Bool {
        var rest = bytes[...]
        while !rest.isEmpty {
            if writePart(of: &rest) <= 0 { return false }
        }
        return true
    }

    /// Writes once, and removes the bytes that were taken from `rest`, which is not empty.
    @discardableResult
    func writePart(of rest: inout ArraySlice<UInt8>) -> Int {
        let count = rest.withUnsafeBufferPointer { write($0.baseAddress!, maxLength: $0.count) }
        rest = rest.dropFirst(max(0, count))
        return count
    }
}

func pattern(_ count: Int) -> [UInt8] {
    (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) }
}

func temporaryPath() -> String { NSTemporaryDirectory() + "/rondo-stream-\(UUID().uuidString)" }

/// Both in the default mode of `loop`.
func scheduleAndOpen(
    _ input: InputStream, _ output: OutputStream, in loop: RunLoop, telling delegate: any StreamDelegate
) {
    input.delegate = delegate
    output.delegate = delegate
    input.schedule(in: loop, forMode: .default)
    output.schedule(in: loop, forMode: .default)
    input.open()
    output.open()
}

func streamsToHost(_ port: UInt16, host: String = "127.0.0.1") -> (InputStream, OutputStream) {
    var input: InputStream?
    var output: OutputStream?
    Foundation.Stream.getStreamsToHost(
        withName: host, port: Int(port), inputStream: &input, outputStream: &output)
    return (input!, output!)
}

/// Streams to this machine by TLS.
func securedStreams(_ port: UInt16) -> (InputStream, OutputStream) {
    let (input, output) = streamsToHost(port, host: "localhost")
    #expect(input.setProperty(TLSSettings.test as AnyObject, forKey: .tlsSettingsKey))
    return (input, output)
}

func streamsToUnixSocket(_ path: String) -> (InputStream, OutputStream) {
    var input: InputStream?
    var output: OutputStream?
    Foundation.Stream.getStreamsToUnixSocket(atPath: path, inputStream: &input, outputStream: &output)
    return (input!, output!)
}

func streamsOnSocket(_ descriptor: Int32) -> (InputStream, OutputStream) {
    var input: InputStream?
    var output: OutputStream?
    Foundation.Stream.getStreams(onSocket: descriptor, inputStream: &input, outputStream: &output)
    return (input!, output!)
}

/// Streams that close the socket with them.
func ownedStreamsOnSocket(_ descriptor: Int32) -> (InputStream, OutputStream) {
    let (input, output) = streamsOnSocket(descriptor)
    _ = input.setProperty(true as NSNumber, forKey: .shouldCloseNativeSocketKey)
    return (input, output)
}

/// The streams of a connection that a listener of ours has accepted on this thread's loop; `serve` is its
/// other end, on a thread of its own.
func acceptedStreams(_ serve: @escaping @Sendable (Int32) -> Void) throws -> StreamListener.Connection {
    let listener = try StreamListener(port: 0, host: "localhost")
    var connection: StreamListener.Connection?
    listener.onConnection = { connection = $0 }
    let mode = RunLoop.Mode("accepting")
    let loop = RunLoop.currentLoop()
    listener.schedule(in: loop, forMode: mode)
    PlainSocket.serve(try PlainSocket.connected(to: listener.port), serve)
    try loop.run(inMode: mode) { connection != nil }
    listener.close()
    return connection!
}

func boundStreams(_ size: Int) -> (InputStream, OutputStream) {
    var input: InputStream?
    var output: OutputStream?
    Foundation.Stream.getBoundStreams(withBufferSize: size, inputStream: &input, outputStream: &output)
    return (input!, output!)
}
