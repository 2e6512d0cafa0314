internal import RondoCore
internal import RondoHTTP

/// A name under which a body can be saved (rule UC-26): from Content-Disposition, the URL's last path
/// component, its host, or "unknown".
///
/// A name that the server gives is taken as it is, without its harmful characters. A name from another source
/// gets the extension of the media type if it has none of its own.
package enum SuggestedFilename {
    /// In bytes of UTF-8, leaving room for an appended number: Linux allows 255.
    static let maximumLength = 240

    static func from(contentDisposition: String?, url: URL?, mimeType: String? = nil) -> String {
        if let given = contentDisposition.flatMap(name(in:)).flatMap(harmless) { return shortened(given) }
        let suffix = mimeType.flatMap(MediaType.pathExtension).map { "." + $0 } ?? ""
        if let last = (url?.lastPathComponent).flatMap(harmless) {
            let hasOwn = !URL(fileURLWithPath: last).pathExtension.isEmpty
            return shortened(hasOwn ? last : last + suffix)
        }
        // The text after the last dot of a host name is not an extension.
        return shortened((url?.host.flatMap(harmless) ?? "unknown") + suffix)
    }

    /// A server's file name without its harmful characters; nil if nothing else is left.
    ///
    /// Folders, control characters and characters that change the direction of writing (`gpj.exe` shown as
    /// `exe.jpg`) are removed. So are characters with a special meaning at the beginning: a dot hides the
    /// file, and could make it `.profile` or `.ssh`; a dash is an option to most programs. They are not
    /// replaced by others, so that a harmless name stays the same, and no name consists of replacements only.
    package static func harmless(_ name: String) -> String? {
        let last = name.unicodeScalars.split { $0 == "/" || $0 == "\\" }.last ?? []
        let visible = last.filter { !isInvisible($0) }
        let start = visible.drop { $0 == "." || $0 == "-" || isBlank($0) }
        let end = start.lastIndex { !isBlank($0) }
        return end.map { String(String.UnicodeScalarView(start[...$0])) }
    }

    /// Whether the scalar is white space or takes no space. (Within a name such characters join letters and
    /// emoji.)
    private static func isBlank(_ scalar: Unicode.Scalar) -> Bool {
        scalar.properties.isWhitespace || scalar.properties.generalCategory == .format
    }

    /// Whether the scalar ends a line, controls a terminal, or changes the direction of the text after it
    /// (`Bidi_Control` of Unicode's UAX #9).
    private static func isInvisible(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.properties.generalCategory {
        case .control, .lineSeparator, .paragraphSeparator: true
        default: scalar.properties.isBidiControl
        }
    }

    /// The name shortened to a length that file systems accept; an extension of reasonable length stays.
    private static func shortened(_ name: String) -> String {
        guard name.utf8.count > maximumLength else { return name }
        let dot = name.lastIndex(of: ".") ?? name.endIndex
        let suffix = name[dot...].utf8.count <= 16 ? name[dot...] : ""
        var room = maximumLength - suffix.utf8.count
        let kept = name.unicodeScalars.prefix { scalar in
            room -= UTF8.width(scalar)
            return room >= 0
        }
        return String(kept) + suffix
    }

    /// The `filename*` or `filename` parameter (RFC 6266); `filename*` takes precedence, and is read as UTF-8
    /// only.
    private static func name(in disposition: String) -> String? {
        let parameters = FieldParameters.of(disposition)
        if let extended = parameters["filename*"] {
            let parts = extended.split(separator: "'", maxSplits: 2, omittingEmptySubsequences: false)
            if parts.count == 3, parts[0].lowercased() == "utf-8",
                let decoded = String(parts[2]).removingPercentEncoding
            {
                return decoded
            }
        }
        return parameters["filename"]
    }
}
