/// The media type that a file's name suggests.
enum MediaType {
    private static let byExtension = [
        "html": "text/html", "htm": "text/html", "txt": "text/plain", "md": "text/markdown",
        "css": "text/css", "csv": "text/csv", "js": "text/javascript", "json": "application/json",
        "xml": "application/xml", "pdf": "application/pdf", "zip": "application/zip",
        "gz": "application/gzip", "tar": "application/x-tar", "png": "image/png", "jpg": "image/jpeg",
        "jpeg": "image/jpeg", "gif": "image/gif", "svg": "image/svg+xml", "webp": "image/webp",
        "mp3": "audio/mpeg", "ogg": "audio/ogg", "wav": "audio/wav", "mp4": "video/mp4",
        "webm": "video/webm", "wasm": "application/wasm",
    ]

    private static let toExtension = Dictionary(
        byExtension.lazy.filter { !["htm", "jpeg"].contains($0.key) }.map { ($0.value, $0.key) },
        uniquingKeysWith: { first, _ in first })

    /// The usual extension of a media type in lower case; nil where none is known.
    static func pathExtension(_ mimeType: String) -> String? { toExtension[mimeType] }

    static func of(pathExtension: String) -> String {
        byExtension[pathExtension.lowercased()] ?? "application/octet-stream"
    }
}
