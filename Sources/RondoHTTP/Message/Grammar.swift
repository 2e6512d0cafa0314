// The grammar of HTTP messages (RFC 9110 §5, RFC 9112 §2 to §5) as small functions on bytes. Nothing here
// knows of messages, connections or roles; the functions read classes of bytes, lists and numbers.

package enum Grammar {
    package static let tab: UInt8 = 0x09
    package static let lineFeed: UInt8 = 0x0A
    package static let carriageReturn: UInt8 = 0x0D
    package static let space: UInt8 = 0x20
    package static let comma: UInt8 = 0x2C
    package static let colon: UInt8 = 0x3A
    package static let semicolon: UInt8 = 0x3B

    // MARK: Classes of bytes

    /// `tchar`, what names and methods are made of (RFC 9110 §5.6.2).
    package static func isToken(_ byte: UInt8) -> Bool {
        // One bit a byte of ASCII: a table of 256 would be fetched from memory for each header name.
        let mask: UInt64 = byte < 64 ? 0x03FF_6CFA_0000_0000 : 0x57FF_FFFF_C7FF_FFFE
        return byte < 128 && mask & (1 &<< UInt64(byte & 63)) != 0
    }

    /// What may stand in a field value or a reason phrase: HTAB, SP, VCHAR and obs-text (RFC 9110 §5.5).
    package static func isFieldValue(_ byte: UInt8) -> Bool {
        byte >= space ? byte != 0x7F : byte == tab
    }

    /// What may stand in a request target: visible ASCII. Anything else has to be percent-encoded before.
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

    /// CR, LF and NUL: what would end a line, or a string.
    static func endsLine(_ byte: UInt8) -> Bool {
        byte <= carriageReturn && (byte == carriageReturn || byte == lineFeed || byte == 0)
    }

    /// The value of a hexadecimal digit, nil for any other byte.
    package static func hexadecimalValue(_ byte: UInt8) -> UInt8? {
        switch byte {
        case 0x30...0x39: byte - 0x30
        case 0x41...0x46: byte - 0x41 + 10
        case 0x61...0x66: byte - 0x61 + 10
        default: nil
        }
    }

    /// ASCII letters in lower case, every other byte as it is.
    package static func lowercased(_ byte: UInt8) -> UInt8 {
        byte &- 0x41 < 26 ? byte | 0x20 : byte
    }

    // MARK: Sequences

    /// Whether one of the bytes is CR, LF or NUL.
    static func hasLineEnd(_ bytes: UnsafeRawBufferPointer) -> Bool {
        // Eight at a time (Hacker's Delight, 6-1): a high bit comes to be set only if a byte is zero.
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

    /// Whether `text` can stand as a request's target.
    package static func isTarget(_ text: String) -> Bool {
        areAll(text, isTarget)
    }

    /// Whether there are bytes, and all are of a class. In one piece, which a walk over `text.utf8` is not.
    private static func areAll(_ text: String, _ isOfClass: (UInt8) -> Bool) -> Bool {
        var text = text
        return text.withUTF8 { bytes in
            for byte in bytes where !isOfClass(byte) { return false }
            return !bytes.isEmpty
        }
    }

    /// Whether two sequences of bytes are equal but for the case of ASCII letters.
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

    /// Calls `body` with each element of a comma-separated list, trimmed. An empty element is one too: what
    /// may be overlooked in `Connection` must be refused in `Content-Length`, so the caller decides.
    /// - Note: Commas inside quoted strings separate as well; no list used for framing has quoted strings.
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

    /// `1*DIGIT` as a number; nil if it is empty, holds anything but digits or exceeds `Int64`.
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

    /// How many bytes of an offending line an error quotes.
    package static let excerptLength = 40

    /// The first bytes of something offending, made safe for a terminal: bytes that are not visible ASCII are `\xNN`.
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
