// Text arrives in pieces that may be cut anywhere, and has to be rejected at the first byte that no
// continuation could make valid (rule WS-12; Autobahn's cases 6.4 test exactly that byte). So between two
// pieces the validator stores not the unfinished character but the range of its next byte, by the table of
// RFC 3629 §4, which has no overlong forms, no surrogates and nothing above U+10FFFF.
//
// Eight ASCII bytes are checked at once, and a longer character that is complete in the piece as one number;
// only characters that are cut are checked byte by byte.

/// Checks whether text that arrives in pieces can still be UTF-8.
package struct UTF8Validator: Sendable {
    /// The number of bytes that the last, unfinished character still needs.
    private var missing = 0
    /// The range of the next of these bytes.
    private var lowest: UInt8 = 0x80
    private var highest: UInt8 = 0xBF

    package init() {}

    /// Whether no character is unfinished.
    package var isComplete: Bool { missing == 0 }

    package static func isValid(_ bytes: UnsafeRawBufferPointer) -> Bool {
        var validator = UTF8Validator()
        return validator.accept(bytes) && validator.isComplete
    }

    /// Checks the next piece; false if it contains an invalid byte. The validator must not be used
    /// afterwards.
    package mutating func accept(_ bytes: UnsafeRawBufferPointer) -> Bool {
        var index = 0
        while index < bytes.count {
            if missing == 0 {
                index = Self.skipWholeCharacters(bytes, from: index)
                if index == bytes.count { return true }
            }
            guard accept(bytes[index]) else { return false }
            index += 1
        }
        return true
    }

    // MARK: Many bytes at once

    /// - Returns: The index of the first character that is cut by the end of `bytes`, is within its last
    ///   bytes, or is invalid.
    private static func skipWholeCharacters(_ bytes: UnsafeRawBufferPointer, from start: Int) -> Int {
        var index = start
        while index + 8 <= bytes.count {
            let eight = UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: index, as: UInt64.self))
            let high = eight & 0x8080_8080_8080_8080
            if high == 0 {
                index += 8
                continue
            }
            index += high.trailingZeroBitCount / 8
            // After one longer character there are often more.
            while index + 4 <= bytes.count {
                let four = UInt32(littleEndian: bytes.loadUnaligned(fromByteOffset: index, as: UInt32.self))
                if four & 0x80 == 0 { break }
                let count = lengthOfCharacter(four)
                if count == 0 { return index }
                index += count
            }
        }
        return index
    }

    /// The length of the character at the start of `four`, whose first byte is the lowest; 0 if it is invalid
    /// or ASCII.
    private static func lengthOfCharacter(_ four: UInt32) -> Int {
        let first = four & 0xFF
        if four & 0xC0E0 == 0x80C0 { return first >= 0xC2 ? 2 : 0 }
        let second = four >> 8 & 0xFF
        if four & 0xC0_C0F0 == 0x80_80E0 {
            return first == 0xE0 && second < 0xA0 || first == 0xED && second > 0x9F ? 0 : 3
        }
        if four & 0xC0C0_C0F8 == 0x8080_80F0 {
            return first == 0xF0 && second < 0x90 || first == 0xF4 && second > 0x8F || first > 0xF4 ? 0 : 4
        }
        return 0
    }

    // MARK: One byte

    private mutating func accept(_ byte: UInt8) -> Bool {
        if missing > 0 {
            guard byte >= lowest, byte <= highest else { return false }
            missing -= 1
            (lowest, highest) = (0x80, 0xBF)
            return true
        }
        switch byte {
        case 0x00...0x7F: return true
        case 0xC2...0xDF: missing = 1
        case 0xE0: (missing, lowest) = (2, 0xA0)
        case 0xED: (missing, highest) = (2, 0x9F)
        case 0xE1...0xEF: missing = 2
        case 0xF0: (missing, lowest) = (3, 0x90)
        case 0xF1...0xF3: missing = 3
        case 0xF4: (missing, highest) = (3, 0x8F)
        default: return false
        }
        return true
    }
}
