internal import RondoCore
internal import RondoMutex

/// Bytes that were read from a socket to find out whether it has any.
///
/// `@unchecked Sendable`: an object belongs either to one pair, which uses it under its lock, or to the
/// spares, where nothing uses it.
final class ReadAhead: @unchecked Sendable {
    /// Large enough for most messages.
    static let capacity = 4_096

    /// Owned: allocated here, freed in `deinit`.
    private let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: capacity, alignment: 16)
    private var unread = 0..<0

    deinit { memory.deallocate() }

    // MARK: Spares

    /// The most objects that are kept for reuse by all streams; further ones are freed. A loop reads ahead
    /// for as many streams in a row, before it calls their delegates (`SocketReader`). Without them
    /// bench-guard's stream.message takes 6 % more instructions, and an allocation.
    private static let maximumSpare = 16

    private static let spare = Mutex<[ReadAhead]>([])

    static func take() -> ReadAhead { spare.withLock { $0.popLast() } ?? ReadAhead() }

    /// Returns an object to the spares. The caller must not use it afterwards, nor any bytes that it has
    /// lent.
    static func give(back ahead: ReadAhead) {
        spare.withLock { if $0.count < maximumSpare { $0.append(ahead) } }
    }

    // MARK: Bytes

    var isEmpty: Bool { unread.isEmpty }

    /// - Parameter body: Writes bytes to the start of the buffer and returns how many.
    func fill(_ body: (UnsafeMutableRawBufferPointer) -> Int) { unread = 0..<body(memory) }

    func take(_ buffer: UnsafeMutableRawBufferPointer) -> Int {
        let count = min(unread.count, buffer.count)
        let taken = unread.lowerBound..<(unread.lowerBound + count)
        buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: memory[taken]))
        unread = taken.upperBound..<unread.upperBound
        return count
    }

    /// Returns at most `limit` unread bytes and counts them as read: the pointer is valid until the object is
    /// given back.
    func lend(atMost limit: Int) -> UnsafeMutableBufferPointer<UInt8> {
        let taken = unread.prefix(limit)
        unread = taken.upperBound..<unread.upperBound
        return UnsafeMutableRawBufferPointer(rebasing: memory[taken]).assumingMemoryBound(to: UInt8.self)
    }

    /// A copy of the unread bytes.
    var bytes: [UInt8] { Array(memory[unread]) }
}
