/// The parameters after a header field's value: `text/html; charset=utf-8`.
package enum FieldParameters {
    /// The parameters by name in lower case; the first of a name is used.
    ///
    /// A member that is not a parameter is skipped, without effect on the others: an empty member, which RFC
    /// 9110 §5.6.6 allows, a name without a value, and an empty value.
    package static func of(_ value: String) -> [String: String] {
        var parameters: [String: String] = [:]
        // The field's value itself comes before the first semicolon.
        let rest = value.utf8.drop { $0 != Grammar.semicolon }
        forEachMember(of: rest) { name, value in
            guard !name.isEmpty, let value, !value.isEmpty, parameters[name] == nil else { return }
            parameters[name] = value
        }
        return parameters
    }

    /// Calls `body` with each member of a list separated by semicolons: its name in lower case, and its value
    /// without quotes, or nil if it has none. An empty member has an empty name and no value.
    static func forEachMember(
        of list: Substring.UTF8View, _ body: (_ name: String, _ value: String?) -> Void
    ) {
        var rest = list
        while true {
            let name = rest.prefix { $0 != Grammar.semicolon && $0 != equals }
            rest = rest[name.endIndex...]
            var value: String?
            if rest.first == equals {
                rest = rest.dropFirst().drop(while: Grammar.isWhitespace)
                value = rest.first == quote ? quoted(&rest) : unquoted(&rest)
            }
            body(text(trimmed(name)).lowercased(), value)
            // Text between a closing quote and the semicolon is ignored.
            guard let semicolon = rest.firstIndex(of: Grammar.semicolon) else { return }
            rest = rest[rest.index(after: semicolon)...]
        }
    }

    /// The text from the opening quote to the closing one or, if there is none, to the end.
    private static func quoted(_ rest: inout Substring.UTF8View) -> String {
        var bytes: [UInt8] = []
        rest = rest.dropFirst()
        while let byte = rest.popFirst(), byte != quote {
            bytes.append(byte == backslash ? rest.popFirst() ?? byte : byte)
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    private static func unquoted(_ rest: inout Substring.UTF8View) -> String {
        let value = rest.prefix { $0 != Grammar.semicolon }
        rest = rest[value.endIndex...]
        return text(trimmed(value))
    }

    // MARK: Bytes

    private static let equals = UInt8(ascii: "=")
    private static let quote = UInt8(ascii: "\"")
    private static let backslash = UInt8(ascii: "\\")

    private static func trimmed(_ bytes: Substring.UTF8View) -> Substring.UTF8View {
        var bytes = bytes.drop(while: Grammar.isWhitespace)
        while let last = bytes.last, Grammar.isWhitespace(last) { bytes = bytes.dropLast() }
        return bytes
    }

    private static func text(_ bytes: Substring.UTF8View) -> String { String(decoding: bytes, as: UTF8.self) }
}
