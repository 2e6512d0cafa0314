import Rondo

/// The head of a request, as far as a server of files needs to know it.
struct ServedRequest: Equatable {
    enum Method: Equatable {
        case get, head
    }

    /// Why a request is refused, by status.
    enum Refusal: Int, Error, Equatable {
        case badRequest = 400
        case notFound = 404
        case methodNotAllowed = 405
        case requestTimeout = 408
        case contentTooLarge = 413
        case headTooLarge = 431
        case versionNotSupported = 505

        var reason: String {
            switch self {
            case .badRequest: "Bad Request"
            case .notFound: "Not Found"
            case .methodNotAllowed: "Method Not Allowed"
            case .requestTimeout: "Request Timeout"
            case .contentTooLarge: "Content Too Large"
            case .headTooLarge: "Request Header Fields Too Large"
            case .versionNotSupported: "HTTP Version Not Supported"
            }
        }
    }

    let method: Method
    let target: String
    let keepsConnection: Bool

    /// - Parameter head: everything before the empty line.
    init(head: String) throws(Refusal) {
        // "\r\n" is a single Character, which splitting at "\n" would not find.
        var lines = head.unicodeScalars.split(separator: "\n", omittingEmptySubsequences: false)
            .map { String(String.UnicodeScalarView($0.last == "\r" ? $0.dropLast() : $0)) }
        let words = lines.removeFirst().split(separator: " ", omittingEmptySubsequences: false)
        guard words.count == 3 else { throw .badRequest }
        guard words[2].hasPrefix("HTTP/1.") else { throw .versionNotSupported }
        switch words[0] {
        case "GET": method = .get
        case "HEAD": method = .head
        default: throw .methodNotAllowed
        }
        target = String(words[1])
        var keeps = words[2] != "HTTP/1.0"
        for line in lines {
            guard let colon = line.firstIndex(of: ":"), colon != line.startIndex else { throw .badRequest }
            let value = line[line.index(after: colon)...].trimmingCharacters(in: .whitespaces).lowercased()
            switch line[..<colon].lowercased() {
            case "connection" where value.contains("close"): keeps = false
            case "connection" where value.contains("keep-alive"): keeps = true
            // No body is ever read, so a request that has one is refused and the connection closed.
            case "content-length" where value != "0": throw .contentTooLarge
            case "transfer-encoding": throw .contentTooLarge
            default: break
            }
        }
        keepsConnection = keeps
    }
}

/// The head of a response.
struct ServedResponse: Equatable {
    var status: Int
    var reason: String
    var type: String
    var length: Int
    var keepsConnection: Bool

    var head: String {
        var lines = [
            "HTTP/1.1 \(status) \(reason)",
            "Content-Type: \(type)",
            "Content-Length: \(length)",
            "Connection: \(keepsConnection ? "keep-alive" : "close")",
        ]
        if status == ServedRequest.Refusal.methodNotAllowed.rawValue { lines.append("Allow: GET, HEAD") }
        return lines.map { $0 + "\r\n" }.joined() + "\r\n"
    }
}
