internal import RondoCore

/// Bytes in a ring of fixed capacity, of which the reader may be lent some where they lie.
///
/// `@unchecked Sendable`: it owns its memory, and belongs to one struct behind one lock (`BoundPair.State`).
/// Memory that is lent is not written to before it is taken back.
final class ByteRing: @unchecked Sendable {
    private let memory: UnsafeMutableRawBufferPointer
    private var first = 0
    /// Written, and not read or not given back.
    private var count = 0
    /// The first of them, which were lent and are read.
    private var lent = 0

    init(capacity: Int) {
        memory = .allocate(byteCount: capacity, alignment: 1)
    }

    deinit { memory.deallocate() }

    var unread: Int { count - lent }
    var space: Int { memory.count - count }

    /// What was lent is the writer's again.
    func takeBack() {
        first = (first + lent) % memory.count
        count -= lent
        lent = 0
    }

    /// What lies in one piece, at most `limit` bytes, as read; nil if there is nothing. To be called with
    /// nothing lent.
    func lend(atMost limit: Int) -> UnsafeMutableBufferPointer<UInt8>? {
        guard count > 0 else { return nil }
        lent = min(count, memory.count - first, limit)
        let piece = UnsafeMutableRawBufferPointer(rebasing: memory[first..<(first + lent)])
        return piece.assumingMemoryBound(to: UInt8.self)
    }

    /// To be called with nothing lent.
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
