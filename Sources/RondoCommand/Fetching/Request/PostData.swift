import Rondo

/// The data of `-d` and similar options, and their media type.
struct PostData: Equatable, Sendable {
    enum Piece {
        /// `@FILE` is read without line ends and NULs.
        case text
        /// `@FILE` is read unchanged.
        case binary
        /// `@` has no special meaning.
        case raw
        /// Percent-encoded, in the forms of `QueryPart`.
        case encoded
        /// As `binary`, but pieces are joined without a separator.
        case json
    }

    private(set) var bytes = Data()
    private(set) var isJSON = false
    private(set) var isEmpty = true

    /// Pieces are joined by `&`, except those of JSON.
    mutating func append(_ text: String, as kind: Piece) throws {
        let piece: Data
        switch kind {
        case .raw: piece = Data(text.utf8)
        case .encoded: piece = Data(try QueryPart.encoded(text, for: "--data-urlencode").utf8)
        case .text, .binary, .json:
            if text.first == "@" {
                let file = try InputFile.data(String(text.dropFirst()), for: "-d")
                piece = kind == .text ? file.filter { $0 != 13 && $0 != 10 && $0 != 0 } : file
            } else {
                piece = Data(text.utf8)
            }
        }
        if kind == .json { isJSON = true }
        if !isEmpty, kind != .json { bytes.append(UInt8(ascii: "&")) }
        bytes.append(piece)
        isEmpty = false
    }
}

/// A piece of a query or form, percent-encoded: `content`, `=content`, `name=content`, `@file` or
/// `name@file`.
enum QueryPart {
    static func encoded(_ text: String, for option: String = "--url-query") throws -> String {
        // A plus sign in front means that the text is encoded already.
        if option == "--url-query", text.first == "+" { return String(text.dropFirst()) }
        // An @ names a file only where there is no =.
        guard let sign = text.firstIndex(of: "=") ?? text.firstIndex(of: "@") else {
            return encoded(Data(text.utf8))
        }
        let name = String(text[..<sign])
        let rest = String(text[text.index(after: sign)...])
        let content = text[sign] == "@" ? try InputFile.data(rest, for: option) : Data(rest.utf8)
        // As in curl, an empty file makes an empty piece, without its name.
        if text[sign] == "@", content.isEmpty { return "" }
        return (name.isEmpty ? "" : name + "=") + encoded(content)
    }

    /// Encodes bytes as in forms: RFC 3986's unreserved characters remain, and a blank becomes a plus sign.
    static func encoded(_ bytes: Data) -> String {
        var text = ""
        for byte in bytes {
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."),
                UInt8(ascii: "_"), UInt8(ascii: "~"):
                text.unicodeScalars.append(Unicode.Scalar(byte))
            case UInt8(ascii: " "): text += "+"
            default:
                let digits = String(byte, radix: 16, uppercase: true)
                text += "%" + (digits.count < 2 ? "0" : "") + digits
            }
        }
        return text
    }
}
