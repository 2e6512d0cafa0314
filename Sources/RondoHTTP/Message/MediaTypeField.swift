internal import Glibc

// Reads Content-Type like browsers ("extract a MIME type" of the Fetch standard, §3.7): one or several fields
// are read as a list, and the last member that is a media type is used. One rule of the standard is left out:
// a type that is repeated without a charset does not take over the charset of the one before it.

/// The media type in the value of Content-Type.
package struct MediaTypeField: Sendable, Equatable {
    /// `type/subtype` in lower case.
    package let essence: String
    /// The parameters by name in lower case.
    package let parameters: [String: String]

    /// - Parameter value: The value of the field; of several fields, their values joined by commas.
    /// - Returns: Nil if no member is a media type. `*/*` is not one: it stands for any type.
    package init?(_ value: String) {
        var last: (member: Substring, essence: String)?
        for member in Self.members(of: value) {
            if let essence = Self.essence(of: member) { last = (member, essence) }
        }
        guard let last else { return nil }
        essence = last.essence
        parameters = FieldParameters.of(String(last.member))
    }

    /// Splits at commas outside quotes.
    private static func members(of value: String) -> [Substring] {
        var members: [Substring] = []
        var start = value.startIndex
        var index = start
        var isQuoted = false
        let bytes = value.utf8
        while index < bytes.endIndex {
            switch bytes[index] {
            case UInt8(ascii: "\""): isQuoted.toggle()
            case UInt8(ascii: "\\") where isQuoted:
                // The next byte is quoted, whatever it is.
                index = bytes.index(after: index)
                if index == bytes.endIndex { continue }
            case Grammar.comma where !isQuoted:
                members.append(value[start..<index])
                start = bytes.index(after: index)
            default: break
            }
            index = bytes.index(after: index)
        }
        members.append(value[start...])
        return members
    }

    /// Returns nil unless `member` is a media type: two tokens with a slash between them (RFC 9110 §8.3.1).
    private static func essence(of member: Substring) -> String? {
        var bytes = member.utf8.prefix { $0 != Grammar.semicolon }.drop(while: Grammar.isWhitespace)
        while let last = bytes.last, Grammar.isWhitespace(last) { bytes = bytes.dropLast() }
        let parts = bytes.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
        guard parts.count == 2, parts.allSatisfy({ !$0.isEmpty && $0.allSatisfy(Grammar.isToken) }) else {
            return nil
        }
        let essence = String(decoding: bytes, as: UTF8.self).lowercased()
        return essence == "*/*" ? nil : essence
    }
}

extension HeaderFields {
    /// The value of Content-Type, its fields joined, if it may name a multipart type. This is a quick check
    /// that makes no text for other types.
    package var contentTypeOfParts: String? {
        var mayBe = false
        forEachValue(of: "Content-Type") { value in
            let isLetter = value.first.map { Grammar.lowercased($0) == UInt8(ascii: "m") } ?? false
            mayBe =
                mayBe || isLetter
                || value.baseAddress.map { memchr($0, Int32(Grammar.comma), value.count) != nil } ?? false
        }
        return mayBe ? values(for: "Content-Type").joined(separator: ", ") : nil
    }
}
