internal import CRondoZlib

/// Compresses the messages that this end of a connection sends (RFC 7692 §7.2.1).
struct MessageDeflater: ~Copyable {
    /// Owned: freed in `deinit`. On the heap, because zlib compares its address.
    private let stream: UnsafeMutablePointer<z_stream>
    private let keepsContext: Bool

    /// The number of bytes at the end of a flush that a message omits.
    private static let tailSize = 4

    /// - Parameters:
    ///   - windowBits: 9 to 15: the distance of back-references, as a power of two. (zlib's shortest window
    ///     is 512 bytes.)
    ///   - keepsContext: Whether messages may refer to earlier ones.
    /// - Returns: Nil if there is no memory. At 15 it takes 256 KiB, at 9 it takes 132.
    init?(windowBits: Int, keepsContext: Bool) {
        self.keepsContext = keepsContext
        stream = .allocate(capacity: 1)
        stream.initialize(to: z_stream())
        // `deflateInit2` is a macro over this; the negative number means that there is no header. Memory
        // level 8 is zlib's default.
        let size = Int32(MemoryLayout<z_stream>.size)
        let result = deflateInit2_(
            stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, -Int32(windowBits), 8, Z_DEFAULT_STRATEGY,
            ZLIB_VERSION, size)
        guard result == Z_OK else {
            stream.deallocate()
            return nil
        }
    }

    deinit {
        deflateEnd(stream)
        stream.deallocate()
    }

    /// Compresses the next piece of a message. The piece must not be empty.
    ///
    /// - Parameter isLast: Whether the message ends with it. If so, all output is flushed, and the bytes that
    ///   a message omits are removed.
    mutating func deflate(_ input: UnsafeRawBufferPointer, isLast: Bool) -> [UInt8] {
        var (output, filled): ([UInt8], Int) = ([], 0)
        // These pointers are valid for this call only. zlib declares its input as mutable but does not write
        // to it.
        stream.pointee.next_in = UnsafeMutablePointer(
            mutating: input.baseAddress?.assumingMemoryBound(to: UInt8.self))
        stream.pointee.avail_in = UInt32(input.count)
        repeat {
            // With six bytes of room or less, zlib would emit the flush marker again (zlib.h, at `deflate`).
            let room = Int(deflateBound(stream, UInt(stream.pointee.avail_in))) + 16
            output.append(contentsOf: repeatElement(0, count: filled + room - output.count))
            output.withUnsafeMutableBufferPointer { output in
                stream.pointee.next_out = output.baseAddress! + filled
                stream.pointee.avail_out = UInt32(room)
                let result = CRondoZlib.deflate(stream, isLast ? Z_SYNC_FLUSH : Z_NO_FLUSH)
                precondition(result == Z_OK || result == Z_BUF_ERROR, "bug in Rondo: deflate says \(result)")
                filled += room - Int(stream.pointee.avail_out)
            }
        } while stream.pointee.avail_out == 0
        stream.pointee.next_in = nil
        stream.pointee.next_out = nil
        output.removeLast(output.count - filled + (isLast ? Self.tailSize : 0))
        if isLast, !keepsContext { reset() }
        return output
    }

    /// Begins anew: no later message refers to one before it, which a receiver that keeps its context can
    /// read, too.
    mutating func reset() { deflateReset(stream) }
}

/// `@unchecked Sendable`: only this value owns the stream, it cannot be copied, and zlib ties the stream to
/// no thread.
extension MessageDeflater: @unchecked Sendable {}
