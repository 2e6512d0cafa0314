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
        var headers: [String] = []
    }

    /// Text behind a value: `;type=`, `;filename=` and `;headers=`.
    private struct Attributes {
        var type: String?
        var fileName: String?
        var headers: [String] = []
    }

    var name: String
    var content: Content
    var type: String?
    var fileName: String?
    var headers: [String] = []
    /// What has been left out.
    private(set) var warnings: [String] = []

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
        if rest.first == "(" || name.isEmpty && rest == ")" {
            throw CommandFailure.usage(
                "-F: a multipart in a form is not there; in double quotes, ( is a character: \(text)")
        }
        switch rest.first {
        case "@":
            var files: [File] = []
            repeat {
                rest = rest.dropFirst()
                let path = word(&rest, upTo: ";,")
                let attributes = try takeAttributes(&rest, upTo: ";,")
                files.append(
                    File(
                        path: path, type: attributes.type, fileName: attributes.fileName,
                        headers: attributes.headers))
            } while rest.first == ","
            content = .files(files)
        case "<":
            rest = rest.dropFirst()
            content = .contentOf(word(&rest, upTo: ";"))
            let attributes = try takeAttributes(&rest, upTo: ";")
            (type, headers) = (attributes.type, attributes.headers)
            if let name = attributes.fileName { warnings.append("-F: a file name has no use here: \(name)") }
        default:
            content = .text(word(&rest, upTo: ";"))
            let attributes = try takeAttributes(&rest, upTo: ";")
            (type, fileName, headers) = (attributes.type, attributes.fileName, attributes.headers)
        }
    }

    /// Takes a word, without the blanks around it, or text in double quotes.
    private mutating func word(_ rest: inout Substring, upTo ends: String) -> String {
        rest = rest.drop(while: InputFile.isBlank)
        let text = Self.quoted(&rest)
        let word = rest.prefix { !ends.contains($0) }
        rest = rest[word.endIndex...]
        guard let quoted = text else { return Self.trimmed(word) }
        if !word.allSatisfy(InputFile.isBlank) {
            warnings.append("-F: what follows a quote is left out: \(word)")
        }
        return quoted
    }

    /// Takes text in double quotes with `\"` and `\\`; nil if there is none, or no quote at its end.
    private static func quoted(_ rest: inout Substring) -> String? {
        guard rest.first == "\"" else { return nil }
        var (text, quoted) = ("", rest.dropFirst())
        while let character = quoted.popFirst() {
            if character == "\"" {
                rest = quoted
                return text
            }
            if character == "\\", let next = quoted.first, next == "\"" || next == "\\" {
                text.append(next)
                quoted = quoted.dropFirst()
            } else {
                text.append(character)
            }
        }
        return nil
    }

    /// The text without the blanks at its end.
    private static func trimmed(_ text: some StringProtocol) -> String {
        var text = String(text)
        while let last = text.last, InputFile.isBlank(last) { text.removeLast() }
        return text
    }

    private mutating func takeAttributes(_ rest: inout Substring, upTo ends: String) throws -> Attributes {
        var attributes = Attributes()
        let text = rest
        /// The beginning of the media type, while its parameters may follow.
        var typeStart: String.Index?
        while rest.first == ";" {
            rest = rest.dropFirst().drop(while: InputFile.isBlank)
            let key = rest.prefix { $0 != "=" && !ends.contains($0) }
            let value = rest[key.endIndex...]
            let name = value.first == "=" ? key.lowercased() : ""
            if ["filename", "headers", "encoder"].contains(name) {
                rest = value.dropFirst()
                typeStart = nil
            }
            switch name {
            case "type" where typeStart == nil:
                rest = value.dropFirst().drop(while: InputFile.isBlank)
                guard rest.prefixMatch(of: /[^\/ ]+\/[^;, \n]/) != nil else {
                    throw CommandFailure.usage("-F: illegally formatted content type: \(text)")
                }
                typeStart = rest.startIndex
            case "filename": attributes.fileName = word(&rest, upTo: ends)
            case "headers":
                if rest.first == "@" || rest.first == "<" {
                    rest = rest.dropFirst()
                    attributes.headers += try Self.fields(ofFile: word(&rest, upTo: ends))
                } else {
                    attributes.headers.append(word(&rest, upTo: ends))
                }
            case "encoder":
                throw CommandFailure.usage(
                    "-F: ;encoder= is not there; encode the file before, and use ;headers=: \(text)")
            default:
                if typeStart == nil {
                    let unknown = word(&rest, upTo: ends)
                    if !unknown.isEmpty { warnings.append("-F: skip unknown form field: \(unknown)") }
                }
            }
            if let typeStart {
                rest = rest.drop { !ends.contains($0) }
                attributes.type = Self.trimmed(text[typeStart..<rest.startIndex])
            }
        }
        return attributes
    }

    /// The fields in a file. A line that begins with a blank continues the one before; # begins a comment.
    private static func fields(ofFile path: String) throws -> [String] {
        var fields: [String] = []
        for line in InputFile.lines(of: try InputFile.text(path, for: "-F")) {
            guard let first = line.first, first != "#" else { continue }
            let begun = InputFile.isBlank(first) ? fields.popLast() ?? "" : ""
            // A carriage return would end the field where it is sent.
            fields.append(begun + String(line.filter { $0 != "\r" }))
        }
        return fields.map { trimmed($0) }.filter { !$0.isEmpty }
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
            add(part, fileName: part.fileName, type: part.type, part.headers, .bytes(Data(text.utf8)))
        case .contentOf(let path):
            let data = try InputFile.data(path, for: "-F")
            add(part, fileName: part.fileName, type: part.type, part.headers, .bytes(data))
        case .files(let files) where files.count == 1:
            let file = files[0]
            let segment = try Self.segment(file.path)
            add(part, fileName: file.name, type: file.sentType, file.headers, segment)
        case .files(let files): try add(part, files)
        }
    }

    private mutating func add(
        _ part: FormPart, fileName: String?, type: String?, _ headers: [String],
        _ segment: MultipartForm.Segment
    ) {
        var head = "--\(boundary)\r\nContent-Disposition: form-data"
        if !part.name.isEmpty { head += "; name=\"\(Self.escaped(part.name))\"" }
        if let fileName { head += "; filename=\"\(Self.escaped(fileName))\"" }
        head += "\r\n"
        if let type { head += "Content-Type: \(type)\r\n" }
        for field in headers { head += field + "\r\n" }
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
            for field in file.headers { head += field + "\r\n" }
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
