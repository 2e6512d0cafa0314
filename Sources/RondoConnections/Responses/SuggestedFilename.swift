internal import RondoCore
internal import RondoHTTP

/// A name under which a body can be saved (rule UC-26): from Content-Disposition, the URL's last path component,
/// its host, or "unknown".
///
/// A name that the server has given is taken as it is, but for what could do harm. One that was found elsewhere gets the extension of the
/// media type where it has none of its own.
enum SuggestedFilename {
    /// Bytes in UTF-8, with room for a number behind: Linux takes 255.
    static let maximumLength = 240

    static func from(contentDisposition: String?, url: URL?, mimeType: String? = nil) -> String {
        if let given = contentDisposition.flatMap(name(in:)).flatMap(harmless) { return shortened(given) }
        let suffix = mimeType.flatMap(MediaType.pathExtension).map { "." + $0 } ?? ""
        if let last = (url?.lastPathComponent).flatMap(harmless) {
            let hasOwn = !URL(fileURLWithPath: last).pathExtension.isEmpty
            return shortened(hasOwn ? last : last + suffix)
        }
        // What follows the last dot of a host is no extension.
        return shortened((url?.host.flatMap(harmless) ?? "unknown") + suffix)
    }

    /// A server's name for a file without its harmful characters; nil if no others are in it.
    ///
    /// Folders, control characters and what changes the direction of writing (`gpj.exe` that is shown as `exe.jpg`) are
    /// left out, and so is what makes a name special at its beginning: a dot hides the file, and has `.profile` or
    /// `.ssh` in its place; a dash is an option to most programs. Nothing is put in their place, so that a name that is
    /// fine stays what it is, and no name is made of such characters alone.
    static func harmless(_ name: String) -> String? {
        let last = name.unicodeScalars.split { $0 == "/" || $0 == "\\" }.last ?? []
        let visible = last.filter { !isInvisible($0) }
        let start = visible.drop { $0 == "." || $0 == "-" || isBlank($0) }
        let end = start.lastIndex { !isBlank($0) }
        return end.map { String(String.UnicodeScalarView(start[...$0])) }
    }

    /// Takes no place, or an empty one. (Within a name such characters join letters and emoji.)
    private static func isBlank(_ scalar: Unicode.Scalar) -> Bool {
        scalar.properties.isWhitespace || scalar.properties.generalCategory == .format
    }

    /// Ends a line, drives a terminal, or changes the direction of what follows (`Bidi_Control` of Unicode's UAX #9).
    private static func isInvisible(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.properties.generalCategory {
        case .control, .lineSeparator, .paragraphSeparator: true
        default: scalar.properties.isBidiControl
        }
    }

    /// Cut where a file system would refuse it; an extension of sensible length stays.
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

    /// The `filename*` or `filename` parameter (RFC 6266); the former wins, in UTF-8 or not at all.
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
