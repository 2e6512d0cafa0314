internal import RondoCore

/// The bytes of a memory input stream, with the position of its reader.
final class MemoryBytes {
    // NSData and not Data: its bytes do not move, so pointers to them can be lent.
    private let data: NSData
    private var offset = 0

    init(_ data: Data) { self.data = data as NSData }

    var rest: Int { data.length - offset }

    func read(_ buffer: UnsafeMutableRawBufferPointer) -> Int {
        let count = min(rest, buffer.count)
        guard count > 0 else { return 0 }
        buffer.copyMemory(from: UnsafeRawBufferPointer(start: data.bytes + offset, count: count))
        offset += count
        return count
    }

    /// Returns a pointer to the rest, at most `limit` bytes, and counts them as read; nil if nothing is left.
    func lend(atMost limit: Int) -> UnsafeMutableBufferPointer<UInt8>? {
        guard rest > 0 else { return nil }
        // The type is mutable only because Apple's method has it so; the caller must not write.
        let start = UnsafeMutableRawPointer(mutating: data.bytes + offset).assumingMemoryBound(to: UInt8.self)
        let count = min(rest, limit)
        offset += count
        return UnsafeMutableBufferPointer(start: start, count: count)
    }
}
