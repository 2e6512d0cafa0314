import Rondo

/// What a path leads to: a file below a folder, or made-up bytes.
struct Site: Sendable {
    enum Content: Equatable {
        case bytes(Int)
        /// An open descriptor, which the caller closes.
        case file(descriptor: Int32, size: Int, type: String)
        case missing
    }

    static let usualSize = 1 << 20

    /// The real path of the folder, or nil where there are made-up bytes only.
    let root: String?
    /// How many bytes `/bytes` has.
    let size: Int

    /// - Parameter target: the request target as it stands in the request line.
    func content(for target: String) -> Content {
        guard let path = Self.path(of: target) else { return .missing }
        if path == "/bytes" { return .bytes(size) }
        if path.hasPrefix("/bytes/"), let count = Int(path.dropFirst("/bytes/".count)), count >= 0 {
            return .bytes(count)
        }
        guard let root else { return .missing }
        return Self.file(path, below: root)
    }

    /// The decoded path of an origin-form or absolute-form target (RFC 9112, section 3.2), without the query.
    static func path(of target: String) -> String? {
        var rest = target[...]
        if let scheme = rest.range(of: "://"), !rest.hasPrefix("/") {
            rest = rest[scheme.upperBound...]
            rest = rest.firstIndex(of: "/").map { rest[$0...] } ?? "/"
        }
        if let end = rest.firstIndex(where: { $0 == "?" || $0 == "#" }) { rest = rest[..<end] }
        guard rest.hasPrefix("/"), let path = String(rest).removingPercentEncoding, !path.contains("\0")
        else { return nil }
        return path
    }

    // MARK: Files

    /// Opens a regular file. Symbolic links are followed first and the place they lead to is judged, so that
    /// neither `..` nor a link leaves `root`.
    private static func file(_ path: String, below root: String) -> Content {
        guard let real = realPath(root + path), isPath(real, below: root) else { return .missing }
        // O_NONBLOCK: opening a FIFO would wait for a writer.
        let descriptor = open(real, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
        guard descriptor >= 0 else { return .missing }
        var status = stat()
        guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
            close(descriptor)
            return .missing
        }
        return .file(descriptor: descriptor, size: Int(status.st_size), type: mediaType(of: real))
    }

    static func isPath(_ path: String, below root: String) -> Bool {
        root == "/" || path.hasPrefix(root + "/")
    }

    /// `path` without links, `.` and `..`; nil if there is nothing there.
    static func realPath(_ path: String) -> String? {
        guard let resolved = realpath(path, nil) else { return nil }
        defer { free(resolved) }
        return String(cString: resolved)
    }

    static func mediaType(of path: String) -> String {
        switch (path as NSString).pathExtension.lowercased() {
        case "html", "htm": "text/html; charset=utf-8"
        case "txt", "md", "swift", "log": "text/plain; charset=utf-8"
        case "css": "text/css"
        case "js": "text/javascript"
        case "json": "application/json"
        case "png": "image/png"
        case "jpg", "jpeg": "image/jpeg"
        case "gif": "image/gif"
        case "svg": "image/svg+xml"
        case "pdf": "application/pdf"
        default: "application/octet-stream"
        }
    }

    // MARK: Made-up bytes

    /// Fills `buffer` with the bytes from `offset` on. Each eight of them differ from any other eight, so a
    /// piece that is lost, doubled or out of place changes the hash of the whole.
    static func fill(_ buffer: UnsafeMutableRawBufferPointer, from offset: Int) {
        var position = offset
        for index in buffer.indices {
            let word = scrambled(UInt64(position / 8))
            buffer[index] = UInt8(truncatingIfNeeded: word >> UInt64(position % 8 * 8))
            position += 1
        }
    }

    /// The finaliser of SplitMix64, which maps every number to another.
    private static func scrambled(_ number: UInt64) -> UInt64 {
        var word = number &+ 0x9E37_79B9_7F4A_7C15
        word = (word ^ (word >> 30)) &* 0xBF58_476D_1CE4_E5B9
        word = (word ^ (word >> 27)) &* 0x94D0_49BB_1331_11EB
        return word ^ (word >> 31)
    }
}
