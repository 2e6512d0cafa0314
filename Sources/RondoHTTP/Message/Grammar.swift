// The grammar of HTTP messages (RFC 9110 §5, RFC 9112 §2 to §5) as small functions on bytes: classes of
// bytes, lists and numbers. Nothing here depends on messages, connections or roles.

/// The grammar of HTTP messages, as functions on bytes.
package enum Grammar {
    package static let tab: UInt8 = 0x09
    package static let lineFeed: UInt8 = 0x0A
    package static let carriageReturn: UInt8 = 0x0D
    package static let space: UInt8 = 0x20
    package static let comma: UInt8 = 0x2C
    package static let colon: UInt8 = 0x3A
    package static let semicolon: UInt8 = 0x3B

    // MARK: Classes of bytes

    /// `tchar`, the bytes of names and methods (RFC 9110 §5.6.2).
    package static func isToken(_ byte: UInt8) -> Bool {
        // One bit for each byte of ASCII: a table of 256 bytes would be fetched from memory for each header
        // name.
        let mask: UInt64 = byte < 64 ? 0x03FF_6CFA_0000_0000 : 0x57FF_FFFF_C7FF_FFFE
        return byte < 128 && mask & (1 &<< UInt64(byte & 63)) != 0
    }

    /// The bytes allowed in a field value or a reason phrase: HTAB, SP, VCHAR and obs-text (RFC 9110 §5.5).
    package static func isFieldValue(_ byte: UInt8) -> Bool {
        byte >= space ? byte != 0x7F : byte == tab
    }

    /// The bytes allowed in a request target: visible ASCII. Any other byte has to be percent-encoded.
    package static func isTarget(_ byte: UInt8) -> Bool {
        byte > space && byte < 0x7F
    }

    /// OWS and BWS: SP or HTAB (RFC 9110 §5.6.3).
    package static func isWhitespace(_ byte: UInt8) -> Bool {
        byte == space || byte == tab
    }

    package static func isDigit(_ byte: UInt8) -> Bool {
        byte &- 0x30 < 10
    }

    /// CR, LF and NUL, which end a line or a string.
    static func endsLine(_ byte: UInt8) -> Bool {
        byte <= carriageReturn && (byte == carriageReturn || byte == lineFeed || byte == 0)
    }

    /// The value of a hexadecimal digit; nil for any other byte.
    package static func hexadecimalValue(_ byte: UInt8) -> UInt8? {
        switch byte {
        case 0x30...0x39: byte - 0x30
        case 0x41...0x46: byte - 0x41 + 10
        case 0x61...0x66: byte - 0x61 + 10
        default: nil
        }
    }

    /// ASCII letters in lower case; every other byte unchanged.
    package static func lowercased(_ byte: UInt8) -> UInt8 {
        byte &- 0x41 < 26 ? byte | 0x20 : byte
    }

    // MARK: Sequences

    /// Whether one of the bytes is CR, LF or NUL.
    static func hasLineEnd(_ bytes: UnsafeRawBufferPointer) -> Bool {
        // Eight at a time (Hacker's Delight, 6-1): a high bit is set only if some byte is zero.
        let (ones, highs): (UInt64, UInt64) = (0x0101_0101_0101_0101, 0x8080_8080_8080_8080)
        func zeros(_ bytes: UInt64) -> UInt64 { (bytes &- ones) & ~bytes }
        var index = 0
        while index + 8 <= bytes.count {
            let eight = bytes.loadUnaligned(fromByteOffset: index, as: UInt64.self)
            let carriageReturns = zeros(eight ^ ones &* UInt64(carriageReturn))
            let lineFeeds = zeros(eight ^ ones &* UInt64(lineFeed))
            if (zeros(eight) | carriageReturns | lineFeeds) & highs != 0 { return true }
            index += 8
        }
        return bytes[index...].contains(where: endsLine)
    }

    package static func isToken(_ text: String) -> Bool {
        areAll(text, isToken)
    }

    /// Whether `text` is allowed as a request's target.
    package static func isTarget(_ text: String) -> Bool {
        areAll(text, isTarget)
    }

    /// Whether `text` is not empty and all its bytes are of a class. Uses contiguous memory, which is faster
    /// than iterating over `text.utf8`.
    private static func areAll(_ text: String, _ isOfClass: (UInt8) -> Bool) -> Bool {
        var text = text
        return text.withUTF8 { bytes in
            for byte in bytes where !isOfClass(byte) { return false }
            return !bytes.isEmpty
        }
    }

    /// Whether two sequences of bytes are equal except for the case of ASCII letters.
    package static func equalIgnoringCase(
        _ left: some Collection<UInt8>, _ right: some Collection<UInt8>
    ) -> Bool {
        guard left.count == right.count else { return false }
        var other = right.makeIterator()
        for byte in left {
            let same = other.next()
            if byte != same, lowercased(byte) != same.map(lowercased) { return false }
        }
        return true
    }

    /// `bytes` without whitespace at either end.
    package static func trimmed(_ bytes: UnsafeBufferPointer<UInt8>) -> UnsafeBufferPointer<UInt8> {
        var (start, end) = (0, bytes.count)
        while start < end, isWhitespace(bytes[start]) { start += 1 }
        while end > start, isWhitespace(bytes[end - 1]) { end -= 1 }
        return UnsafeBufferPointer(rebasing: bytes[start..<end])
    }

    /// Calls `body` with each element of a comma-separated list, trimmed. Empty elements are included: they
    /// may be ignored in `Connection` but must be rejected in `Content-Length`, so the caller decides.
    /// - Note: Commas inside quoted strings also separate; no list used for framing has quoted strings.
    package static func forEachElement<Failure: Error>(
        of list: UnsafeBufferPointer<UInt8>,
        _ body: (UnsafeBufferPointer<UInt8>) throws(Failure) -> Void
    ) throws(Failure) {
        var (start, index) = (0, 0)
        while index <= list.count {
            if index == list.count || list[index] == comma {
                try body(trimmed(UnsafeBufferPointer(rebasing: list[start..<index])))
                start = index + 1
            }
            index += 1
        }
    }

    /// `1*DIGIT` as a number; nil if it is empty, contains a byte that is not a digit, or exceeds `Int64`.
    package static func decimal(_ bytes: UnsafeBufferPointer<UInt8>) -> Int64? {
        guard !bytes.isEmpty else { return nil }
        var value: Int64 = 0
        for byte in bytes {
            guard isDigit(byte) else { return nil }
            let (tens, overflow) = value.multipliedReportingOverflow(by: 10)
            let (sum, carry) = tens.addingReportingOverflow(Int64(byte - 0x30))
            guard !overflow, !carry else { return nil }
            value = sum
        }
        return value
    }

    // MARK: For people

    /// The most bytes of an offending line that an error quotes.
    package static let excerptLength = 40

    /// The first bytes of an offending text, made safe for a terminal: bytes that are not visible ASCII
    /// appear as `\xNN`.
    package static func excerpt(_ bytes: some Collection<UInt8>) -> String {
        var text = ""
        for byte in bytes.prefix(excerptLength) {
            if byte >= space, byte < 0x7F {
                text.unicodeScalars.append(Unicode.Scalar(byte))
            } else {
                let digits = String(byte, radix: 16, uppercase: true)
                text += digits.count < 2 ? "\\x0\(digits)" : "\\x\(digits)"
            }
        }
        return bytes.count > excerptLength ? text + "…" : text
    }
}
