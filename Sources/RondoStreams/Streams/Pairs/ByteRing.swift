internal import RondoCore

/// A ring of bytes of fixed capacity, from which the reader may be lent bytes in place.
///
/// `@unchecked Sendable`: it owns its memory, and belongs to one struct behind one lock (`BoundPair.State`).
/// Lent bytes are not overwritten before they are taken back.
final class ByteRing: @unchecked Sendable {
    private let memory: UnsafeMutableRawBufferPointer
    /// The most bytes that may be unread.
    private let capacity: Int
    private var first = 0
    /// The bytes that were written and not yet read or given back.
    private var count = 0
    /// How many of them, from the first on, are lent; they count as read.
    private var lent = 0

    init(capacity: Int) {
        self.capacity = capacity
        // The reader returns lent bytes only at its next operation, and may wait for an event before that. So
        // one byte more can be written while `capacity` bytes are lent, which causes that event.
        memory = .allocate(byteCount: capacity + 1, alignment: 1)
    }

    deinit { memory.deallocate() }

    var unread: Int { count - lent }
    /// Not 0 while nothing is unread.
    var space: Int { max(unread == 0 ? 1 : 0, capacity - count) }

    /// Takes lent bytes back: their room may be written again.
    func takeBack() {
        first = (first + lent) % memory.count
        count -= lent
        lent = 0
    }

    /// Lends the bytes up to the end of the memory, at most `limit`, and counts them as read; nil if there
    /// are none. No bytes may be lent already.
    func lend(atMost limit: Int) -> UnsafeMutableBufferPointer<UInt8>? {
        guard count > 0 else { return nil }
        lent = min(count, memory.count - first, limit)
        let piece = UnsafeMutableRawBufferPointer(rebasing: memory[first..<(first + lent)])
        return piece.assumingMemoryBound(to: UInt8.self)
    }

    /// No bytes may be lent.
    func take(_ buffer: UnsafeMutableRawBufferPointer) -> Int {
        let taken = min(count, buffer.count)
        let straight = min(taken, memory.count - first)
        buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: memory[first..<(first + straight)]))
        UnsafeMutableRawBufferPointer(rebasing: buffer[straight...])
            .copyMemory(from: UnsafeRawBufferPointer(rebasing: memory[..<(taken - straight)]))
        first = (first + taken) % memory.count
        count -= taken
        return taken
    }

    func put(_ bytes: UnsafeRawBufferPointer) -> Int {
        let given = min(space, bytes.count)
        let start = (first + count) % memory.count
        let straight = min(given, memory.count - start)
        UnsafeMutableRawBufferPointer(rebasing: memory[start...])
            .copyMemory(from: UnsafeRawBufferPointer(rebasing: bytes[..<straight]))
        memory.copyMemory(from: UnsafeRawBufferPointer(rebasing: bytes[straight..<given]))
        count += given
        return given
    }
}
