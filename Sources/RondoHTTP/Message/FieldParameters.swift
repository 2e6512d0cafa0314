/// The parameters behind a header field's value: `text/html; charset=utf-8`.
package enum FieldParameters {
    /// By name in lower case; the first of a name counts.
    ///
    /// A member that is no parameter is passed over, and takes nothing along: an empty member, which RFC 9110 §5.6.6 allows, a
    /// name without a value, and a value without a character.
    package static func of(_ value: String) -> [String: String] {
        var parameters: [String: String] = [:]
        // Before the first semicolon stands the value itself.
        let rest = value.utf8.drop { $0 != Grammar.semicolon }
        forEachMember(of: rest) { name, value in
            guard !name.isEmpty, let value, !value.isEmpty, parameters[name] == nil else { return }
            parameters[name] = value
        }
        return parameters
    }

    /// Calls `body` with each member of a list that semicolons separate: its name in lower case, and its value without
    /// quotes; nil where it has none. An empty member has an empty name and no value.
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
            // What follows a closing quote belongs to nothing.
            guard let semicolon = rest.firstIndex(of: Grammar.semicolon) else { return }
            rest = rest[rest.index(after: semicolon)...]
        }
    }

    /// From the opening quote to the closing one, or to the end where there is none.
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
