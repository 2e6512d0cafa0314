package import struct Foundation.Data

/// A checksum that detects bytes that a disk has changed, and a number that represents a text in tables. It
/// is the same in every process, and does not protect against deliberate changes.
///
/// It processes eight bytes at a time. Each step is invertible, so inputs that differ in one word never have
/// the same sum. zlib's CRC-32 took 1 µs for a page of 1 KiB, a tenth of the cost of storing it.
package struct Checksum {
    private var sum: UInt64 = 0xcbf2_9ce4_8422_2325

    package init() {}

    package var value: Int64 { Int64(bitPattern: sum) }

    /// The sum of one text.
    package static func of(_ text: String) -> Int64 {
        var checksum = Checksum()
        checksum.add(text)
        return checksum.value
    }

    /// Adds the number of bytes and the bytes, so that the boundary between two pieces counts too.
    package mutating func add(_ data: Data) {
        data.withUnsafeBytes { add($0) }
    }

    package mutating func add(_ text: String) {
        var text = text
        text.withUTF8 { add(UnsafeRawBufferPointer($0)) }
    }

    /// Adds a number; nil and 0 give different sums.
    package mutating func add(_ number: Int64?) {
        add(word: number == nil ? 0 : 1)
        add(word: UInt64(bitPattern: number ?? 0))
    }

    package mutating func add(_ number: Double?) { add(number.map { Int64(bitPattern: $0.bitPattern) }) }

    private mutating func add(_ bytes: UnsafeRawBufferPointer) {
        add(word: UInt64(bytes.count))
        var offset = 0
        while offset + 8 <= bytes.count {
            add(word: UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self)))
            offset += 8
        }
        if offset == bytes.count { return }
        var last: UInt64 = 0
        for place in offset..<bytes.count { last = last << 8 | UInt64(bytes[place]) }
        add(word: last)
    }

    /// Multiplication by an odd number, and xor of the upper half into the lower one: both are invertible.
    private mutating func add(word: UInt64) {
        let product = (sum ^ word) &* 0x9e37_79b9_7f4a_7c15
        sum = product ^ product >> 32
    }
}
