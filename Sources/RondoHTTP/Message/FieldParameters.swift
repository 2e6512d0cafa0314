import Foundation

/// The parameters behind a header field's value: `text/html; charset=utf-8`.
package enum FieldParameters {
    /// By name in lower case; the first of a name counts.
    package static func of(_ value: String) -> [String: String] {
        var parameters: [String: String] = [:]
        var rest = value[...]
        while let semicolon = rest.firstIndex(of: ";") {
            rest = rest[rest.index(after: semicolon)...].drop(while: { $0 == " " || $0 == "\t" })
            guard let equals = rest.firstIndex(of: "=") else { break }
            let name = rest[..<equals].trimmingCharacters(in: .whitespaces).lowercased()
            rest = rest[rest.index(after: equals)...].drop(while: { $0 == " " || $0 == "\t" })
            var text = ""
            if rest.first == "\"" {
                rest = rest.dropFirst()
                while let character = rest.popFirst(), character != "\"" {
                    text.append(character == "\\" ? rest.popFirst() ?? character : character)
                }
            } else {
                let end = rest.firstIndex(of: ";") ?? rest.endIndex
                text = rest[..<end].trimmingCharacters(in: .whitespaces)
                rest = rest[end...]
            }
            if parameters[name] == nil { parameters[name] = text }
        }
        return parameters
    }
}
