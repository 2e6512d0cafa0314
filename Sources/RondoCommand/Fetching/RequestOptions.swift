import Rondo

/// The part of the command line that makes the request, read as curl reads it.
struct RequestOptions {
    var url: String
    var method: String?
    var headers: [String] = []
    var data: [String] = []
    var head = false
    var user: String?

    func request() throws -> URLRequest {
        guard let url = Self.url(from: url) else {
            throw CommandFailure.usage("this is no URL: \(self.url)")
        }
        if head && !data.isEmpty {
            throw CommandFailure.usage("-I asks for a head alone and -d sends data: they exclude each other")
        }
        if let method, !Self.isToken(method) {
            throw CommandFailure.usage("-X: no name of a method: \(method)")
        }
        var request = URLRequest(url: url, cachePolicy: .reloadIgnoringLocalCacheData)
        // As curl: what one call receives, the next does not send.
        request.httpShouldHandleCookies = false
        request.httpMethod = method ?? (head ? "HEAD" : data.isEmpty ? "GET" : "POST")
        request.setValue("*/*", forHTTPHeaderField: "Accept")
        request.setValue("rondo", forHTTPHeaderField: "User-Agent")
        if let user { request.setValue(Self.basic(user), forHTTPHeaderField: "Authorization") }
        if !data.isEmpty {
            request.httpBody = try Self.form(data)
            request.setValue("application/x-www-form-urlencoded", forHTTPHeaderField: "Content-Type")
        }
        for header in headers { try Self.apply(header, to: &request) }
        return request
    }

    // MARK: Each by itself

    /// `text` as a URL; a host alone, or with a port or a path, is one of http.
    static func url(from text: String) -> URL? {
        // `localhost:80` is a host and its port, so a scheme counts by its slashes, or where it is known.
        let hasScheme = text.contains(/^([A-Za-z][A-Za-z0-9+.\-]*:\/\/|data:|file:)/)
        guard let url = URL(string: hasScheme ? text : "http://" + text), url.scheme != nil else {
            return nil
        }
        let needsHost = ["http", "https"].contains(url.scheme?.lowercased())
        return needsHost && (url.host ?? "").isEmpty ? nil : url
    }

    /// RFC 7617. A name without a colon has an empty password.
    static func basic(_ user: String) -> String {
        let pair = user.contains(":") ? user : user + ":"
        return "Basic " + Data(pair.utf8).base64EncodedString()
    }

    /// The names that `Name:` leaves out, the default fields among them.
    static func omittedFields(_ headers: [String]) -> [String] {
        headers.compactMap { header in
            guard let colon = header.firstIndex(of: ":"),
                header[header.index(after: colon)...].allSatisfy(\.isWhitespace)
            else { return nil }
            return header[..<colon].trimmingCharacters(in: .whitespaces)
        }
    }

    /// Applies `Name: value`, `Name;` (an empty value) or `Name:` (the field is left out).
    static func apply(_ header: String, to request: inout URLRequest) throws {
        let scalars = header.unicodeScalars
        guard !scalars.contains(where: { $0.value < 0x20 && $0 != "\t" || $0.value == 0x7F }) else {
            throw CommandFailure.usage("-H: a field cannot hold control characters")
        }
        if let colon = header.firstIndex(of: ":") {
            let name = header[..<colon].trimmingCharacters(in: .whitespaces)
            let value = header[header.index(after: colon)...].trimmingCharacters(in: .whitespaces)
            guard isToken(name) else { throw CommandFailure.usage("-H: no name of a field: \(name)") }
            request.setValue(value.isEmpty ? nil : value, forHTTPHeaderField: name)
        } else if header.hasSuffix(";"), isToken(String(header.dropLast())) {
            request.setValue("", forHTTPHeaderField: String(header.dropLast()))
        } else {
            throw CommandFailure.usage("-H wants 'Name: value', 'Name;' or 'Name:', not '\(header)'")
        }
    }

    /// RFC 9110, section 5.6.2.
    private static func isToken(_ text: String) -> Bool {
        !text.isEmpty
            && text.unicodeScalars.allSatisfy {
                $0.isASCII
                    && ($0.properties.isAlphabetic || $0.properties.numericType != nil
                        || "!#$%&'*+-.^_`|~".unicodeScalars.contains($0))
            }
    }

    /// The pieces joined by `&`. `@FILE` stands for what the file holds without its line ends and NULs.
    static func form(_ pieces: [String]) throws -> Data {
        var body = Data()
        for (index, piece) in pieces.enumerated() {
            if index > 0 { body.append(UInt8(ascii: "&")) }
            guard piece.hasPrefix("@") else {
                body.append(contentsOf: piece.utf8)
                continue
            }
            let path = String(piece.dropFirst())
            do {
                let file =
                    path == "-"
                    ? try FileHandle.standardInput.readToEnd() ?? Data()
                    : try Data(contentsOf: URL(fileURLWithPath: path))
                body.append(contentsOf: file.filter { $0 != 13 && $0 != 10 && $0 != 0 })
            } catch {
                throw CommandFailure.usage("-d: cannot read \(path): \(error.localizedDescription)")
            }
        }
        return body
    }
}
