import Rondo
import RondoLab
import Testing

@testable import RondoCommand

struct QuantityTests {
    @Test(arguments: [
        ("0", 0), ("1500", 1500), ("500k", 500_000), ("500K", 500_000), ("2M", 2_000_000),
        ("1.5G", 1_500_000_000),
    ])
    func `a quantity of bytes is read, with k, M and G for decimal thousands`(text: String, bytes: Int) {
        #expect(Quantity(argument: text)?.bytes == bytes)
    }

    @Test(arguments: ["", "k", "-1", "+1", "1kk", "1 k", "nan", "inf", "0x1p5q", "1e300", "9e18G"])
    func `a text that is not a quantity is refused`(text: String) {
        #expect(Quantity(argument: text) == nil)
    }
}

struct OutputFileTests {
    @Test(arguments: [
        ("x", "."), ("/x", "/"), ("//x", "/"), ("a/x", "a"), ("/a/x", "/a"), ("a//x", "a/"), ("a/", "a"),
        ("/\u{301}x", "/"), ("é/x", "é"),
    ])
    func `the folder of a file is the part before the last slash`(path: String, folder: String) {
        #expect(OutputFile.folder(of: path) == folder)
    }
}

struct ServeEndTests {
    @Test func `only a second signal ends the server at once, not another request to end`() async {
        // In a pipeline, Ctrl-C ends the input as well.
        await #expect(processExitsWith: .success) {
            let end = Serve.End()
            end.request(by: SIGINT)
            end.request()
            if !end.isRequested { exit(1) }
        }
        await #expect(processExitsWith: .exitCode(130)) {
            let end = Serve.End()
            end.request()
            end.request(by: SIGINT)
            end.request(by: SIGINT)
        }
    }
}

struct TerminalTextTests {
    @Test func `control characters from a server do not reach the terminal`() {
        #expect(
            TerminalText.harmless("A: b\tc\r\n\u{1B}[2J\u{7F}\u{9B}é") == "A: b\tc\r\n\\x1B[2J\\x7F\\x9Bé")
        #expect(DiagnosticLines.text(for: .responseHead("A: \u{1}\r\n")) == "< A: \\x01\n")
    }
}

struct ProgressLineTests {
    let plain = Terminal(descriptor: 2, isTerminal: true, environment: ["NO_COLOR": "1", "LANG": "C.UTF-8"])

    @Test(arguments: 0...120)
    func `a line never exceeds its width`(width: Int) {
        for expected in [nil, 0, 50, 100, 1_000_000_000] as [Int?] {
            for rate in [0, 1e6] {
                let line = ProgressLine(received: 100, expected: expected, elapsed: 3, rate: rate)
                #expect(line.text(width: width, terminal: plain).count <= width)
            }
        }
    }

    @Test func `a line says rate, percent and time left`() {
        let line = ProgressLine(received: 250_000, expected: 1_000_000, elapsed: 1, rate: 250_000)
        #expect(
            line.text(width: 72, terminal: plain)
                == "█████▌░░░░░░░░░░░░░░░░   25 %   250 kB of 1.00 MB   250 kB/s   0:03 left")
        let unknown = ProgressLine(received: 250_000, expected: nil, elapsed: 1, rate: 250_000)
        #expect(unknown.text(width: 72, terminal: plain) == " 250 kB   250 kB/s        0:01")
    }

    @Test func `a rate meter shows the rate of the last seconds`() {
        var meter = RateMeter()
        for tenth in 1...100 { meter.note(tenth <= 50 ? tenth * 1000 : 50_000, at: Double(tenth) / 10) }
        #expect(meter.rate == 0)
    }

    @Test func `a rate that is noted at each pass keeps few samples`() {
        var meter = RateMeter()
        for pass in 1...10_000 { meter.note(pass * 1000, at: Double(pass) / 1000) }
        #expect(meter.samples.count < 70)
        #expect(abs(meter.rate - 1e6) < 1)
    }
}

struct TerminalTests {
    @Test func `colour is for terminals and not where NO_COLOR is set`() {
        #expect(Terminal(descriptor: 1, isTerminal: true, environment: [:]).hasColour)
        #expect(Terminal(descriptor: 1, isTerminal: true, environment: ["NO_COLOR": ""]).hasColour)
        #expect(!Terminal(descriptor: 1, isTerminal: true, environment: ["NO_COLOR": "1"]).hasColour)
        #expect(!Terminal(descriptor: 1, isTerminal: true, environment: ["TERM": "dumb"]).hasColour)
        #expect(!Terminal(descriptor: 1, isTerminal: false, environment: [:]).hasColour)
    }

    @Test func `the first locale that is set decides`() {
        #expect(Terminal(descriptor: 1, isTerminal: true, environment: ["LANG": "de_DE.utf8"]).hasUnicode)
        #expect(
            !Terminal(descriptor: 1, isTerminal: true, environment: ["LANG": "C.UTF-8", "LC_ALL": "C"])
                .hasUnicode)
    }

    @Test(arguments: [
        (0.0, "0 B"), (999.4, "999 B"), (999.5, "1.00 kB"), (12_345, "12.3 kB"), (99_960, "100 kB"),
        (999_600, "1.00 MB"),
        (1.5e12, "1.50 TB"), (.infinity, "inf PB"),
    ])
    func `bytes have about three digits`(count: Double, text: String) {
        #expect(TextFormats.bytes(count) == text)
    }

    @Test func `a clock has hours only from one hour on, and dashes for no time`() {
        #expect(TextFormats.clock(0) == "0:00")
        #expect(TextFormats.clock(59.2) == "1:00")
        #expect(TextFormats.clock(3723) == "1:02:03")
        #expect(TextFormats.clock(.infinity) == "--:--")
    }

    @Test func `digits are grouped by thousands`() {
        #expect(
            [0, 999, 1000, 1_234_567, -1000].map(TextFormats.grouped) == [
                "0", "999", "1,000", "1,234,567", "-1,000",
            ])
    }

    @Test func `JSON keeps the order of its keys and escapes what it must`() throws {
        let text = JSONText.object([
            ("b", .string("\"\\\n\u{1}\u{7F}\u{2028}é😀")), ("a", .array([.null, .bool(true)])),
        ]).text
        #expect(text == "{\"b\":\"\\\"\\\\\\n\\u0001\\u007f\\u2028é😀\",\"a\":[null,true]}")
        _ = try JSONSerialization.jsonObject(with: Data(text.utf8))
    }
}

struct ScrollingReportTests {
    private func report(_ change: (inout ScrollingReport) -> Void = { _ in }) -> ScrollingReport {
        var a = ScrollingLoad(name: "A", scheduledIn: .default)
        a.bytes = [.default: 100]
        var b = ScrollingLoad(name: "B", scheduledIn: .common)
        b.bytes = [.default: 60, .tracking: 40]
        var report = ScrollingReport(size: 100, loads: [a, b])
        for index in 0...1 {
            report.loads[index].trackingSpans = 2
            report.loads[index].seconds = 1
        }
        change(&report)
        return report
    }

    @Test func `an experiment that went as documented reports that`() {
        #expect(report().isAsDocumented)
        #expect(report().sentence.contains("A got nothing in 2 spans of tracking"))
    }

    @Test func `a report of scrolling tells every contradiction to the rule`() {
        let broken: [ScrollingReport] = [
            report { $0.loads[0].bytes = [.default: 60, .tracking: 40] },
            report { $0.loads[1].bytes = [.default: 100] },
            report { $0.loads[1].bytes = [.tracking: 100] },
            report { $0.loads[0].bytes = [.default: 99] },
            report { $0.loads[0].bytes = [.default: 99, RunLoop.Mode("no mode"): 1] },
            report { $0.loads[0].trackingSpans = 0 },
            report { $0.loads[1].failure = "lost" },
        ]
        for report in broken {
            #expect(!report.isAsDocumented)
            #expect(report.sentence.hasPrefix("Not as documented: "))
        }
    }
}

struct SpeedFloorTests {
    private func limit(_ words: String...) throws -> SpeedFloor? {
        SpeedFloor(try FetchCommandLine(words + ["u"]).operations[0], from: 0, with: 0)
    }

    @Test func `a time of 0 accepts every speed, and the later of -Y and -y counts`() throws {
        #expect(try limit() == nil)
        #expect(try limit("-y", "0") == nil)
        #expect(try limit("-Y", "100", "-y", "0") == nil)
        let found = try limit("-y", "0", "-Y", "100")
        var floor = try #require(found)
        let late = [0.0, 29.0, 30.0].map { floor.failure(transferred: 0, at: $0) != nil }
        #expect(late == [false, false, true])
    }
}

struct ReceivedHeadTests {
    @Test func `only spaces and tabs around a field's value are removed, no other white space`() {
        let head = ReceivedHead(
            "HTTP/1.1 200 \r\nA: \u{A0}b\u{A0}\t \r\nB:\u{3000}\r\nC:\r\nD: \t\nE: e\u{2028}f\r\nno field\r\n\r\n"
        )
        #expect(head.version == "1.1" && head.status == 200)
        #expect(head.fields.map(\.name) == ["A", "B", "C", "D", "E"])
        #expect(head.fields.map(\.value) == ["\u{A0}b\u{A0}", "\u{3000}", "", "", "e\u{2028}f"])
    }

    @Test func `a combining character after its colon or its end does not hide a field`() {
        let head = ReceivedHead("HTTP/1.1 200\r\nX:\u{301}x\r\n\u{301}Y: y\u{301}\r\n\r\n")
        #expect(head.status == 200)
        #expect(head.value("X").map { Array($0.utf8) } == Array("\u{301}x".utf8))
        #expect(head.value("\u{301}Y") == "y\u{301}")
    }

    @Test(arguments: [
        ("Connection: x,\tClose ", false, false), ("Connection: close\u{A0}", true, false),
        ("Connection: x\r\nConnection: close", false, false),
        ("Content-Encoding: , identity", true, false), ("Content-Encoding: identity,GZIP", true, true),
    ])
    func `the elements of a list are without the spaces and tabs around them`(
        fields: String, keepsConnection: Bool, hasCoding: Bool
    ) {
        let head = ReceivedHead("HTTP/1.1 200\r\n\(fields)\r\n\r\n")
        #expect(head.keepsConnection == keepsConnection && head.hasCoding == hasCoding)
    }
}

struct RedirectBodyTests {
    private func use(_ head: String, method: String = "GET") -> BodyUse {
        .ofRedirect(ReceivedHead("HTTP/" + head + "\r\n\r\n"), method: method)
    }

    @Test(arguments: [
        "1.1 302 Found\r\nContent-Length: 0", "1.0 302 Found\r\nContent-Length: 65536",
        "1.1 302 Found\r\nConnection: close\r\nContent-Length: 5",
        "1.1 302 Found\r\nTransfer-Encoding: chunked",
        "1.1 302 Found\r\nConnection: closed, x\r\nTransfer-Encoding: chunked",
    ])
    func `a short body of a redirect is read, and one that ends before its connection`(head: String) {
        #expect(use(head) == (head.contains("Content-Length") ? .discarded : .discardedIfShort))
    }

    @Test(arguments: [
        "1.1 302 Found", "1.0 302 Found", "1.0 302 Found\r\nConnection: keep-alive",
        "1.1 302 Found\r\nContent-Length: 65537", "1.1 302 Found\r\nContent-Length: x",
        "1.1 302 Found\r\nConnection: x, Close\r\nTransfer-Encoding: chunked",
        "1.0 302 Found\r\nTransfer-Encoding: chunked",
    ])
    func `other bodies of redirects are not waited for, and of HEAD there is none`(head: String) {
        #expect(use(head) == .refused)
        #expect(use(head, method: "HEAD") == .discarded)
    }
}

struct FileWindowTests {
    private func window(_ range: String?, offset: Int64 = 0) throws -> Range<Int>? {
        try FileWindow.of(range, offset: offset, size: 5)
    }

    @Test func `a file URL is read by the first of several ranges, and -C has precedence`() throws {
        #expect(try window(nil) == nil)
        #expect(try window("1-2") == 1..<3)
        #expect(try window("0-1,3-4") == 0..<2)
        #expect(try window("3-100") == 3..<101)
        #expect(try window("5-9223372036854775807") == 5..<Int.max)
        #expect(try window("5-") == 5..<Int.max)
        #expect(try window("-5") == 0..<Int.max)
        #expect(try window("0-1", offset: 2) == 2..<Int.max)
    }

    @Test(
        arguments: [
            ("5-2", 0, .noRange), ("abc", 0, .noRange), ("-", 0, .noRange), ("", 0, .noRange),
            ("1-2-3", 0, .noRange), ("1-99999999999999999999", 0, .noRange), ("10-20", 0, .cannotResume),
            ("6-", 0, .cannotResume), ("-100", 0, .cannotResume), (nil, 100, .cannotResume),
        ] as [(String?, Int64, FetchFailure.Status)])
    func `a range that a file does not have is a failure`(
        range: String?, offset: Int64, status: FetchFailure.Status
    ) {
        let failure = #expect(throws: FetchFailure.self) { try window(range, offset: offset) }
        #expect(failure?.status == status)
    }
}

struct BarTests {
    @Test func `a progress bar has the requested width`() {
        for usesUnicode in [true, false] {
            for width in 0...20 {
                for fraction in [-1, 0, 0.01, 0.5, 0.999, 1, 2, .nan, .infinity] {
                    let bar = TextBar(fraction: fraction, width: width, usesUnicode: usesUnicode)
                    #expect((bar.filled + bar.empty).count == width)
                }
            }
        }
    }

    @Test func `a rate above zero draws at least the lowest bar`() {
        #expect(heightMark(0, full: 10, usesUnicode: true) == " ")
        #expect(heightMark(0.001, full: 10, usesUnicode: true) == "▁")
        #expect(heightMark(99, full: 10, usesUnicode: true) == "█")
    }
}
