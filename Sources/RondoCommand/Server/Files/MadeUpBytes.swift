import Rondo

/// The bytes of `/bytes/COUNT`. Each byte depends only on its position.
enum MadeUpBytes {
    /// Fills `buffer` with the bytes from `offset` on. No two groups of eight bytes are equal, so a piece
    /// that is lost, doubled or out of place changes the hash of the whole.
    static func fill(_ buffer: UnsafeMutableRawBufferPointer, from offset: Int) {
        var index = 0
        while index < buffer.count {
            let position = offset + index
            let word = scrambled(UInt64(position / 8))
            if position % 8 == 0, buffer.count - index >= 8 {
                buffer.storeBytes(of: word.littleEndian, toByteOffset: index, as: UInt64.self)
                index += 8
            } else {
                buffer[index] = UInt8(truncatingIfNeeded: word >> UInt64(position % 8 * 8))
                index += 1
            }
        }
    }

    /// The finaliser of SplitMix64, which maps different numbers to different numbers.
    private static func scrambled(_ number: UInt64) -> UInt64 {
        var word = number &+ 0x9E37_79B9_7F4A_7C15
        word = (word ^ (word >> 30)) &* 0xBF58_476D_1CE4_E5B9
        word = (word ^ (word >> 27)) &* 0x94D0_49BB_1331_11EB
        return word ^ (word >> 31)
    }
}
