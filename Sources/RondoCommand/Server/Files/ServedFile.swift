import Rondo

/// A regular file that is being served. It is closed with the last answer that sends it.
final class ServedFile: Sendable {
    let size: Int
    let modified: Date
    /// Made from the node's number, size and times of change: the content does not change without one of
    /// them.
    let tag: String
    let type: String
    private let descriptor: Int32

    /// Takes ownership of `descriptor`.
    init(_ descriptor: Int32, _ status: stat, type: String) {
        self.descriptor = descriptor
        self.type = type
        size = Int(status.st_size)
        modified = Date(
            timeIntervalSince1970: Double(status.st_mtim.tv_sec) + Double(status.st_mtim.tv_nsec) / 1e9)
        func digits(_ number: some BinaryInteger) -> String { String(number, radix: 36) }
        func digits(_ time: timespec) -> String { digits(time.tv_sec) + "." + digits(time.tv_nsec) }
        tag = [
            digits(status.st_ino), digits(status.st_size), digits(status.st_mtim), digits(status.st_ctim),
        ].joined(separator: "-")
    }

    deinit { close(descriptor) }

    /// Reads from `offset` on. Returns the number of bytes: 0 at the end of the file, or if it cannot be
    /// read.
    func read(into buffer: UnsafeMutableRawBufferPointer, from offset: Int) -> Int {
        while true {
            let count = pread(descriptor, buffer.baseAddress, buffer.count, off_t(offset))
            if count >= 0 || errno != EINTR { return max(0, count) }
        }
    }
}

/// The body of an answer: texts, parts of files and made-up bytes in sequence.
struct ServedBody {
    enum Part {
        case text([UInt8])
        case file(ServedFile, Range<Int>)
        case madeUp(Range<Int>)

        var count: Int {
            switch self {
            case .text(let bytes): bytes.count
            case .file(_, let range), .madeUp(let range): range.count
            }
        }
    }

    private var parts: ArraySlice<Part>
    /// The number of bytes of the first part that were read.
    private var offset = 0

    init(_ parts: [Part]) {
        self.parts = parts[...]
    }

    init(_ text: String) {
        self.init([.text(Array(text.utf8))])
    }

    /// The number of bytes that are left.
    var count: Int { parts.reduce(-offset) { $0 + $1.count } }

    /// Reads the next bytes, as many as fit into `buffer`.
    /// - Returns: The number of bytes. It is smaller than the buffer only at the end, and if a file has
    ///   become shorter.
    mutating func read(into buffer: UnsafeMutableRawBufferPointer) -> Int {
        var filled = 0
        while let part = parts.first, filled < buffer.count {
            let wanted = min(buffer.count - filled, part.count - offset)
            let space = UnsafeMutableRawBufferPointer(rebasing: buffer[filled..<filled + wanted])
            var read = wanted
            switch part {
            case .text(let bytes): space.copyBytes(from: bytes[offset..<offset + wanted])
            case .madeUp(let range): MadeUpBytes.fill(space, from: range.lowerBound + offset)
            case .file(let file, let range):
                read = wanted == 0 ? 0 : file.read(into: space, from: range.lowerBound + offset)
            }
            filled += read
            offset += read
            if offset == part.count {
                parts.removeFirst()
                offset = 0
            } else if read == 0 {
                return filled
            }
        }
        return filled
    }
}
