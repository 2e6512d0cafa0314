internal import RondoCore

/// Bytes that were read from a socket to see whether there are any.
final class ReadAhead {
    /// Enough for most messages.
    static let capacity = 4_096

    private let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: capacity, alignment: 16)
    private var unread = 0..<0

    deinit { memory.deallocate() }

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

    /// At most `limit` bytes of what is unread, as read: they stay for as long as this object lives, since
    /// it is filled once.
    func lend(atMost limit: Int) -> UnsafeMutableBufferPointer<UInt8> {
        let taken = unread.prefix(limit)
        unread = taken.upperBound..<unread.upperBound
        return UnsafeMutableRawBufferPointer(rebasing: memory[taken]).assumingMemoryBound(to: UInt8.self)
    }

    /// A copy of what is unread.
    var bytes: [UInt8] { Array(memory[unread]) }
}
