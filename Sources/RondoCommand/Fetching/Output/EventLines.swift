import Rondo
import RondoLab

/// The lines of `--events`, one for each call of the delegate. Scripts read them, so names and order of the
/// keys must not change.
enum EventLines {
    static func response(_ response: URLResponse) -> JSONText {
        let http = response as? HTTPURLResponse
        return .object([
            ("event", .string("response")),
            ("url", .optional(response.url?.absoluteString)),
            ("status", http.map { .integer($0.statusCode) } ?? .null),
            ("mimeType", .optional(response.mimeType)),
            ("expectedLength", .integer(Int(response.expectedContentLength))),
            ("headers", .object((http.map(fields) ?? []).map { ($0.name, .string($0.value)) })),
        ])
    }

    static func data(length: Int) -> JSONText {
        .object([("event", .string("data")), ("length", .integer(length))])
    }

    static func redirect(to url: String, from: String, status: Int, method: String, followed: Bool)
        -> JSONText
    {
        .object([
            ("event", .string("redirect")), ("url", .string(url)), ("from", .string(from)),
            ("status", .integer(status)), ("method", .string(method)), ("followed", .bool(followed)),
        ])
    }

    static func challenge(_ challenge: URLAuthenticationChallenge) -> JSONText {
        let space = challenge.protectionSpace
        return .object([
            ("event", .string("challenge")),
            ("host", .string(space.host)),
            ("port", .integer(space.port)),
            ("method", .string(space.authenticationMethod)),
            ("realm", .optional(space.realm)),
            ("previousFailures", .integer(challenge.previousFailureCount)),
        ])
    }

    static func sent(bytes: Int, total: Int, expected: Int) -> JSONText {
        .object([
            ("event", .string("sent")), ("bytes", .integer(bytes)), ("total", .integer(total)),
            ("expected", .integer(expected)),
        ])
    }

    static func finish(bytes: Int, sha256: String) -> JSONText {
        .object([("event", .string("finish")), ("bytes", .integer(bytes)), ("sha256", .string(sha256))])
    }

    static func fail(_ failure: FetchFailure) -> JSONText {
        .object([
            ("event", .string("fail")), ("domain", .string(failure.domain)), ("code", .integer(failure.code)),
            ("message", .string(failure.message)),
        ])
    }

    /// The fields sorted by name, so that two runs print the same.
    static func fields(of response: HTTPURLResponse) -> [(name: String, value: String)] {
        response.allHeaderFields
            .map { (name: "\($0.key)", value: "\($0.value)") }
            .sorted { ($0.name.lowercased(), $0.value) < ($1.name.lowercased(), $1.value) }
    }
}
