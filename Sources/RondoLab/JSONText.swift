/// JSON whose keys keep their order, which Foundation's encoders do not offer.
package indirect enum JSONText: Sendable, Equatable {
    case null
    case bool(Bool)
    case integer(Int)
    case number(Double)
    case string(String)
    case array([JSONText])
    case object([(String, JSONText)])

    package static func == (left: JSONText, right: JSONText) -> Bool { left.text == right.text }

    /// A string, or null for nil.
    package static func optional(_ string: String?) -> JSONText {
        string.map { .string($0) } ?? .null
    }

    /// The JSON text on one line, without blanks.
    package var text: String {
        switch self {
        case .null: "null"
        case .bool(let value): value ? "true" : "false"
        case .integer(let value): String(value)
        // JSON cannot express infinity and NaN.
        case .number(let value): value.isFinite ? "\(value)" : "null"
        case .string(let value): Self.quoted(value)
        case .array(let values): "[" + values.map(\.text).joined(separator: ",") + "]"
        case .object(let pairs):
            "{" + pairs.map { Self.quoted($0.0) + ":" + $0.1.text }.joined(separator: ",") + "}"
        }
    }

    /// Escapes quotation marks, reverse solidi and control characters (RFC 8259, section 7), and U+2028 and
    /// U+2029, which end a line for some readers of "one object a line".
    static func quoted(_ string: String) -> String {
        var text = "\""
        for scalar in string.unicodeScalars {
            switch scalar {
            case "\"": text += "\\\""
            case "\\": text += "\\\\"
            case "\n": text += "\\n"
            case "\r": text += "\\r"
            case "\t": text += "\\t"
            case "\u{0}"..."\u{1F}", "\u{7F}"..."\u{9F}", "\u{2028}", "\u{2029}":
                let digits = String(scalar.value, radix: 16)
                text += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
            default: text.unicodeScalars.append(scalar)
            }
        }
        return text + "\""
    }
}
