internal import RondoCore
internal import RondoHTTP

/// A name under which a body can be saved (rule UC-26): from Content-Disposition, the URL's last path component,
/// its host, or "unknown".
///
/// A name that the server has given is taken as it is. One that was found elsewhere gets the extension of the
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

    /// What is left of a name once nothing in it can lead to another folder; nil if that is nothing.
    private static func harmless(_ name: String) -> String? {
        let last = name.split(whereSeparator: { $0 == "/" || $0 == "\\" }).last.map(String.init) ?? ""
        let printable = String(last.unicodeScalars.filter { $0.value >= 32 && $0.value != 127 })
        let trimmed = printable.trimmingCharacters(in: .whitespaces)
        return ["", ".", ".."].contains(trimmed) ? nil : trimmed
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
