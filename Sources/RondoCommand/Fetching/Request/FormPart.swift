import Rondo
import RondoHTTP

/// A field of a multipart form in the notation of `-F`: `name=value;type=text/plain`,
/// `name=@file;filename=other`, `name=<file`.
struct FormPart: Equatable, Sendable {
    enum Content: Equatable, Sendable {
        case text(String)
        /// The content of a file as a value, not as an upload.
        case contentOf(String)
        /// Uploads of files; several files share the field's name.
        case files([File])
    }

    struct File: Equatable, Sendable {
        var path: String
        var type: String?
        var fileName: String?
    }

    var name: String
    var content: Content
    var type: String?
    var fileName: String?
    var headers: [String] = []

    /// Makes a field of `name=value` without special characters.
    init(string text: String) throws {
        guard let equals = text.firstIndex(of: "=") else {
            throw CommandFailure.usage("--form-string: illegally formatted input field: \(text)")
        }
        name = String(text[..<equals])
        content = .text(String(text[text.index(after: equals)...]))
    }

    init(_ text: String) throws {
        guard let equals = text.firstIndex(of: "=") else {
            throw CommandFailure.usage("-F: illegally formatted input field: \(text)")
        }
        name = String(text[..<equals])
        content = .text("")
        var rest = text[text.index(after: equals)...]
        switch rest.first {
        case "@":
            var files: [File] = []
            repeat {
                rest = rest.dropFirst()
                var file = File(path: Self.word(&rest, upTo: ";,"))
                (file.type, file.fileName) = try takeAttributes(&rest, upTo: ";,")
                files.append(file)
            } while rest.first == ","
            content = .files(files)
        case "<":
            rest = rest.dropFirst()
            content = .contentOf(Self.word(&rest, upTo: ";"))
            (type, fileName) = try takeAttributes(&rest, upTo: ";")
        default:
            content = .text(Self.word(&rest, upTo: ";"))
            (type, fileName) = try takeAttributes(&rest, upTo: ";")
        }
    }

    /// A word, or text in double quotes with `\"` and `\\`.
    private static func word(_ rest: inout Substring, upTo ends: String) -> String {
        var quoted = rest.drop { $0 == " " }
        if quoted.first == "\"" {
            quoted = quoted.dropFirst()
            var text = ""
            while let character = quoted.popFirst(), character != "\"" {
                if character == "\\", let next = quoted.first, next == "\"" || next == "\\" {
                    text.append(next)
                    quoted = quoted.dropFirst()
                } else {
                    text.append(character)
                }
            }
            rest = quoted.drop { !ends.contains($0) }
            return text
        }
        let word = rest.prefix { !ends.contains($0) }
        rest = rest.dropFirst(word.count)
        return String(word)
    }

    private mutating func takeAttributes(
        _ rest: inout Substring, upTo ends: String
    ) throws -> (type: String?, fileName: String?) {
        var (type, fileName): (String?, String?)
        while rest.first == ";" {
            rest = rest.dropFirst().drop { $0 == " " }
            let attribute = rest.prefix { $0 != "=" && !ends.contains($0) }
            rest = rest.dropFirst(attribute.count)
            guard rest.first == "=" else { continue }
            rest = rest.dropFirst()
            switch attribute.lowercased() {
            case "type":
                type = Self.word(&rest, upTo: ends)
                // A parameter of the media type follows a semicolon too.
                while rest.first == ";", Self.isParameter(rest.dropFirst()) {
                    rest = rest.dropFirst()
                    type? += ";" + Self.word(&rest, upTo: ends)
                }
            case "filename": fileName = Self.word(&rest, upTo: ends)
            case "headers":
                let value = Self.word(&rest, upTo: ends)
                headers += try InputFile.fields(value, for: "-F")
            // Encoders are ignored: servers of today do not need them.
            case "encoder": _ = Self.word(&rest, upTo: ends)
            default: _ = Self.word(&rest, upTo: ends)
            }
        }
        return (type, fileName)
    }

    private static func isParameter(_ text: Substring) -> Bool {
        let name = text.drop { $0 == " " }.prefix { $0 != "=" && $0 != ";" }.lowercased()
        return !["type", "filename", "headers", "encoder", ""].contains(name)
    }
}

/// The layout of a multipart form as it is sent, in curl's form; its files are not read yet.
struct FormBody: Equatable, Sendable {
    let boundary: String
    private(set) var segments: [MultipartForm.Segment] = []

    var contentType: String { "multipart/form-data; boundary=\(boundary)" }
    var length: Int64 { segments.reduce(0) { $0 + $1.length } }

    init(_ parts: [FormPart]) throws {
        boundary = Self.randomBoundary()
        for part in parts { try append(part) }
        segments.append(.bytes(Data("--\(boundary)--\r\n".utf8)))
    }

    private mutating func append(_ part: FormPart) throws {
        switch part.content {
        case .text(let text):
            add(part, fileName: part.fileName, type: part.type, .bytes(Data(text.utf8)))
        case .contentOf(let path):
            let data = try InputFile.data(path, for: "-F")
            add(part, fileName: part.fileName, type: part.type, .bytes(data))
        case .files(let files) where files.count == 1:
            let file = files[0]
            add(part, fileName: file.name, type: file.sentType, try Self.segment(file.path))
        case .files(let files): try add(part, files)
        }
    }

    private mutating func add(
        _ part: FormPart, fileName: String?, type: String?, _ segment: MultipartForm.Segment
    ) {
        var head = "--\(boundary)\r\nContent-Disposition: form-data"
        if !part.name.isEmpty { head += "; name=\"\(Self.escaped(part.name))\"" }
        if let fileName { head += "; filename=\"\(Self.escaped(fileName))\"" }
        head += "\r\n"
        if let type { head += "Content-Type: \(type)\r\n" }
        for field in part.headers { head += field + "\r\n" }
        segments += [.bytes(Data((head + "\r\n").utf8)), segment, .bytes(Data("\r\n".utf8))]
    }

    /// Several files of one name become a nested multipart, as in curl (RFC 7578 calls that obsolete).
    private mutating func add(_ part: FormPart, _ files: [FormPart.File]) throws {
        let inner = Self.randomBoundary()
        var head =
            "--\(boundary)\r\nContent-Disposition: form-data; name=\"\(Self.escaped(part.name))\"\r\n"
        head += "Content-Type: multipart/mixed; boundary=\(inner)\r\n\r\n"
        segments.append(.bytes(Data(head.utf8)))
        for file in files {
            var head =
                "--\(inner)\r\nContent-Disposition: attachment; filename=\"\(Self.escaped(file.name))\"\r\n"
            if let type = file.sentType { head += "Content-Type: \(type)\r\n" }
            segments += [
                .bytes(Data((head + "\r\n").utf8)), try Self.segment(file.path), .bytes(Data("\r\n".utf8)),
            ]
        }
        segments.append(.bytes(Data("--\(inner)--\r\n\r\n".utf8)))
    }

    private static func randomBoundary() -> String {
        var generator = SystemRandomNumberGenerator()
        let digits = String(UInt64.random(in: (1 << 60)...(.max), using: &generator), radix: 16)
        return String(repeating: "-", count: 24) + digits
    }

    private static func segment(_ path: String) throws -> MultipartForm.Segment {
        var status = stat()
        if path != "-", stat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG {
            guard access(path, R_OK) == 0 else { return .bytes(try InputFile.data(path, for: "-F")) }
            return .file(path: path, length: Int64(status.st_size))
        }
        return .bytes(try InputFile.data(path, for: "-F"))
    }

    /// Escapes a name as the WHATWG's HTML standard prescribes.
    private static func escaped(_ text: String) -> String {
        text.replacingOccurrences(of: "\"", with: "%22").replacingOccurrences(of: "\r", with: "%0D")
            .replacingOccurrences(of: "\n", with: "%0A")
    }
}

extension FormPart.File {
    var name: String { fileName ?? (path == "-" ? "-" : (path as NSString).lastPathComponent) }

    /// The media type that is sent; nil if none is.
    var sentType: String? {
        type ?? Self.type(ofFile: name) ?? (path == "-" ? nil : "application/octet-stream")
    }

    /// The media types that curl knows.
    private static func type(ofFile name: String) -> String? {
        let types = [
            "gif": "image/gif", "jpg": "image/jpeg", "jpeg": "image/jpeg", "png": "image/png",
            "svg": "image/svg+xml", "txt": "text/plain", "htm": "text/html", "html": "text/html",
            "pdf": "application/pdf", "xml": "application/xml",
        ]
        return types[(name as NSString).pathExtension.lowercased()]
    }
}
