internal import CZlib

package import struct Foundation.Data

/// A sum by which a reader finds bytes that a disk has changed: zlib's CRC-32. It is no protection from changes that are
/// made on purpose.
package struct Checksum {
    private var sum = crc32(0, nil, 0)

    package init() {}

    package var value: UInt32 { UInt32(truncatingIfNeeded: sum) }

    /// Adds bytes, and how many they are, so that what stands at the border of two pieces counts too.
    package mutating func add(_ data: Data) {
        data.withUnsafeBytes { add($0) }
    }

    package mutating func add(_ text: String) {
        var text = text
        text.withUTF8 { add(UnsafeRawBufferPointer($0)) }
    }

    /// None is told apart from 0.
    package mutating func add(_ number: Int64?) {
        withUnsafeBytes(of: number == nil ? UInt8(0) : 1) { append($0) }
        withUnsafeBytes(of: number ?? 0) { append($0) }
    }

    package mutating func add(_ number: Double?) { add(number.map { Int64(bitPattern: $0.bitPattern) }) }

    private mutating func add(_ bytes: UnsafeRawBufferPointer) {
        withUnsafeBytes(of: UInt64(bytes.count)) { append($0) }
        append(bytes)
    }

    private mutating func append(_ bytes: UnsafeRawBufferPointer) {
        guard let start = bytes.bindMemory(to: UInt8.self).baseAddress else { return }
        sum = crc32_z(sum, start, bytes.count)
    }
}
