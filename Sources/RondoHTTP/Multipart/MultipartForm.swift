package import Foundation

/// A form as `multipart/form-data` (RFC 7578). Files are not read but referred to with their lengths, so that
/// the length of the whole body is known before the first byte is sent.
///
/// Names are escaped by the WHATWG's HTML standard ("multipart/form-data encoding algorithm"), which servers
/// are written for; values are sent unchanged.
package struct MultipartForm: Sendable, Equatable {
    /// A piece of the body.
    package enum Segment: Sendable, Equatable {
        case bytes(Data)
        /// This many bytes of the file, from an offset on.
        case file(path: String, offset: Int64 = 0, length: Int64)

        package var length: Int64 {
            switch self {
            case .bytes(let data): Int64(data.count)
            case .file(_, _, let length): length
            }
        }
    }

    package let boundary: String
    /// The body up to the end of the last file.
    private var content: [Segment] = []
    /// The bytes after that, without the closing line; apart from `content`, so that they grow in place.
    package private(set) var tail = Data()

    /// - Parameter boundary: A text that occurs in no part; 128 random bits will not occur in a file.
    package init(boundary: String = randomBoundary()) {
        self.boundary = boundary
    }

    package static func randomBoundary() -> String {
        var generator = SystemRandomNumberGenerator()
        let digits = (0..<2).map { _ -> String in
            let text = String(UInt64.random(in: .min ... .max, using: &generator), radix: 16)
            return String(repeating: "0", count: 16 - text.count) + text
        }
        return "RondoFormBoundary" + digits.joined()
    }

    /// The value of Content-Type.
    package var contentType: String { "multipart/form-data; boundary=\(boundary)" }

    // MARK: Building

    /// Appends a text field, in UTF-8 and without a content type (RFC 7578 §4.4).
    package mutating func append(name: String, value: String) {
        append(name: name, fileName: nil, contentType: nil, .bytes(Data(value.utf8)))
    }

    /// Appends a field with any content.
    ///
    /// - Parameters:
    ///   - fileName: Without a file name, servers do not treat the field as a file.
    ///   - contentType: Nil means `application/octet-stream` if there is a file name.
    package mutating func append(
        name: String, fileName: String?, contentType: String?, _ segment: Segment
    ) {
        var head = "--\(boundary)\r\nContent-Disposition: form-data; name=\"\(Self.escapedName(name))\""
        if let fileName { head += "; filename=\"\(Self.escaped(fileName))\"" }
        head += "\r\n"
        if let type = contentType ?? fileName.map({ _ in "application/octet-stream" }) {
            head += "Content-Type: \(Self.oneLine(type))\r\n"
        }
        tail.append(contentsOf: (head + "\r\n").utf8)
        switch segment {
        case .bytes(let data): tail.append(data)
        case .file:
            content += [.bytes(tail), segment]
            tail = Data()
        }
        tail.append(contentsOf: "\r\n".utf8)
    }

    // MARK: The whole

    /// The body, piece by piece.
    package var segments: [Segment] { content + [.bytes(tail + Data(closingLine.utf8))] }

    /// The number of bytes of the body.
    package var length: Int64 {
        let end = Int64(tail.count + closingLine.utf8.count)
        return content.reduce(end) { $0.clampedSum($1.length) }
    }

    private var closingLine: String { "--\(boundary)--\r\n" }

    // MARK: Escaping

    /// Escapes a field's name. Line ends first become CR LF, as browsers send them from a page.
    private static func escapedName(_ name: String) -> String {
        var normal: [UInt8] = []
        let bytes = Array(name.utf8)
        for (index, byte) in bytes.enumerated() {
            switch byte {
            case Grammar.carriageReturn: normal += [Grammar.carriageReturn, Grammar.lineFeed]
            case Grammar.lineFeed:
                let endsPair = index > 0 && bytes[index - 1] == Grammar.carriageReturn
                if !endsPair { normal += [Grammar.carriageReturn, Grammar.lineFeed] }
            default: normal.append(byte)
            }
        }
        return escaped(String(decoding: normal, as: UTF8.self))
    }

    /// Escapes the characters that would end the quoted name, or its line.
    private static func escaped(_ text: String) -> String {
        var escaped: [UInt8] = []
        for byte in text.utf8 {
            switch byte {
            case Grammar.lineFeed: escaped += "%0A".utf8
            case Grammar.carriageReturn: escaped += "%0D".utf8
            case UInt8(ascii: "\""): escaped += "%22".utf8
            default: escaped.append(byte)
            }
        }
        return String(decoding: escaped, as: UTF8.self)
    }

    /// Removes line ends, so that a content type cannot begin another field.
    private static func oneLine(_ text: String) -> String {
        String(decoding: text.utf8.filter(Grammar.isFieldValue), as: UTF8.self)
    }
}

/// A form as `application/x-www-form-urlencoded`, by the WHATWG's URL standard (§5.2): in UTF-8, spaces as
/// `+`.
package enum URLEncodedForm {
    package static let contentType = "application/x-www-form-urlencoded"

    /// Encodes fields as `name=value&…`, in the given order, with repeated names.
    package static func encode(_ fields: [(name: String, value: String)]) -> String {
        fields.map { "\(encode($0.name))=\(encode($0.value))" }.joined(separator: "&")
    }

    private static func encode(_ text: String) -> String {
        var encoded: [UInt8] = []
        encoded.reserveCapacity(text.utf8.count)
        let digits = Array("0123456789ABCDEF".utf8)
        for byte in text.utf8 {
            switch byte {
            case Grammar.space: encoded.append(UInt8(ascii: "+"))
            case UInt8(ascii: "*"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"):
                encoded.append(byte)
            case _ where Grammar.isDigit(byte) || Grammar.lowercased(byte) &- 0x61 < 26:
                encoded.append(byte)
            default:
                encoded += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
            }
        }
        return String(decoding: encoded, as: UTF8.self)
    }
}
