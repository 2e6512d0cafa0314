internal import RondoCore

/// Decodes UTF-8 that comes in pieces, which may be cut anywhere. Bytes that are not UTF-8 become U+FFFD.
struct ScalarDecoder {
    /// The beginning of a scalar whose rest has not come; three bytes at most.
    private var begun: [UInt8] = []

    mutating func decode(_ piece: Data) -> String.UnicodeScalarView {
        let bytes = begun + piece
        let whole = bytes.count - Self.unfinished(bytes)
        begun = Array(bytes[whole...])
        return String(decoding: bytes[..<whole], as: UTF8.self).unicodeScalars
    }

    /// Call it after the last piece: returns the text of the bytes that are left.
    mutating func end() -> String.UnicodeScalarView {
        defer { begun = [] }
        return String(decoding: begun, as: UTF8.self).unicodeScalars
    }

    /// The number of bytes at the end that begin a scalar whose other bytes have not come.
    private static func unfinished(_ bytes: [UInt8]) -> Int {
        for count in 1...3 where count <= bytes.count {
            let byte = bytes[bytes.count - count]
            if byte & 0xC0 == 0x80 { continue }
            let length =
                switch byte {
                case 0xF0...: 4
                case 0xE0...: 3
                case 0xC0...: 2
                default: 1
                }
            return length > count ? count : 0
        }
        return 0
    }
}
