internal import RondoCore

/// What was read of a file ahead of the client, on a thread of its own, and where it stands.
///
/// A value, behind the lock of its owner. The handle's offset is moved when the client takes bytes and not when they are
/// read ahead: the handle and the stream always agree on what comes next, and a program that sets the offset in between
/// gets what is there.
struct FileAhead {
    /// The most bytes that are read ahead.
    static let maximumCount = 1 << 18

    /// What the thread has found: bytes, none at the end of the file.
    struct Piece {
        /// Of the first byte that was not taken; -1: the file has no offset.
        fileprivate var offset: off_t
        fileprivate var bytes: ArraySlice<UInt8>
    }

    private var piece: Piece?
    /// A thread reads the next piece.
    private(set) var isReading = false

    /// Something was read, or the end was met: a read would not wait.
    var isReady: Bool { piece != nil }

    /// - Returns: Whether a piece has to be read now.
    mutating func startReading() -> Bool {
        guard piece == nil, !isReading else { return false }
        isReading = true
        return true
    }

    /// Takes over what the thread has read.
    mutating func endReading(_ piece: Piece?) {
        isReading = false
        self.piece = piece
    }

    /// Gives bytes that were read ahead, and moves the handle's offset behind them.
    mutating func take(
        _ buffer: UnsafeMutableRawBufferPointer, of file: HandleDescriptor
    ) -> HandleDescriptor.Outcome {
        guard var piece else { return .nothing }
        // The program has moved the offset, or read by other means.
        if piece.offset >= 0, lseek(file.number, 0, SEEK_CUR) != piece.offset {
            self.piece = nil
            return .nothing
        }
        guard !piece.bytes.isEmpty else { return .end }
        let count = min(buffer.count, piece.bytes.count)
        buffer.copyBytes(from: piece.bytes.prefix(count))
        piece.bytes = piece.bytes.dropFirst(count)
        if piece.offset >= 0 {
            piece.offset += off_t(count)
            guard lseek(file.number, piece.offset, SEEK_SET) >= 0 else { return .failed(errno) }
        }
        self.piece = piece.bytes.isEmpty ? nil : piece
        return .bytes(count)
    }

    /// Reads a piece at the handle's offset, and waits for the disk as long as that takes.
    static func read(_ file: HandleDescriptor) throws(SystemError) -> Piece {
        let offset = lseek(file.number, 0, SEEK_CUR)
        if offset < 0, errno != ESPIPE { throw SystemError("lseek", code: errno) }
        var buffer = [UInt8](repeating: 0, count: maximumCount)
        let count = try systemCall("read") {
            offset < 0
                ? Glibc.read(file.number, &buffer, buffer.count)
                : pread(file.number, &buffer, buffer.count, offset)
        }
        // A short piece does not hold the room of a long one.
        let bytes = count < maximumCount / 2 ? Array(buffer.prefix(count))[...] : buffer.prefix(count)
        return Piece(offset: offset, bytes: bytes)
    }
}
