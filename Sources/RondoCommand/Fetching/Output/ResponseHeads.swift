import Rondo
import RondoConnections
import RondoHTTP
import RondoMutex

/// Collects the heads of responses as received, for `-i`, `-I` and `-D`, and knows whether a request is sent.
final class HeadLog: Sendable {
    private let heads = Mutex<[ReceivedHead]>([])
    private let sending = Mutex(false)

    /// True from the time at which a request is sent, until another connection is opened.
    var isRequestSent: Bool { sending.withLock { $0 } }

    func note(_ diagnostic: URLConnection.Diagnostic) {
        switch diagnostic.kind {
        case .resolving, .connecting: sending.withLock { $0 = false }
        case .requestHead: sending.withLock { $0 = true }
        case .responseHead: append(diagnostic)
        default: break
        }
    }

    private func append(_ diagnostic: URLConnection.Diagnostic) {
        var text = diagnostic.head ?? ""
        // It has its line ends, but may lack the empty line.
        if !text.hasSuffix("\r\n\r\n") { text += "\r\n" }
        let head = ReceivedHead(text, received: diagnostic.fields)
        heads.withLock { $0.append(head) }
    }

    /// The heads since the last call; if none were received over a connection, one made from the response.
    func take(orMakeFrom response: URLResponse) -> [ReceivedHead] {
        let taken = heads.withLock { heads in
            defer { heads = [] }
            return heads
        }
        if !taken.isEmpty { return taken }
        guard let response = response as? HTTPURLResponse else { return [] }
        let fields = EventLines.fields(of: response).map { "\($0.name): \($0.value)\r\n" }
        return [ReceivedHead("HTTP/1.1 \(response.statusCode)\r\n" + fields.joined() + "\r\n")]
    }
}

/// The text of a head with its status and fields.
struct ReceivedHead: Equatable, Sendable {
    let text: String
    let version: String
    let status: Int
    let fields: [FetchRequest.Field]
    private let received: HeaderFields?

    /// - Parameter received: The fields with values in the bytes that came; nil if they are not known.
    init(_ text: String, received: HeaderFields? = nil) {
        self.text = text
        self.received = received
        // By bytes: what a server sends behind a colon could be one character with it.
        let lines = text.utf8.split(separator: UInt8(ascii: "\n")).map { line in
            line.last == UInt8(ascii: "\r") ? line.dropLast() : line
        }
        let words = (lines.first.map { Substring($0) } ?? "").split(separator: " ", maxSplits: 2)
        version = (words.first ?? "").split(separator: "/").last.map { String($0) } ?? ""
        status = words.count > 1 ? Int(words[1]) ?? 0 : 0
        fields = lines.dropFirst().compactMap(FetchRequest.Field.init(line:))
    }

    static func == (left: ReceivedHead, right: ReceivedHead) -> Bool { left.text == right.text }

    func values(_ name: String) -> [String] {
        fields.filter { $0.name.caseInsensitiveCompare(name) == .orderedSame }.map(\.value)
    }

    func value(_ name: String) -> String? { values(name).first }

    /// The elements of a field that has a list, in lower case.
    private func elements(_ name: String) -> [String] {
        values(name).flatMap { $0.utf8.split(separator: Grammar.comma) }
            .map { FetchRequest.Field.trimmed($0).lowercased() }
    }

    /// The position of the body's first byte in the whole content, by Content-Range; nil if it says none.
    var firstPosition: Int64? {
        let digits = "0123456789"
        let text = value("Content-Range")?.drop { !digits.contains($0) && $0 != "*" }
        return text.flatMap { Int64($0.prefix { digits.contains($0) }) }
    }

    /// True if the content has a coding, by Content-Encoding: decoded it has other bytes, at other positions.
    var hasCoding: Bool {
        elements("Content-Encoding").contains { !["", "identity"].contains($0) }
    }

    /// True if the server keeps the connection open after this response, as far as its head says.
    var keepsConnection: Bool {
        let options = elements("Connection")
        return !options.contains("close") && (version != "1.0" || options.contains("keep-alive"))
    }

    /// The Location as a URI reference.
    var location: String? {
        received?.agreed("Location", as: HeaderFields.reference) ?? value("Location")
    }

    /// The values of Set-Cookie whose cookies can be sent back as they came.
    var cookies: [String] { received.map(SetCookie.values) ?? values("Set-Cookie") }

    /// The entity tag; nil, too, if it cannot be sent back as it came.
    var entityTag: String? {
        if let received, !received.hasReturnableTag { return nil }
        return value("ETag")
    }

    /// The file name that Content-Disposition suggests, without its harmful characters (rule UC-26). As in
    /// curl, filename* is not read, and single quotes are no part of the name.
    var suggestedName: String? {
        let name = value("Content-Disposition").flatMap { FieldParameters.of($0)["filename"] }
        return name.flatMap {
            SuggestedFilename.harmless($0.trimmingCharacters(in: CharacterSet(charactersIn: "'")))
        }
    }
}
