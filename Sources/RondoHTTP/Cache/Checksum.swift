internal import CZlib

package import struct Foundation.Data

/// A sum by which bytes that were changed on a disk are found out: zlib's CRC-32. It is no protection from anybody who
/// changes them on purpose.
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

    private mutating func add(_ bytes: UnsafeRawBufferPointer) {
        withUnsafeBytes(of: UInt64(bytes.count)) { append($0) }
        append(bytes)
    }

    private mutating func append(_ bytes: UnsafeRawBufferPointer) {
        guard let start = bytes.bindMemory(to: UInt8.self).baseAddress else { return }
        sum = crc32_z(sum, start, bytes.count)
    }
}
