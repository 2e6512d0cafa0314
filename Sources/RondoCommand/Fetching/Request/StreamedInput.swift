import Rondo
import RondoMutex

/// A body whose length is not known: standard input, or a pipe or device that a path names.
///
/// Its bytes can be sent once; those of a regular file that is standard input any number of times.
final class StreamedInput: Sendable {
    static let standard = StreamedInput()

    /// For messages.
    let name: String
    private let handle: FileHandle
    /// Where the body begins in the file that is standard input; nil if that is no regular file.
    private let start: off_t?
    private let wasSent = Mutex(false)

    private init() {
        name = "standard input"
        handle = .standardInput
        var status = stat()
        let isFile = fstat(STDIN_FILENO, &status) == 0 && status.st_mode & S_IFMT == S_IFREG
        start = isFile ? lseek(STDIN_FILENO, 0, SEEK_CUR) : nil
    }

    /// Opens the file, without waiting for a pipe's other end.
    init(_ path: String) throws(FetchFailure) {
        name = path
        start = nil
        let descriptor = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC)
        guard descriptor >= 0 else {
            throw FetchFailure(
                .cannotOpenFile, "-T: cannot read \(path): \(String(cString: strerror(errno)))",
                status: .cannotRead)
        }
        handle = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
    }

    /// False if the bytes were sent already, and cannot be read again.
    var canBeSent: Bool { start != nil || !wasSent.withLock { $0 } }

    /// Makes a stream of the whole, unopened. Waiting for bytes of a pipe or a terminal does not block the
    /// run loop.
    func makeStream() throws(FetchFailure) -> Foundation.InputStream {
        guard canBeSent else {
            throw FetchFailure(
                .requestBodyStreamExhausted,
                "the body from \(name) was read already, and cannot be sent again (-T FILE can be)",
                status: .cannotSendAgain)
        }
        wasSent.withLock { $0 = true }
        if let start { return StandardInputFile(from: start) }
        return InputStream(handle)
    }

    /// Nothing of the last stream was read.
    func giveBack() { wasSent.withLock { $0 = false } }
}

/// Reads the regular file that is standard input, by the descriptor that the command was started with:
/// another one might begin at another place, or could not be opened. Several streams do not disturb one
/// another.
private final class StandardInputFile: Foundation.InputStream {
    private var position: off_t
    private var status = Status.notOpen
    private var failure: (any Error)?

    init(from start: off_t) {
        position = start
        super.init(data: Data())
    }

    override var streamStatus: Status { status }
    override var streamError: (any Error)? { failure }
    override var hasBytesAvailable: Bool { status == .open }

    override func open() { if status == .notOpen { status = .open } }
    override func close() { status = .closed }

    override func getBuffer(
        _ buffer: UnsafeMutablePointer<UnsafeMutablePointer<UInt8>?>, length: UnsafeMutablePointer<Int>
    ) -> Bool { false }

    override func read(_ buffer: UnsafeMutablePointer<UInt8>, maxLength: Int) -> Int {
        guard status == .open else { return status == .error ? -1 : 0 }
        let count = pread(STDIN_FILENO, buffer, maxLength, position)
        switch count {
        case 1...: position += off_t(count)
        case 0: status = .atEnd
        default:
            failure = NSError(domain: NSPOSIXErrorDomain, code: Int(errno))
            status = .error
        }
        return count
    }
}
