internal import RondoCore
internal import RondoMutex

/// Bytes that were read from a socket to see whether there are any.
///
/// `@unchecked Sendable`: either one pair has it, and touches it under its lock, or it waits among the spares, untouched.
final class ReadAhead: @unchecked Sendable {
    /// Enough for most messages.
    static let capacity = 4_096

    /// Owned: allocated here, freed in `deinit`.
    private let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: capacity, alignment: 16)
    private var unread = 0..<0

    deinit { memory.deallocate() }

    // MARK: Spares

    /// How many are kept for the next messages of all streams; those of a burst beyond it are freed.
    private static let maximumSpare = 8

    private static let spare = Mutex<[ReadAhead]>([])

    static func take() -> ReadAhead { spare.withLock { $0.popLast() } ?? ReadAhead() }

    /// Returns it to the spares. The caller must not use it afterwards, nor what it has lent.
    static func give(back ahead: ReadAhead) {
        spare.withLock { if $0.count < maximumSpare { $0.append(ahead) } }
    }

    // MARK: Bytes

    var isEmpty: Bool { unread.isEmpty }

    /// - Parameter body: Puts bytes at the beginning of what it gets, and answers how many.
    func fill(_ body: (UnsafeMutableRawBufferPointer) -> Int) { unread = 0..<body(memory) }

    func take(_ buffer: UnsafeMutableRawBufferPointer) -> Int {
        let count = min(unread.count, buffer.count)
        let taken = unread.lowerBound..<(unread.lowerBound + count)
        buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: memory[taken]))
        unread = taken.upperBound..<unread.upperBound
        return count
    }

    /// At most `limit` unread bytes, as read: they stay until the memory is given back.
    func lend(atMost limit: Int) -> UnsafeMutableBufferPointer<UInt8> {
        let taken = unread.prefix(limit)
        unread = taken.upperBound..<unread.upperBound
        return UnsafeMutableRawBufferPointer(rebasing: memory[taken]).assumingMemoryBound(to: UInt8.self)
    }

    /// A copy of the unread bytes.
    var bytes: [UInt8] { Array(memory[unread]) }
}
