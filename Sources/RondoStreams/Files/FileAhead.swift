internal import RondoCore

/// Bytes of a file that a thread has read ahead of the client, and their offset.
///
/// A value, protected by its owner's lock. The handle's offset moves when the client takes bytes, not when
/// they are read ahead: the handle and the stream always agree on the next byte, and a program that changes
/// the offset in between gets the bytes at the new offset.
struct FileAhead {
    /// The most bytes that are read ahead.
    static let maximumCount = 1 << 18

    /// The result of one read by the thread: bytes; none means the end of the file.
    struct Piece {
        /// The offset of the first byte that was not taken; -1: the file has no offset.
        fileprivate var offset: off_t
        fileprivate var bytes: ArraySlice<UInt8>
    }

    private var piece: Piece?
    /// True while a thread reads the next piece.
    private(set) var isReading = false

    /// True if bytes were read or the end was met: a read would not wait.
    var isReady: Bool { piece != nil }

    /// - Returns: Whether the caller must read a piece now.
    mutating func startReading() -> Bool {
        guard piece == nil, !isReading else { return false }
        isReading = true
        return true
    }

    /// Stores the piece that the thread has read.
    mutating func endReading(_ piece: Piece?) {
        isReading = false
        self.piece = piece
    }

    /// Copies bytes that were read ahead, and moves the handle's offset behind them.
    mutating func take(
        _ buffer: UnsafeMutableRawBufferPointer, of file: HandleDescriptor
    ) -> HandleDescriptor.Outcome {
        guard var piece else { return .nothing }
        // The program has moved the offset, or has read by other means.
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

    /// Reads a piece at the handle's offset; waits for the disk if necessary.
    static func read(_ file: HandleDescriptor) throws(SystemError) -> Piece {
        let offset = lseek(file.number, 0, SEEK_CUR)
        if offset < 0, errno != ESPIPE { throw SystemError("lseek", code: errno) }
        var buffer = [UInt8](repeating: 0, count: maximumCount)
        let count = try systemCall("read") {
            offset < 0
                ? Glibc.read(file.number, &buffer, buffer.count)
                : pread(file.number, &buffer, buffer.count, offset)
        }
        // A short piece is copied, so that it does not keep a large buffer.
        let bytes = count < maximumCount / 2 ? Array(buffer.prefix(count))[...] : buffer.prefix(count)
        return Piece(offset: offset, bytes: bytes)
    }
}
