internal import FoundationNetworking
internal import RondoCore
internal import RondoHTTP

/// The parts of a `data:` URL (RFC 2397).
struct DataURL: Equatable {
    let mimeType: String
    let charset: String?
    let data: Data

    /// Nil if there is no comma, or the base64 is invalid.
    init?(_ text: String) {
        let body = text.dropFirst("data:".count)
        guard text.lowercased().hasPrefix("data:"), let comma = body.firstIndex(of: ",") else { return nil }
        var type = String(body[..<comma]).removingPercentEncoding ?? ""
        var content = body[body.index(after: comma)...]
        if let hash = content.firstIndex(of: "#") { content = content[..<hash] }
        let isBase64 = Self.takeBase64(from: &type)
        let bytes = Self.percentDecoded(content.utf8)
        if isBase64 {
            guard let decoded = Self.base64Decoded(bytes) else { return nil }
            data = decoded
        } else {
            data = Data(bytes)
        }
        let name = type.prefix { $0 != ";" }.trimmingCharacters(in: .whitespaces).lowercased()
        let given = FieldParameters.of(type)["charset"]
        mimeType = name.isEmpty ? "text/plain" : name
        charset = given ?? (name.isEmpty ? "US-ASCII" : nil)
    }

    /// Removes `;base64` from the end of `type`, with spaces before and after the word ("data: URL processor"
    /// of the Fetch standard).
    ///
    /// - Returns: Whether it was there.
    private static func takeBase64(from type: inout String) -> Bool {
        var rest = type[...]
        while rest.last == " " { rest.removeLast() }
        guard rest.lowercased().hasSuffix("base64") else { return false }
        rest.removeLast("base64".count)
        while rest.last == " " { rest.removeLast() }
        guard rest.last == ";" else { return false }
        type = String(rest.dropLast())
        return true
    }

    /// "Forgiving-base64 decode" of the Infra standard: whitespace is ignored, and the padding may be left
    /// out, but only as a whole. Nil for anything else that is not base64; Foundation decodes some of that.
    private static func base64Decoded(_ bytes: [UInt8]) -> Data? {
        var digits = bytes.filter { ![0x09, 0x0A, 0x0C, 0x0D, 0x20].contains($0) }
        if digits.count % 4 == 0 {
            for _ in 0..<2 where digits.last == UInt8(ascii: "=") { digits.removeLast() }
        }
        guard digits.count % 4 != 1, digits.allSatisfy(isBase64Digit) else { return nil }
        while digits.count % 4 != 0 { digits.append(UInt8(ascii: "=")) }
        return Data(base64Encoded: Data(digits))
    }

    private static func isBase64Digit(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "+"), UInt8(ascii: "/"):
            true
        default: false
        }
    }

    private static func percentDecoded(_ text: Substring.UTF8View) -> [UInt8] {
        var bytes: [UInt8] = []
        var rest = Array(text)[...]
        while let byte = rest.popFirst() {
            if byte == UInt8(ascii: "%"), rest.count >= 2,
                rest.prefix(2).allSatisfy({ Unicode.Scalar($0).properties.isASCIIHexDigit }),
                let value = UInt8(String(decoding: rest.prefix(2), as: UTF8.self), radix: 16)
            {
                bytes.append(value)
                rest = rest.dropFirst(2)
            } else {
                bytes.append(byte)
            }
        }
        return bytes
    }
}
