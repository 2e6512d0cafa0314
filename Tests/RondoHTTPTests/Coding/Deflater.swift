import CRondoZlib
import Foundation

/// Encodes by zlib, for tests.
enum Deflater {
    enum Wrapping: Int32 {
        case gzip = 31
        case zlib = 15
        case none = -15
    }

    static func encode(_ data: Data, _ wrapping: Wrapping) -> Data {
        var stream = z_stream()
        // Both calls are on the stack's value, whose address does not change between them.
        return withUnsafeMutablePointer(to: &stream) { stream in
            deflateInit2_(
                stream, 9, Z_DEFLATED, wrapping.rawValue, 8, Z_DEFAULT_STRATEGY, ZLIB_VERSION,
                Int32(MemoryLayout<z_stream>.size))
            defer { deflateEnd(stream) }
            var output = [UInt8](repeating: 0, count: Int(deflateBound(stream, UInt(data.count))) + 64)
            var input = Array(data)
            let (inputCount, outputCount) = (input.count, output.count)
            let left = input.withUnsafeMutableBufferPointer { input in
                output.withUnsafeMutableBufferPointer { output in
                    stream.pointee.next_in = input.baseAddress
                    stream.pointee.avail_in = UInt32(inputCount)
                    stream.pointee.next_out = output.baseAddress
                    stream.pointee.avail_out = UInt32(outputCount)
                    let result = deflate(stream, Z_FINISH)
                    precondition(result == Z_STREAM_END)
                    return Int(stream.pointee.avail_out)
                }
            }
            return Data(output[..<(outputCount - left)])
        }
    }
}
