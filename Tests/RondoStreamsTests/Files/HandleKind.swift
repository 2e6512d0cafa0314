import RondoCore
import RondoStreams
import RondoTestSupport
import Testing

/// The kinds of files for which a `FileHandle` can wait. The test has the other end.
enum HandleKind: String, CaseIterable, Sendable {
    case pipe, fifo, unixSocket, tcpSocket, terminal

    /// A handle that reads, and the other end.
    func make() throws -> (FileHandle, HandlePeer) {
        switch self {
        case .pipe:
            let pipe = Pipe()
            let writing = fcntl(pipe.fileHandleForWriting.fileDescriptor, F_DUPFD_CLOEXEC, 0)
            try pipe.fileHandleForWriting.close()
            return (pipe.fileHandleForReading, HandlePeer(writing))
        case .fifo:
            let path = temporaryPath()
            try #require(mkfifo(path, 0o600) == 0)
            defer { unlink(path) }
            // Opened without waiting for one another, and made to wait then, as they are elsewhere.
            let reading = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC)
            _ = fcntl(reading, F_SETFL, 0)
            let writing = open(path, O_WRONLY | O_CLOEXEC)
            return (FileHandle(fileDescriptor: reading, closeOnDealloc: true), HandlePeer(writing))
        case .unixSocket:
            let (ours, theirs) = try PlainSocket.pair()
            return (FileHandle(fileDescriptor: ours, closeOnDealloc: true), HandlePeer(theirs))
        case .tcpSocket:
            let listener = try TestListener()
            let ours = try PlainSocket.connected(to: Int(listener.port))
            let theirs = accept(listener.descriptor, nil, nil)
            return (FileHandle(fileDescriptor: ours, closeOnDealloc: true), HandlePeer(theirs))
        case .terminal:
            let (ours, theirs) = try Self.terminal()
            return (FileHandle(fileDescriptor: ours, closeOnDealloc: true), HandlePeer(theirs))
        }
    }

    /// Both sides of a terminal that changes nothing of what goes through it.
    private static func terminal() throws -> (Int32, Int32) {
        let theirs = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC)
        // TIOCSPTLCK and TIOCGPTN.
        var (isLocked, number): (Int32, Int32) = (0, -1)
        try #require(ioctl(theirs, 0x4004_5431, &isLocked) == 0 && ioctl(theirs, 0x8004_5430, &number) == 0)
        let ours = open("/dev/pts/\(number)", O_RDWR | O_NOCTTY | O_CLOEXEC)
        try #require(ours >= 0)
        var settings = termios()
        tcgetattr(ours, &settings)
        cfmakeraw(&settings)
        tcsetattr(ours, TCSANOW, &settings)
        return (ours, theirs)
    }
}

/// The other end, which is closed with this object at the latest.
final class HandlePeer: @unchecked Sendable {
    // `@unchecked Sendable`: used by one thread at a time.
    private(set) var descriptor: Int32

    init(_ descriptor: Int32) { self.descriptor = descriptor }

    deinit { end() }

    /// Writes a few bytes, which fit.
    func write(_ text: String) {
        let bytes = Array(text.utf8)
        #expect(Foundation.write(descriptor, bytes, bytes.count) == bytes.count)
    }

    /// Ends a TCP connection by a RST.
    func reset() {
        PlainSocket.reset(descriptor)
        descriptor = -1
    }

    func end() {
        if descriptor >= 0 { close(descriptor) }
        descriptor = -1
    }
}

extension FileHandle {
    /// The flags of the open file: its other descriptors, in other processes too, have the same.
    var flags: Int32 { fcntl(fileDescriptor, F_GETFL) }

    /// The number of bytes that wait to be read.
    var waitingBytes: Int32 {
        var count: Int32 = -1
        _ = ioctl(fileDescriptor, UInt(FIONREAD), &count)
        return count
    }
}

extension InputStream {
    /// Reads once, as text; the number where there is none.
    func text() -> String {
        let (count, bytes) = bytes()
        return count > 0 ? String(decoding: bytes, as: UTF8.self) : "\(count)"
    }
}

/// A stream of a handle, scheduled and opened.
func openStream(
    _ handle: FileHandle, in loop: RunLoop, _ mode: RunLoop.Mode = .default
) -> (InputStream, StreamNotes) {
    let stream = InputStream(handle)
    let notes = StreamNotes()
    stream.delegate = notes
    stream.schedule(in: loop, forMode: mode)
    stream.open()
    return (stream, notes)
}

/// A file that is removed already, opened for reading.
func openFile(_ content: [UInt8]) throws -> FileHandle {
    let path = temporaryPath()
    try Data(content).write(to: URL(fileURLWithPath: path))
    defer { unlink(path) }
    return try FileHandle(forReadingFrom: URL(fileURLWithPath: path))
}
