/// Escapes text for a page.
package enum HTML {
    /// `text` as the content of an element or of a quoted attribute.
    package static func escaped(_ text: String) -> String {
        var result = ""
        result.reserveCapacity(text.utf8.count)
        for character in text.unicodeScalars {
            switch character {
            case "&": result += "&amp;"
            case "<": result += "&lt;"
            case ">": result += "&gt;"
            case "\"": result += "&quot;"
            default: result.unicodeScalars.append(character)
            }
        }
        return result
    }

    package static func element(_ name: String, class styles: String? = nil, _ text: String) -> String {
        let attribute = styles.map { " class=\"\(escaped($0))\"" } ?? ""
        return "<\(name)\(attribute)>\(escaped(text))</\(name)>\n"
    }
}
