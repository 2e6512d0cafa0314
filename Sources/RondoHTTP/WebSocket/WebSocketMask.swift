/// The key that masks the payload of a client's frame (RFC 6455 §5.3), so that a proxy in between cannot be
/// made to interpret a payload as HTTP.
struct WebSocketMask: Sendable, Equatable {
    /// The four bytes of the key, the first of them lowest.
    private let key: UInt32

    /// - Parameter key: The four bytes in the order of the frame, the first of them highest.
    init(bigEndian key: UInt32) { self.key = key.byteSwapped }

    /// Makes a new key for a frame. It must not be predictable (§10.3).
    init(using generator: inout some RandomNumberGenerator) { key = generator.next() }

    /// Appends the key in the order of the frame.
    func write(into output: inout [UInt8]) {
        withUnsafeBytes(of: key.littleEndian) { output.append(contentsOf: $0) }
    }

    /// Masks or unmasks `bytes`; both are the same operation.
    ///
    /// - Parameter position: The number of payload bytes before these.
    func apply(to bytes: UnsafeMutableRawBufferPointer, at position: Int = 0) {
        let shift = UInt32(truncatingIfNeeded: position & 3) &* 8
        let rotated = shift == 0 ? key : key &>> shift | key &<< (32 &- shift)
        let wide = (UInt64(rotated) | UInt64(rotated) &<< 32).littleEndian
        var index = 0
        while index &+ 8 <= bytes.count {
            let eight = bytes.loadUnaligned(fromByteOffset: index, as: UInt64.self)
            bytes.storeBytes(of: eight ^ wide, toByteOffset: index, as: UInt64.self)
            index &+= 8
        }
        var rest = rotated
        while index < bytes.count {
            bytes[index] ^= UInt8(truncatingIfNeeded: rest)
            rest &>>= 8
            if index & 3 == 3 { rest = rotated }
            index &+= 1
        }
    }
}
