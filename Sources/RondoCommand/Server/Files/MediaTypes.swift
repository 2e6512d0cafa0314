/// The media types of file names, from IANA's registry.
enum MediaTypes {
    static let unknown = "application/octet-stream"

    /// - Parameter name: The name of a file. Its last extension counts, in any case.
    static func type(ofFile name: String) -> String {
        guard let dot = name.lastIndex(of: "."), dot != name.startIndex else { return unknown }
        return types[name[name.index(after: dot)...].lowercased()] ?? unknown
    }

    private static let types: [String: String] = {
        var types: [String: String] = [:]
        for (type, extensions) in listed {
            for name in extensions.split(separator: " ") { types[String(name)] = type }
        }
        return types
    }()

    private static let listed = [
        ("text/html; charset=utf-8", "html htm"),
        ("text/plain; charset=utf-8", "txt text log md swift c h cpp py rs go sh conf ini yml yaml toml"),
        ("text/css; charset=utf-8", "css"),
        ("text/csv; charset=utf-8", "csv"),
        ("text/javascript; charset=utf-8", "js mjs"),
        ("application/json", "json map"),
        ("application/manifest+json", "webmanifest"),
        ("application/xhtml+xml", "xhtml"),
        ("application/xml", "xml xsd"),
        ("application/wasm", "wasm"),
        ("application/pdf", "pdf"),
        ("application/zip", "zip"),
        ("application/gzip", "gz tgz"),
        ("application/zstd", "zst"),
        ("application/x-bzip2", "bz2"),
        ("application/x-xz", "xz"),
        ("application/x-tar", "tar"),
        ("application/vnd.apple.mpegurl", "m3u8"),
        ("image/png", "png"),
        ("image/jpeg", "jpg jpeg"),
        ("image/gif", "gif"),
        ("image/webp", "webp"),
        ("image/avif", "avif"),
        ("image/svg+xml", "svg"),
        ("image/x-icon", "ico"),
        ("font/woff", "woff"),
        ("font/woff2", "woff2"),
        ("font/ttf", "ttf"),
        ("font/otf", "otf"),
        ("audio/mpeg", "mp3"),
        ("audio/ogg", "ogg oga opus"),
        ("audio/wav", "wav"),
        ("audio/flac", "flac"),
        ("audio/mp4", "m4a"),
        ("video/mp4", "mp4 m4v"),
        ("video/webm", "webm"),
        ("video/mp2t", "ts"),
        ("video/quicktime", "mov"),
    ]
}
