import Rondo

/// Finds the content for a path: a file or folder below the served folder, or made-up bytes.
struct Site: Sendable {
    enum Content {
        case bytes(Int)
        case file(ServedFile)
        /// A folder without index.html; its path ends with a slash.
        case folder(path: [UInt8], FolderListing)
        /// No folder is served, only made-up bytes.
        case nothingButBytes
        /// A folder whose path lacks the slash at its end.
        case moved(to: String)
        case missing
        case forbidden
        /// There is no descriptor for the file now.
        case busy
    }

    static let usualSize = 1 << 20

    /// The folder that is served; nil if only made-up bytes are.
    let folder: ServedFolder?
    /// The number of bytes at `/bytes`.
    let size: Int

    /// - Parameter target: The request target as in the request line.
    func content(for target: String) -> Content {
        guard let path = TargetPath.decoded(target) else { return .missing }
        let text = String(decoding: path, as: UTF8.self)
        if text == "/bytes" { return .bytes(size) }
        if text.hasPrefix("/bytes/"), let count = Int(text.dropFirst("/bytes/".count)),
            0...ServerLimits.size ~= count
        {
            return .bytes(count)
        }
        guard let folder else { return text == "/" ? .nothingButBytes : .missing }
        return content(folder, path, query: TargetPath.query(target))
    }

    private func content(_ folder: ServedFolder, _ path: [UInt8], query: Substring) -> Content {
        switch folder.find(path) {
        case .file(let file): return .file(file)
        case .missing: return .missing
        case .forbidden: return .forbidden
        case .busy: return .busy
        case .folder: break
        }
        guard path.last == UInt8(ascii: "/") else {
            return .moved(to: TargetPath.encoded(path) + "/" + query)
        }
        switch folder.find(path + Array("index.html".utf8)) {
        case .file(let file): return .file(file)
        case .forbidden: return .forbidden
        case .busy: return .busy
        case .missing, .folder: break
        }
        switch folder.list(path) {
        case .entries(let listing): return .folder(path: path, listing)
        case .forbidden: return .forbidden
        case .busy: return .busy
        }
    }
}

/// Decodes and encodes paths of requests.
enum TargetPath {
    /// The decoded path of an origin-form or absolute-form target (RFC 9112, section 3.2), without the query.
    /// Nil for other targets, and if the path contains a NUL.
    static func decoded(_ target: String) -> [UInt8]? {
        let path = path(target).prefix { $0 != "?" && $0 != "#" }
        guard path.hasPrefix("/") else { return nil }
        var decoded: [UInt8] = []
        var bytes = path.utf8[...]
        while let byte = bytes.popFirst() {
            guard byte == UInt8(ascii: "%") else {
                decoded.append(byte)
                continue
            }
            guard let high = bytes.popFirst().flatMap(digit), let low = bytes.popFirst().flatMap(digit) else {
                return nil
            }
            decoded.append(high << 4 | low)
        }
        return decoded.contains(0) ? nil : decoded
    }

    /// The query with its question mark; empty if there is none.
    static func query(_ target: String) -> Substring {
        let path = path(target).prefix { $0 != "#" }
        return path.firstIndex(of: "?").map { path[$0...] } ?? ""
    }

    /// The path as a reference within this server. It begins with one slash: two would name another host.
    static func encoded(_ path: some Collection<UInt8>) -> String {
        let relative = path.drop { $0 == UInt8(ascii: "/") }
        return "/" + encodedName(relative)
    }

    /// The name without a leading slash; slashes inside remain.
    static func encodedName(_ name: some Collection<UInt8>) -> String {
        var text = ""
        for byte in name {
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."),
                UInt8(ascii: "_"), UInt8(ascii: "~"), UInt8(ascii: "/"):
                text.unicodeScalars.append(Unicode.Scalar(byte))
            default:
                text += "%" + (byte < 16 ? "0" : "") + String(byte, radix: 16, uppercase: true)
            }
        }
        return text
    }

    private static func path(_ target: String) -> Substring {
        guard !target.hasPrefix("/"), let scheme = target.range(of: "://") else { return target[...] }
        let rest = target[scheme.upperBound...]
        return rest.firstIndex { $0 == "/" || $0 == "?" }.map {
            rest[$0] == "/" ? rest[$0...] : "/" + rest[$0...]
        }
            ?? "/"
    }

    private static func digit(_ byte: UInt8) -> UInt8? {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0")
        case UInt8(ascii: "A")...UInt8(ascii: "F"): byte - UInt8(ascii: "A") + 10
        case UInt8(ascii: "a")...UInt8(ascii: "f"): byte - UInt8(ascii: "a") + 10
        default: nil
        }
    }
}
