import Rondo

/// A regular file that is being served. It is closed with the last answer that sends it.
final class ServedFile: Sendable {
    let size: Int
    let modified: Date
    /// Of the node, its size and the times of its last changes: the content does not change without one of them.
    let tag: String
    let type: String
    private let descriptor: Int32

    /// Takes over `descriptor`.
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

    /// Reads from `offset` on. Returns how many bytes: 0 where the file ends, or cannot be read.
    func read(into buffer: UnsafeMutableRawBufferPointer, from offset: Int) -> Int {
        while true {
            let count = pread(descriptor, buffer.baseAddress, buffer.count, off_t(offset))
            if count >= 0 || errno != EINTR { return max(0, count) }
        }
    }
}

/// The body behind a head: texts, parts of files and made-up bytes, one after the other.
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
    /// How many bytes of the first part were read.
    private var offset = 0

    init(_ parts: [Part]) {
        self.parts = parts[...]
    }

    init(_ text: String) {
        self.init([.text(Array(text.utf8))])
    }

    /// How many bytes are left.
    var count: Int { parts.reduce(-offset) { $0 + $1.count } }

    /// Reads the next bytes, as many as there is space for.
    /// - Returns: Fewer only at the end, and where a file has become shorter than it was.
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
