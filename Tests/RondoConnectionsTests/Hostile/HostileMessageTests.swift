import Rondo
import RondoTestSupport
import Testing

/// Responses that break the rules of RFC 9112, or stretch them.
@Suite(.timeLimit(.minutes(5)), .leavesNoConnections) struct HostileMessageTests {
    @Test(arguments: statusLines + fields)
    func `RFC 9112 4 and 5 heads that are none are refused, the others understood`(_ behaviour: Behaviour)
        throws
    {
        try behaviour.check()
    }

    @Test(arguments: lengths + chunkings)
    func `RFC 9112 6 and 7 a body whose end could be read in two ways is refused`(_ behaviour: Behaviour)
        throws
    {
        try behaviour.check()
    }

    @Test(arguments: endless)
    func `RFC 9110 17 an endless response is ended by a limit`(_ behaviour: Behaviour) throws {
        try behaviour.check()
    }

    @Test(arguments: interim)
    func `RFC 9110 15.2 interim responses are passed over`(_ behaviour: Behaviour) throws {
        try behaviour.check()
    }
}

private let refused = Behaviour.Outcome.fails(.cannotParseResponse)
/// Well formed, and without sense.
private let absurd = Behaviour.Outcome.fails(.badServerResponse)
private let lost = Behaviour.Outcome.fails(.networkConnectionLost)
private let fine = Behaviour.Outcome.gets(200, "ok")
private let two = "Content-Length: 2\r\n\r\nok"

private func line(_ line: String, _ outcome: Behaviour.Outcome = refused) -> Behaviour {
    Behaviour("“\(line)”", outcome, "\(line)\r\n\(two)")
}

private let statusLines: [Behaviour] = [
    line("HTTP/1.1200 OK"), line("HTTP/1.1 20 OK"), line("HTTP/1.1 2000 OK"), line("HTTP/1.1 099 OK"),
    line("HTTP/1.1 000 OK"), line("HTTP/1.1 abc OK"), line("HTTP/1.1  200 OK"), line("HTTP/1.1\t200 OK"),
    line(" HTTP/1.1 200 OK"), line("http/1.1 200 OK"), line("HTTP/1 200 OK"), line("HTTP/11 200 OK"),
    line("HTTP/1.10 200 OK"), line("HTTP/1.1 -200 OK"), line("HTTP/1.1 200.5 OK"), line("HTTP/1.1"),
    line("HTTP/2.0 200 OK"), line("HTTP/2 200"), line("HTTP/0.9 200 OK"), line("HTTP/9.9 200 OK"),
    line("HTTQ/1.1 200 OK"), line("ICY 200 OK"), line("RTSP/1.0 200 OK"), line("SSH-2.0-OpenSSH_9.2"),
    line("220 mail.example ESMTP"), line("GET / HTTP/1.1"), line("<html>"), line("{\"a\": 1}"),
    line("HTTP/1.1 200 O\0K"), line("HTTP/1.1 200 O\rK"),
    // Liberties that do no harm.
    line("HTTP/1.1 200 O\u{7F}K", fine), line("HTTP/1.1 200 O\u{1B}K", fine),
    line("HTTP/1.1 200", fine), line("HTTP/1.1 200 ", fine), line("HTTP/1.0 200 OK", fine),
    line("HTTP/1.9 200 OK", fine), line("HTTP/1.1 200 Très bien", fine), line("\r\nHTTP/1.1 200 OK", fine),
    line("HTTP/1.1 600 Odd", .gets(600, "ok")), line("HTTP/1.1 999 Odd", .gets(999, "ok")),
    line("HTTP/1.1 299 Odd", .gets(299, "ok")),
    Behaviour("HTTP/0.9 that ends", refused, .closes, "hello"),
    Behaviour("HTTP/0.9 without a line end", refused, .closes, "<html>hello</html>"),
    Behaviour(
        "the preface of HTTP/2", refused,
        says: [0, 0, 18, 4, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 100] + Array(two.utf8)),
    Behaviour("a TLS alert", refused, .closes, says: [0x15, 3, 3, 0, 2, 2, 80]),
    Behaviour("a line of 9 kB", refused, "HTTP/1.1 200 \(String(repeating: "a", count: 9_000))\r\n\(two)"),
    Behaviour("line ends of LF alone", fine, "HTTP/1.1 200 OK\nContent-Length: 2\n\nok"),
    Behaviour("line ends of CR alone", refused, "HTTP/1.1 200 OK\rContent-Length: 2\r\rok\r\n\r\n"),
]

private func field(_ line: String, _ outcome: Behaviour.Outcome = refused) -> Behaviour {
    Behaviour.ok("“\(line)”", outcome, fields: "\(line)\r\nContent-Length: 2\r\n", body: "ok")
}

private let fields: [Behaviour] = [
    field("A : b"), field("A\t: b"), field(" A: b"), field("\tA: b"), field("A"), field(": b"), field(":"),
    field("A B: c"), field("A\u{E9}: b"), field("A\0: b"), field("A: b\0c"), field("A: b\u{1}c", fine),
    field("A: b\u{7F}", fine), field("A: b\u{B}c", fine), field("A: b\u{1B}[2Jc", fine), field("A: b\rB: c"),
    field("A: b\r\r"), field("\r"),
    field("A(b): c"), field("\"A\": b"), field("[A]: b"), field("A/B: c"), field("A=B"),
    field("A: b\r\n C: d", fine), field("A:\r\n\tb\r\n c", fine), field("A:", fine), field("A:b:c", fine),
    field("A: \u{E9}", fine), field("!#$%&'*+-.^_`|~: b", fine), field("A: b\nB: c", fine),
    Behaviour.ok(
        "a field of 300 kB", refused, fields: "A: \(String(repeating: "a", count: 300_000))\r\n", body: "ok"),
    Behaviour.ok("2,000 fields", refused, fields: String(repeating: "A: b\r\n", count: 2_000), body: "ok"),
    Behaviour.ok(
        "900 fields", fine, fields: String(repeating: "A: b\r\n", count: 900) + "Content-Length: 2\r\n",
        body: "ok"),
    Behaviour(
        "two heads in one", fine, isKept: false,
        "HTTP/1.1 200 OK\r\n\(two)HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil"),
]

private func length(_ value: String, _ outcome: Behaviour.Outcome = refused) -> Behaviour {
    Behaviour.ok("Content-Length: “\(value)”", outcome, fields: "Content-Length: \(value)\r\n", body: "ok")
}

private func coding(_ value: String, _ outcome: Behaviour.Outcome = refused) -> Behaviour {
    Behaviour.ok(
        "Transfer-Encoding: “\(value)”", outcome, fields: "Transfer-Encoding: \(value)\r\n",
        body: "2\r\nok\r\n0\r\n\r\n")
}

private let lengths: [Behaviour] = [
    length("+2"), length("-2"), length("0x2"), length("2.0"), length("2 2"), length(""), length("2;"),
    length("\u{FF12}"), length("two"), length("2e0"), length("18446744073709551618"),
    length("99999999999999999999999999"), length("2, 3", absurd), length("3\r\nContent-Length: 2", absurd),
    length("2,"),
    length("2\r\n 2"),
    length("2", fine), length("02", fine), length(" 2 ", fine), length("2, 2", fine),
    length("2\r\nContent-Length: 2", fine),
    coding("gzip", absurd), coding("identity", absurd), coding("chunked, chunked", absurd),
    coding("gzip, chunked", absurd), coding("chunked, gzip", absurd), coding("xchunked", absurd),
    coding("chunked;q=1", absurd), coding("\"chunked\"", absurd), coding("", absurd),
    coding("chunked\r\nTransfer-Encoding: chunked", absurd), coding("chunked\u{B}", absurd),
    coding("chunked\r\nContent-Length: 2", absurd),
    coding(",", absurd), coding("chunked, , chunked", absurd),
    coding("chunked", fine), coding("CHUNKED", fine), coding(" chunked ", fine), coding("chunked,", fine),
    Behaviour(
        "chunks in HTTP/1.0", absurd,
        "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"),
    Behaviour.ok(
        "more than was announced", fine, isKept: false, fields: "Content-Length: 2\r\n", body: "okay"),
    Behaviour.ok("less than was announced", lost, .closes, fields: "Content-Length: 3\r\n", body: "ok"),
    Behaviour.ok(
        "8 exabytes announced", lost, .closes, fields: "Content-Length: 9223372036854775807\r\n", body: "ok"),
    Behaviour.ok("no length, and a close", fine, isKept: false, .closes, body: "ok"),
    Behaviour.ok(
        "no length, and a close that was announced", fine, .closes, fields: "Connection: close\r\n",
        body: "ok"),
    Behaviour.ok(
        "a length, and a close that does not come", fine, isKept: false,
        fields: "Connection: close\r\nContent-Length: 2\r\n", body: "ok"),
    Behaviour.ok(
        "close and keep-alive", fine, isKept: false,
        fields: "Connection: keep-alive, close\r\nContent-Length: 2\r\n", body: "ok"),
    Behaviour("HTTP/1.0", fine, isKept: false, "HTTP/1.0 200 OK\r\n\(two)"),
    Behaviour(
        "HTTP/1.0 and keep-alive", fine, isKept: true, "HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\n\(two)"),
    Behaviour("204 with a body", .gets(204, ""), isKept: false, "HTTP/1.1 204 No\r\n\(two)"),
    Behaviour(
        "204 with a length", .gets(204, ""), isKept: true, "HTTP/1.1 204 No\r\nContent-Length: 2\r\n\r\n"),
    Behaviour("304 with a body", .gets(304, ""), isKept: false, "HTTP/1.1 304 No\r\n\(two)"),
    Behaviour(
        "204 in chunks", .gets(204, ""), isKept: true, "HTTP/1.1 204 No\r\nTransfer-Encoding: chunked\r\n\r\n"
    ),
    Behaviour("HEAD with a body", .gets(200, ""), method: "HEAD", isKept: false, "HTTP/1.1 200 OK\r\n\(two)"),
    Behaviour(
        "HEAD with two lengths", .gets(200, ""), method: "HEAD",
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n"),
    Behaviour(
        "HEAD with chunks announced", .gets(200, ""), method: "HEAD", isKept: true,
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"),
    Behaviour("205 with a body", .gets(205, "ok"), isKept: true, "HTTP/1.1 205 Reset\r\n\(two)"),
]

/// Line ends as they are written in source code.
private func visible(_ text: String) -> String {
    text.unicodeScalars.map { $0 == "\r" ? "\\r" : $0 == "\n" ? "\\n" : String($0) }.joined()
}

private let badChunks: [String] =
    [
        "\r\nok\r\n0\r\n\r\n", "g\r\n", "-2\r\nok\r\n", "+2\r\nok\r\n", "0x2\r\nok\r\n", " 2\r\nok\r\n",
        "2 2\r\n", "2\nok\r\n0\r\n\r\n", "2\rok\r\n", "2\r\nok0\r\n\r\n", "2\r\nokay\r\n0\r\n\r\n",
        "2\r\nok\n0\r\n\r\n", "2\r\no\r\n0\r\n\r\n", "FFFFFFFFFFFFFFFFF\r\nok", "10000000000000002\r\nok",
        "8000000000000000\r\nok", "2;a\nok\r\n", "2;a=\"\0\"\r\nok", "2,\r\nok", "2\t2\r\nok",
        "\u{FF12}\r\nok",
        "2\r\nok\r\n0\n\r\n", "2\r\nok\r\n0\r\n\n", "2\r\nok\r\n0\r\nA: b\n\r\n", "2\r\nok\r\n0\r\nA\r\n\r\n",
        "2\r\nok\r\n0\r\nA : b\r\n\r\n", "2\r\nok\r\n0\r\nA: \0\r\n\r\n", "2\r\nok\r\n0;a\n\r\n",
    ]

private let chunks: [Behaviour] =
    [
        Behaviour.chunked("extensions", fine, isKept: true, body: "2;a=b;c=\"d;e\"\r\nok\r\n0;f\r\n\r\n"),
        Behaviour.chunked("leading zeros", fine, isKept: true, body: "0000000000000002\r\nok\r\n000\r\n\r\n"),
        Behaviour.chunked("blanks behind the size", fine, isKept: true, body: "2  \r\nok\r\n0 \r\n\r\n"),
        Behaviour.chunked("trailers", fine, isKept: true, body: "2\r\nok\r\n0\r\nA: b\r\nC: d\r\n\r\n"),
        Behaviour.chunked(
            "trailers that would change the framing", fine, isKept: true,
            body: "2\r\nok\r\n0\r\nContent-Length: 9\r\nTransfer-Encoding: gzip\r\nTE: x\r\n\r\n"),
        Behaviour.chunked("bytes after the end", fine, isKept: false, body: "2\r\nok\r\n0\r\n\r\nevil"),
        Behaviour.chunked("single bytes", fine, isKept: true, body: "1\r\no\r\n1\r\nk\r\n0\r\n\r\n"),
        Behaviour.chunked(
            "a line of 5 kB", refused, body: "2;\(String(repeating: "a", count: 5_000))\r\nok\r\n0\r\n\r\n"),
        Behaviour.chunked(
            "trailers of 20 kB", refused,
            body: "2\r\nok\r\n0\r\nA: \(String(repeating: "a", count: 20_000))\r\n\r\n"),
    ]

private let halves: [String] =
    [
        "", "2", "2\r", "2\r\n", "2\r\no", "2\r\nok", "2\r\nok\r", "2\r\nok\r\n", "2\r\nok\r\n0",
        "2\r\nok\r\n0\r\n",
        "2\r\nok\r\n0\r\nA: b", "2\r\nok\r\n0\r\nA: b\r\n\r", "7FFFFFFFFFFFFFFF\r\nok",
    ]

private let chunkings: [Behaviour] =
    badChunks.map { Behaviour.chunked("“\(visible($0))”", refused, body: $0) } + chunks
    + halves.map { Behaviour.chunked("the end after “\(visible($0))”", lost, .closes, body: $0) }

private let endless: [Behaviour] = [
    Behaviour("empty lines", refused, .repeats("\r\n"), ""),
    Behaviour("a status line", refused, .repeats("aaaaaaaaaaaaaaaa"), "HTTP/1.1 200 "),
    Behaviour("garbage", refused, .repeats("aaaaaaaaaaaaaaaa"), ""),
    Behaviour("a field's name", refused, .repeats("aaaaaaaaaaaaaaaa"), "HTTP/1.1 200 OK\r\n"),
    Behaviour("a field's value", refused, .repeats("aaaaaaaaaaaaaaaa"), "HTTP/1.1 200 OK\r\nA: "),
    Behaviour("fields", refused, .repeats("A: b\r\n"), "HTTP/1.1 200 OK\r\n"),
    Behaviour("a folded field", refused, .repeats(" b\r\n"), "HTTP/1.1 200 OK\r\nA: b\r\n"),
    Behaviour("interim responses", absurd, .repeats("HTTP/1.1 102 Processing\r\n\r\n"), ""),
    Behaviour.chunked("an extension", refused, .repeats("aaaaaaaaaaaaaaaa"), body: "2;"),
    Behaviour.chunked("zeros of a size", refused, .repeats("0000000000000000"), body: ""),
    Behaviour.chunked("blanks behind a size", refused, .repeats("                "), body: "2"),
    Behaviour.chunked("trailers", refused, .repeats("A: b\r\n"), body: "0\r\n"),
    Behaviour.chunked("a trailer", refused, .repeats("aaaaaaaaaaaaaaaa"), body: "0\r\nA: "),
]

private func after(_ interim: String, _ outcome: Behaviour.Outcome = fine) -> Behaviour {
    Behaviour("“\(interim.prefix { $0 != "\r\n" })”", outcome, interim + "HTTP/1.1 200 OK\r\n\(two)")
}

private let interim: [Behaviour] = [
    after("HTTP/1.1 100 Continue\r\n\r\n"), after("HTTP/1.1 102 Processing\r\n\r\n"),
    after("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"), after("HTTP/1.1 199 Odd\r\n\r\n"),
    after("HTTP/1.1 100 Continue\r\nContent-Length: 7\r\n\r\n"),
    after("HTTP/1.1 103 Hints\r\nTransfer-Encoding: chunked\r\n\r\n"),
    after("HTTP/1.1 103 Hints\r\nConnection: close\r\n\r\n"),
    after(String(repeating: "HTTP/1.1 102 Processing\r\n\r\n", count: 100)),
    after(String(repeating: "HTTP/1.1 102 Processing\r\n\r\n", count: 101), absurd),
    after("HTTP/1.1 101 Switching Protocols\r\n\r\n", absurd),
    after("HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\nConnection: upgrade\r\n\r\n", absurd),
    after("HTTP/1.1 103 Hints\r\nA : b\r\n\r\n", refused),
    Behaviour("an interim response, and the end", lost, .closes, "HTTP/1.1 100 Continue\r\n\r\n"),
]
