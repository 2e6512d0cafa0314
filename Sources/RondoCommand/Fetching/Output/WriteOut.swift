import Rondo
import RondoLab

/// The text that `-w` prints after a transfer, in curl's format: `%{name}`, `%header{name}` and the escapes
/// `\n`, `\r`, `\t`.
struct WriteOut: Equatable, Sendable {
    private enum Piece: Equatable, Sendable {
        case text(String)
        case variable(String)
        case header(String)
    }

    /// A piece of text with its destination.
    struct Line: Equatable {
        var text: String
        var isError: Bool
    }

    private let pieces: [Piece]

    init(_ format: String) {
        var pieces: [Piece] = []
        var text = ""
        var rest = format[...]
        while let character = rest.popFirst() {
            switch character {
            case "%" where rest.first == "%":
                rest = rest.dropFirst()
                text += "%"
            case "%":
                guard let piece = Self.variable(&rest) else {
                    text += "%"
                    continue
                }
                if !text.isEmpty { pieces.append(.text(text)) }
                text = ""
                pieces.append(piece)
            case "\\":
                switch rest.popFirst() {
                case "n": text += "\n"
                case "r": text += "\r"
                case "t": text += "\t"
                case let other?: text += "\\\(other)"
                case nil: text += "\\"
                }
            default: text.append(character)
            }
        }
        if !text.isEmpty { pieces.append(.text(text)) }
        self.pieces = pieces
    }

    private static func variable(_ rest: inout Substring) -> Piece? {
        let isHeader = rest.hasPrefix("header{")
        guard isHeader || rest.first == "{", let end = rest.firstIndex(of: "}") else { return nil }
        let name = String(rest[..<end].dropFirst(isHeader ? 7 : 1))
        rest = rest[rest.index(after: end)...]
        return isHeader ? .header(name) : .variable(name)
    }

    /// The variables of curl that are always empty here: details of servers' certificates are not kept.
    var emptyNames: [String] {
        pieces.compactMap {
            if case .variable(let name) = $0, ["certs", "num_certs"].contains(name) { name } else { nil }
        }
    }

    /// The unknown variables, which are skipped.
    var unknownNames: [String] {
        let known = Set(TransferRecord().values.map(\.0)).union([
            "json", "header_json", "onerror", "stdout", "stderr",
        ])
        return pieces.compactMap {
            if case .variable(let name) = $0, !known.contains(name) { name } else { nil }
        }
    }

    func lines(for record: TransferRecord) -> [Line] {
        var lines = [Line(text: "", isError: false)]
        for piece in pieces {
            let last = lines.count - 1
            switch piece {
            case .text(let text): lines[last].text += text
            case .header(let name): lines[last].text += record.head?.value(name) ?? ""
            case .variable("json"): lines[last].text += record.json.text
            case .variable("header_json"): lines[last].text += record.headerJSON
            case .variable("onerror"): if record.exitStatus == 0 { return lines }
            case .variable("stderr"): lines.append(Line(text: "", isError: true))
            case .variable("stdout"): lines.append(Line(text: "", isError: false))
            case .variable("http_code"), .variable("response_code"):
                lines[last].text += Self.code(record.status)
            case .variable("http_connect"): lines[last].text += Self.code(record.connectStatus)
            case .variable(let name):
                lines[last].text += record.values.first { $0.0 == name }.map { Self.plain($0.1) } ?? ""
            }
        }
        return lines.filter { !$0.text.isEmpty }
    }

    /// The status with three digits.
    private static func code(_ status: Int) -> String {
        String(repeating: "0", count: max(0, 3 - String(status).count)) + String(status)
    }

    private static func plain(_ value: JSONText) -> String {
        switch value {
        case .string(let text): text
        case .number(let seconds): TextFormats.fixed(seconds, digits: 6)
        case .null: ""
        case .bool, .integer, .array, .object: value.text
        }
    }
}

/// The data of a finished transfer, in curl's units: seconds since the start, and bytes.
struct TransferRecord {
    var number = 0
    var urlText = ""
    var effectiveURL = ""
    var scheme = ""
    var method = ""
    var referer: String?
    var status = 0
    /// The status of a proxy's answer to CONNECT.
    var connectStatus = 0
    var head: ReceivedHead?
    var redirectCount = 0
    /// The target of a redirect that was not followed.
    var redirectURL: String?
    var retries = 0
    var fileName: String?
    var bodySize = 0
    var headSize = 0
    /// Each load, with the seconds from the start of the transfer to the start of the load.
    var loads: [(metrics: URLConnection.Metrics, offset: Double)] = []
    var duration = 0.0
    var failure: String?
    var exitStatus: Int32 = 0
    var isVerified = true
    var isSecure: Bool { scheme == "HTTPS" }

    /// Forgets the response of an earlier attempt.
    mutating func beginAttempt() {
        (status, head, redirectCount, bodySize) = (0, nil, 0, 0)
    }

    private var transfers: [(transfer: URLConnection.Transfer, offset: Double)] {
        loads.flatMap { load in load.metrics.transfers.map { ($0, load.offset) } }
    }

    var values: [(String, JSONText)] {
        let transfers = transfers
        let last = transfers.last
        let remote = Self.parts(of: last?.transfer.remoteAddress)
        let local = Self.parts(of: last?.transfer.localAddress)
        let seconds = { (value: Double?) in JSONText.number(value ?? 0) }
        let time = { (value: TimeInterval?) in seconds(value.map { $0 + (last?.offset ?? 0) }) }
        let sent = transfers.reduce(0) { $0 + $1.transfer.bodyBytesSent }
        let requestSize = transfers.reduce(0) { $0 + $1.transfer.headBytesSent }
        let speed = { (count: Int) in JSONText.integer(duration > 0 ? Int(Double(count) / duration) : 0) }
        let connectEnd = last?.transfer.connectEnd
        return [
            ("certs", .string("")), ("content_type", .optional(head?.value("Content-Type"))),
            ("errormsg", .optional(failure)), ("exitcode", .integer(Int(exitStatus))),
            ("filename_effective", .optional(fileName)), ("ftp_entry_path", .null),
            ("http_code", .integer(status)), ("http_connect", .integer(connectStatus)),
            ("http_version", .string(head?.version ?? "0")), ("local_ip", .string(local.host)),
            ("local_port", .integer(local.port)), ("method", .string(method)), ("num_certs", .integer(0)),
            ("num_connects", .integer(transfers.count { $0.transfer.connectStart != nil })),
            ("num_headers", .integer(head?.fields.count ?? 0)), ("num_redirects", .integer(redirectCount)),
            ("num_retries", .integer(retries)), ("proxy_ssl_verify_result", .integer(0)),
            ("redirect_url", .optional(redirectURL)), ("referer", .optional(referer)),
            ("remote_ip", .string(remote.host)), ("remote_port", .integer(remote.port)),
            ("response_code", .integer(status)), ("scheme", .optional(scheme.isEmpty ? nil : scheme)),
            ("size_download", .integer(bodySize)), ("size_header", .integer(headSize)),
            ("size_request", .integer(requestSize)), ("size_upload", .integer(sent)),
            ("speed_download", speed(bodySize)), ("speed_upload", speed(sent)),
            ("ssl_verify_result", .integer(isVerified ? 0 : 1)),
            ("time_appconnect", time(last?.transfer.secureEnd)), ("time_connect", time(connectEnd)),
            ("time_namelookup", time(last?.transfer.lookUpEnd ?? last?.transfer.connectStart)),
            ("time_pretransfer", time(last?.transfer.requestStart)),
            ("time_redirect", seconds(redirectCount > 0 ? loads.last?.offset : 0)),
            ("time_starttransfer", time(last?.transfer.responseStart)), ("time_total", seconds(duration)),
            ("url", .string(urlText)), ("url_effective", .string(effectiveURL)), ("urlnum", .integer(number)),
        ]
    }

    /// The host and port of "127.0.0.1:80" or "[::1]:80".
    private static func parts(of address: String?) -> (host: String, port: Int) {
        guard let address, let colon = address.lastIndex(of: ":"),
            let port = Int(address[address.index(after: colon)...])
        else { return ("", 0) }
        let host = address[..<colon].drop { $0 == "[" }
        return (String(host.last == "]" ? host.dropLast() : host), port)
    }

    /// All values, and the values of each request.
    var json: JSONText {
        let numbers = values.map { name, value in
            if case .number(let seconds) = value {
                (name, JSONText.number((seconds * 1e6).rounded() / 1e6))
            } else {
                (name, value)
            }
        }
        return .object(numbers + [("transfers", .array(transfers.map { Self.json(of: $0.transfer) }))])
    }

    /// The fields of the last head; fields of one name are together.
    var headerJSON: String {
        var names: [String] = []
        var values: [String: [JSONText]] = [:]
        for field in head?.fields ?? [] {
            let name = field.name.lowercased()
            if values[name] == nil { names.append(name) }
            values[name, default: []].append(.string(field.value))
        }
        let lines = names.map { name in
            JSONText.string(name).text + ":" + JSONText.array(values[name] ?? []).text
        }
        return "{" + lines.joined(separator: ",\n") + "\n}"
    }

    private static func json(of transfer: URLConnection.Transfer) -> JSONText {
        let seconds = { (value: TimeInterval?) in
            value.map { JSONText.number(($0 * 1e6).rounded() / 1e6) } ?? .null
        }
        return .object([
            ("url", .string(transfer.url.absoluteString)), ("method", .string(transfer.method)),
            ("status", transfer.status.map { .integer($0) } ?? .null),
            ("remote", .optional(transfer.remoteAddress)), ("proxy", .optional(transfer.proxy)),
            ("reused", .bool(transfer.isReusedConnection)), ("tls", .optional(transfer.tlsVersion)),
            ("cipher", .optional(transfer.tlsCipher)), ("lookUpStart", seconds(transfer.lookUpStart)),
            ("lookUpEnd", seconds(transfer.lookUpEnd)), ("connectStart", seconds(transfer.connectStart)),
            ("connectEnd", seconds(transfer.connectEnd)),
            ("secureStart", seconds(transfer.secureStart)), ("secureEnd", seconds(transfer.secureEnd)),
            ("requestStart", seconds(transfer.requestStart)),
            ("requestEnd", seconds(transfer.requestEnd)),
            ("responseStart", seconds(transfer.responseStart)),
            ("responseEnd", seconds(transfer.responseEnd)),
            ("headBytesSent", .integer(transfer.headBytesSent)),
            ("bodyBytesSent", .integer(transfer.bodyBytesSent)),
            ("bytesReceived", .integer(Int(transfer.bytesReceived))),
            ("bodyBytesReceived", .integer(Int(transfer.bodyBytesReceived))),
        ])
    }
}
