import Rondo
import RondoHTTP

/// Makes the response to a request: a value, which knows files but no connection.
struct Responder: Sendable {
    let site: Site

    func respond(to request: ServedRequest, now: Date = Date()) -> ServedResponse {
        var response = contentResponse(request, now: now)
        if request.method == .head { response.body = ServedBody([]) }
        return response
    }

    private func contentResponse(_ request: ServedRequest, now: Date) -> ServedResponse {
        let keeps = request.keepsConnection
        switch site.content(for: request.target) {
        case .bytes(let count):
            // The bytes never change, so the date is long ago.
            let validators = Validators(
                tag: "bytes-\(count)", modified: Date(timeIntervalSince1970: 946_684_800), now: now)
            return representation(request, validators, size: count, type: MediaTypes.unknown, now: now) {
                .madeUp($0)
            }
        case .file(let file):
            let validators = Validators(tag: file.tag, modified: file.modified, now: now)
            return representation(request, validators, size: file.size, type: file.type, now: now) {
                .file(file, $0)
            }
        case .folder(let path, let listing): return page(ListingPage.html(listing, path: path), keeps)
        case .nothingButBytes: return page(ListingPage.withoutFolder(size: site.size), keeps)
        case .moved(let location):
            return .message(
                301, "this is a folder: its address ends with a slash", fields: [("Location", location)],
                keepsConnection: keeps)
        case .missing: return .message(404, "there is nothing here", keepsConnection: keeps)
        case .forbidden: return .message(403, "the server cannot read this", keepsConnection: keeps)
        case .busy:
            return .message(
                503, "the server has too many files open", fields: [("Retry-After", "1")],
                keepsConnection: keeps)
        }
    }

    private func page(_ html: String, _ keepsConnection: Bool) -> ServedResponse {
        let body = ServedBody(html)
        let fields = [
            ("Content-Type", "text/html; charset=utf-8"), ("Cache-Control", "no-cache"),
            // Served files are shown as text; if a browser shows more, it gets no rights.
            ("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'"),
            ("X-Content-Type-Options", "nosniff"),
        ]
        return ServedResponse(
            status: 200, fields: fields, body: body, length: body.count, keepsConnection: keepsConnection)
    }

    // MARK: Representations with validators and ranges

    private func representation(
        _ request: ServedRequest, _ validators: Validators, size: Int, type: String, now: Date,
        part: (Range<Int>) -> ServedBody.Part
    ) -> ServedResponse {
        let keeps = request.keepsConnection
        var fields = [
            ("ETag", validators.tag), ("Last-Modified", HTTPDate.format(validators.modified)),
            ("Accept-Ranges", "bytes"), ("Cache-Control", "no-cache"), ("X-Content-Type-Options", "nosniff"),
        ]
        let heedsRange: Bool
        switch validators.judge(request.fields, now: now) {
        case .notModified:
            return ServedResponse(
                status: 304, fields: fields, body: ServedBody([]), length: nil, keepsConnection: keeps)
        case .preconditionFailed:
            return .message(412, "this is another version of it", keepsConnection: keeps)
        case .answer(let heeds): heedsRange = heeds
        }
        // Range is defined only for GET (RFC 9110, section 14.2).
        let range = heedsRange && request.method == .get ? request.fields["Range"] : nil
        switch RangeChoice(field: range, size: size) {
        case .whole:
            fields.append(("Content-Type", type))
            return ServedResponse(
                status: 200, fields: fields, body: ServedBody([part(0..<size)]), length: size,
                keepsConnection: keeps)
        case .unsatisfiable:
            return .message(
                416, "there are \(size) bytes", fields: [("Content-Range", "bytes */\(size)")],
                keepsConnection: keeps)
        case .parts(let ranges):
            guard ranges.count > 1 else {
                fields += [("Content-Type", type), ("Content-Range", Self.contentRange(ranges[0], of: size))]
                return ServedResponse(
                    status: 206, fields: fields, body: ServedBody([part(ranges[0])]), length: ranges[0].count,
                    keepsConnection: keeps)
            }
            let boundary = "rondo" + String(UInt64.random(in: .min ... .max), radix: 36)
            let body = Self.multipart(ranges, boundary: boundary, size: size, type: type, part: part)
            fields.append(("Content-Type", "multipart/byteranges; boundary=\(boundary)"))
            return ServedResponse(
                status: 206, fields: fields, body: body, length: body.count, keepsConnection: keeps)
        }
    }

    private static func contentRange(_ range: Range<Int>, of size: Int) -> String {
        "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(size)"
    }

    /// The parts of a multipart/byteranges response (RFC 9110, section 14.6).
    private static func multipart(
        _ ranges: [Range<Int>], boundary: String, size: Int, type: String,
        part: (Range<Int>) -> ServedBody.Part
    ) -> ServedBody {
        var parts: [ServedBody.Part] = []
        for range in ranges {
            let head = """
                --\(boundary)\r\nContent-Type: \(type)\r\nContent-Range: \(contentRange(range, of: size))\r\n\r\n
                """
            parts += [.text(Array(((parts.isEmpty ? "" : "\r\n") + head).utf8)), part(range)]
        }
        return ServedBody(parts + [.text(Array("\r\n--\(boundary)--\r\n".utf8))])
    }
}
