import Rondo
import RondoLab

/// What `-w` prints behind a load, in curl's words: `%{name}` and the escapes `\n`, `\r`, `\t`.
struct WriteOut: Equatable, Sendable {
    private enum Piece: Equatable, Sendable {
        case text(String)
        case variable(String)
    }

    private let pieces: [Piece]

    /// The variables, by curl's names, and `json` for all of them.
    static let names: Set<String> = [
        "json", "http_code", "response_code", "url_effective", "method", "num_redirects", "num_connects",
        "remote_ip", "content_type", "size_download", "size_upload", "size_request", "time_namelookup",
        "time_connect", "time_appconnect", "time_pretransfer", "time_starttransfer", "time_redirect",
        "time_total", "errormsg", "exitcode",
    ]

    /// - Throws: `CommandFailure` for a variable that there is not.
    init(_ format: String) throws {
        var pieces: [Piece] = []
        var text = ""
        var rest = format[...]
        while let character = rest.popFirst() {
            switch character {
            case "%" where rest.first == "%":
                rest = rest.dropFirst()
                text += "%"
            case "%" where rest.first == "{":
                guard let end = rest.firstIndex(of: "}") else {
                    throw CommandFailure.usage("-w: %{ without }")
                }
                let name = String(rest[rest.index(after: rest.startIndex)..<end])
                guard Self.names.contains(name) else {
                    throw CommandFailure.usage("-w: there is no %{\(name)}")
                }
                if !text.isEmpty { pieces.append(.text(text)) }
                text = ""
                pieces.append(.variable(name))
                rest = rest[rest.index(after: end)...]
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

    func text(for result: Result) -> String {
        pieces.map { piece in
            switch piece {
            case .text(let text): text
            case .variable("json"): result.json.text
            case .variable(let name): result.values.first { $0.0 == name }.map { Self.plain($0.1) } ?? ""
            }
        }.joined()
    }

    private static func plain(_ value: JSONText) -> String {
        switch value {
        case .string(let text): text
        case .null: ""
        default: value.text
        }
    }

    /// What there is to print.
    struct Result {
        var metrics: URLConnection.Metrics?
        var contentType: String?
        var failure: String?
        var exitStatus: Int32

        /// In curl's units: seconds since the start, bytes.
        var values: [(String, JSONText)] {
            let last = metrics?.transfers.last
            let first = metrics?.transfers.first
            let status = JSONText.integer(last?.status ?? 0)
            let seconds = { (value: TimeInterval?) in JSONText.number(Self.rounded(value ?? 0)) }
            let transfers = metrics?.transfers ?? []
            let redirected = transfers.count > 1 ? last?.requestStart : 0
            return [
                ("http_code", status), ("response_code", status),
                ("url_effective", .optional(last?.url.absoluteString)), ("method", .optional(last?.method)),
                ("num_redirects", .integer(metrics?.redirectCount ?? 0)),
                ("num_connects", .integer(transfers.count { $0.connectStart != nil })),
                ("remote_ip", .optional(last?.remoteAddress)), ("content_type", .optional(contentType)),
                ("size_download", .integer(Int(last?.bodyBytesReceived ?? 0))),
                ("size_upload", .integer(last?.bodyBytesSent ?? 0)),
                ("size_request", .integer(transfers.reduce(0) { $0 + $1.headBytesSent + $1.bodyBytesSent })),
                ("time_namelookup", seconds(first?.lookUpEnd)), ("time_connect", seconds(first?.connectEnd)),
                ("time_appconnect", seconds(first?.secureEnd)),
                ("time_pretransfer", seconds(first?.requestStart)),
                ("time_starttransfer", seconds(last?.responseStart)), ("time_redirect", seconds(redirected)),
                ("time_total", seconds(metrics?.duration)), ("errormsg", .optional(failure)),
                ("exitcode", .integer(Int(exitStatus))),
            ]
        }

        /// All values, and each transfer by itself.
        var json: JSONText {
            .object(values + [("transfers", .array((metrics?.transfers ?? []).map(Self.json)))])
        }

        private static func json(of transfer: URLConnection.Transfer) -> JSONText {
            let seconds = { (value: TimeInterval?) in value.map { JSONText.number(rounded($0)) } ?? .null }
            return .object([
                ("url", .string(transfer.url.absoluteString)), ("method", .string(transfer.method)),
                ("status", transfer.status.map { .integer($0) } ?? .null),
                ("remote", .optional(transfer.remoteAddress)), ("proxy", .optional(transfer.proxy)),
                ("reused", .bool(transfer.isReusedConnection)), ("tls", .optional(transfer.tlsVersion)),
                ("cipher", .optional(transfer.tlsCipher)), ("lookUpStart", seconds(transfer.lookUpStart)),
                ("lookUpEnd", seconds(transfer.lookUpEnd)), ("connectStart", seconds(transfer.connectStart)),
                ("connectEnd", seconds(transfer.connectEnd)), ("secureEnd", seconds(transfer.secureEnd)),
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

        /// To the microsecond.
        private static func rounded(_ seconds: TimeInterval) -> Double { (seconds * 1e6).rounded() / 1e6 }
    }
}
