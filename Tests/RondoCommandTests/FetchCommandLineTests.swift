import Rondo
import RondoHTTP
import RondoLab
import RondoStreams
import Testing

@testable import RondoCommand

/// Tests the value that reads the command line of `rondo fetch`.
struct FetchCommandLineTests {
    private func operation(_ words: String...) throws -> FetchOperation {
        try FetchCommandLine(words).operations[0]
    }

    @Test
    func `option letters may share a word, with a value behind the letter or in the next word`() throws {
        let line = try FetchCommandLine(["-fsSLofile", "-XPOST", "-C", "-", "-H", "A: 1", "-HB: 2", "u"])
        #expect(line.common.isSilent && line.common.showsErrors)
        let operation = line.operations[0]
        #expect(operation.fails && operation.followsRedirects)
        #expect(operation.outputs == [.file("file")])
        #expect(operation.method == "POST" && operation.resumption == .file)
        #expect(operation.fields == ["A: 1", "B: 2"] && operation.urls.map(\.text) == ["u"])
    }

    @Test func `long options are read when abbreviated or negated`() throws {
        #expect(try operation("--location", "--no-location", "u").followsRedirects == false)
        #expect(try operation("--max-redirs", "-1", "u").maximumRedirects == nil)
        #expect(try operation("--no-clobber", "-o", "x", "u").overwrites == false)
        #expect(try FetchCommandLine(["--no-progress-meter", "u"]).common.showsProgress == false)
        #expect(try operation("--noproxy", "*", "u").directHosts == "*")
    }

    @Test(arguments: [
        ["--unknown", "u"], ["-o"], ["--data=x", "u"], ["--ma", "u"], ["-?", "u"], [], ["-m", "x", "u"],
        ["-I", "-d", "x", "u"], ["-F", "a", "u"], ["-F", "a=b", "-d", "c", "u"], ["--http2", "u"],
        ["--fail", "--fail-with-body", "u"], ["-i", "-J", "-O", "u"], ["-C", "-", "-OJ", "u"],
        ["-C", "3", "-d", "x", "u"], ["-C", "-", "-F", "a=b", "-o", "f", "u"],
        ["-T", "f", "-d", "x", "u"], ["-F", "a=b", "-T", "f", "u"], ["-I", "-T", "f", "u"],
    ])
    func `unknown, incomplete and contradictory options are refused`(words: [String]) {
        let failure = #expect(throws: CommandFailure.self) { try FetchCommandLine(words) }
        #expect(failure?.status == ExitStatus.badUsage)
    }

    @Test func `the methods that are sent in capitals are told of, and others are sent as they are`() throws {
        for (name, sent) in [("get", "GET"), ("Delete", "DELETE"), ("patch", "patch"), ("PUT", "PUT")] {
            let given = try operation("-X", name, "u")
            #expect(given.method == sent)
            #expect(given.warnings == (name == sent ? [] : ["-X: \(name) is sent as \(sent)"]))
            let request = try FetchRequest(FetchURL("http://h/"), given, upload: nil, offset: 0)
            #expect(try request.urlRequest().httpMethod == sent)
        }
    }

    @Test func `--proto adds, removes and replaces schemes from left to right`() throws {
        let all: Set<String> = ["http", "https", "file", "data"]
        #expect(try operation("--proto", "https", "u").protocols == all)
        #expect(try operation("--proto", "-file,-data", "u").protocols == ["http", "https"])
        #expect(try operation("--proto", "-all,HTTP,+https", "u").protocols == ["http", "https"])
        #expect(try operation("--proto", "file,=https,-+http", "u").protocols == ["https", "http"])
        let again = try operation("--proto", "=https", "--proto", "-file", "u")
        #expect(again.protocols == ["http", "https", "data"])
        let odd = try operation("--proto-redir", "odd,-http,ftp", "u")
        #expect(odd.warnings == ["--proto-redir: unrecognized protocol 'odd'"])
        #expect(!odd.redirectProtocols.contains("http") && odd.redirectProtocols.contains("https"))
        #expect(throws: CommandFailure.self) { try operation("--proto", "=", "u") }
    }

    @Test(
        arguments: [
            ([], 60), (["--keepalive-time", "10"], 10), (["--keepalive-time", "0"], 60),
            (["--no-keepalive", "--keepalive-time", "10"], nil),
        ] as [([String], Int?)])
    func `a peer that is gone is noticed by probes`(words: [String], seconds: Int?) throws {
        let operation = try FetchCommandLine(words + ["u"]).operations[0]
        let request = try FetchRequest(FetchURL("http://h/"), operation, upload: nil, offset: 0)
        let connect = try operation.configuration(for: request, by: nil, cookies: nil).connect
        #expect(connect.keepAlive?.idle == seconds && connect.keepAlive?.interval == seconds)
    }

    @Test func `a missing option names its replacement`() {
        for option in FetchOption.missing {
            guard case .missing(let takesValue, let advice) = option.kind else { continue }
            let words = ["--" + option.name] + (takesValue ? ["x"] : []) + ["u"]
            let failure = #expect(throws: CommandFailure.self) { try FetchCommandLine(words) }
            #expect(failure?.message.contains(advice) == true)
        }
    }

    @Test func `--next begins other URLs, and common options stay`() throws {
        let line = try FetchCommandLine(["-s", "-d", "x", "u", "--next", "-I", "v", "-:", "w"])
        #expect(line.operations.map { $0.urls.map(\.text) } == [["u"], ["v"], ["w"]])
        #expect(line.operations.map(\.asksForHead) == [false, true, false])
        #expect(line.common.isSilent)
    }

    @Test func `a config file is read as curl reads it`() {
        let text = """
            # comment
            url = "http://h/a b\\"c"
            -o out.txt
            header: "X: 1"
            silent
              max-time 5 # so long

            d=x
            """
        #expect(
            ConfigFile.lines(in: Data(text.utf8)) == [
                .init(number: 2, option: "--url", value: "http://h/a b\"c"),
                .init(number: 3, option: "-o", value: "out.txt"),
                .init(number: 4, option: "--header", value: "X: 1"),
                .init(number: 5, option: "--silent", value: nil),
                .init(number: 6, option: "--max-time", value: "5"),
                .init(number: 8, option: "-d", value: "x"),
            ])
    }

    @Test func `each line of a config file is read by itself`() throws {
        let path = NSTemporaryDirectory() + "/rondo-config-\(UUID().uuidString)"
        defer { unlink(path) }
        let read = { (text: String) in
            try Data(text.utf8).write(to: URL(fileURLWithPath: path))
            return try FetchCommandLine(["-K", path])
        }
        let line = try read("silent = \"\"\n-fm5\n-L # yes\nno-clobber\nproxy = \"\"\nurl = \"u\"\n")
        let operation = line.operations[0]
        #expect(line.common.isSilent && operation.fails && operation.followsRedirects)
        #expect(operation.totalTimeout == 5 && operation.overwrites == false && operation.proxy?.url == "")
        #expect(operation.urls.map(\.text) == ["u"])
        for text in ["url = u\nsilent = true\n", "url = u\nproxy =\nurl = x\n", "url = u\nunknown\n"] {
            let failure = #expect(throws: CommandFailure.self, "\(text)") { try read(text) }
            #expect(failure?.message.hasPrefix("\(path):2: option --") == true)
            #expect(failure?.status == ExitStatus.badUsage)
        }
    }

    @Test func `only a line feed ends a line of a file, with or without a carriage return`() throws {
        let odd = "a\u{B}\u{C}\u{85}\u{2028}\u{2029}b"
        #expect(InputFile.lines(of: "\(odd)\r\n\r\nc\rd\n") == [odd[...], "", "c\rd", ""])
        let config = "header = \"X: \(odd)\"\r\nuser-agent = a\u{2028}\u{A0}b\n"
        #expect(
            ConfigFile.lines(in: Data(config.utf8)) == [
                .init(number: 1, option: "--header", value: "X: \(odd)"),
                .init(number: 2, option: "--user-agent", value: "a\u{2028}\u{A0}b"),
            ])
        let netrc = try Netrc(Data("machine h login a\u{2028}b password c\u{85}d\n".utf8))
        #expect(try netrc.credential(for: "h", user: nil)?.user == "a\u{2028}b")
        #expect(try netrc.credential(for: "h", user: nil)?.password == "c\u{85}d")
        let path = NSTemporaryDirectory() + "/rondo-lines-\(UUID().uuidString)"
        defer { unlink(path) }
        try Data("X: \(odd)\r\nY: \rZ\n".utf8).write(to: URL(fileURLWithPath: path))
        #expect(try operation("-H", "@" + path, "u").fields == ["X: \(odd)", "Y: \rZ"])
        #expect(try operation("-w", "@" + path, "u").writeOut == WriteOut("X: \(odd)Y: Z"))
        #expect(try FormPart("a=b;headers=@" + path).headers == ["X: \(odd)", "Y: Z"])
    }

    @Test func `a file that is not UTF-8 is named, and not changed`() throws {
        let path = NSTemporaryDirectory() + "/rondo-latin-\(UUID().uuidString)"
        defer { unlink(path) }
        var file = Data("X: caf".utf8)
        file.append(0xE9)
        try file.write(to: URL(fileURLWithPath: path))
        for words in [
            ["-H", "@" + path], ["-w", "@" + path], ["-F", "a=b;headers=@" + path],
        ] {
            let failure = #expect(throws: CommandFailure.self) { try FetchCommandLine(words + ["u"]) }
            #expect(failure?.message == "\(words[0]): \(path) is not UTF-8")
            #expect(failure?.status == ExitStatus.unreadable)
        }
    }

    @Test func `of a config file what is used is UTF-8, and comments need not be`() throws {
        let path = NSTemporaryDirectory() + "/rondo-latin-\(UUID().uuidString)"
        defer { unlink(path) }
        let read = { (text: String) in
            try (text.data(using: .isoLatin1) ?? Data()).write(to: URL(fileURLWithPath: path))
            return try operation("-K", path, "u")
        }
        for text in [
            "# caf\u{E9}\r\n\nuser-agent = a\n", "user-agent = a # caf\u{E9}\n",
            "user-agent = \"a\" \u{E9}\n", "user-agent = a\nsilent # \u{E9}",
        ] {
            #expect(try read(text).userAgent == "a")
        }
        for text in [
            "\nuser-agent = \u{E9}\n", "#\n\u{E9}gent = a\n", "\r\nuser-agent = \"\u{E9}\"\n",
        ] {
            let failure = #expect(throws: CommandFailure.self) { try read(text) }
            #expect(failure?.message == "\(path):2: not UTF-8" && failure?.status == ExitStatus.unreadable)
        }
    }

    @Test func `of a netrc file what is used is UTF-8, and what is of another host need not be`() throws {
        let text = """
            # caf\u{E9}
            macdef m
            \u{E9}

            machine o login \u{E9} password b
            machine h login a password b # caf\u{E9}
            machine h
            login c password "\u{E9}"
            machine \u{E9} \u{E9} \u{E9}
            """
        let netrc = try Netrc(text.data(using: .isoLatin1) ?? Data())
        #expect(try netrc.credential(for: "h", user: nil)?.password == "b")
        #expect(try netrc.credential(for: "x", user: nil) == nil)
        for (host, user, line) in [("o", nil, 5), ("h", "c", 8)] as [(String, String?, Int)] {
            let failure = #expect(throws: CommandFailure.self) { try netrc.credential(for: host, user: user) }
            #expect(failure?.message == "-n: line \(line): not UTF-8")
            #expect(failure?.status == ExitStatus.unreadable)
        }
        // A redirect to a host that the file has no text for.
        let operation = try FetchCommandLine(["u"]).operations[0]
        var first = try FetchRequest(FetchURL("http://h/"), operation, upload: nil, offset: 0)
        first.netrc = netrc
        #expect(throws: CommandFailure.self) {
            try first.redirected(to: FetchURL("http://o/"), status: 302, first: first, operation)
        }
    }

    @Test func `passwords that the command line lacks are asked for`() throws {
        var prompts: [String] = []
        let answer = { (prompt: String) in
            prompts.append(prompt)
            return "p\(prompts.count)"
        }
        var line = try FetchCommandLine(["-u", "a", "-U", "b", "u"])
        try line.askForPasswords(answer)
        #expect(line.operations[0].user == "a:p1" && line.operations[0].proxyUser == "b:p2")
        #expect(
            prompts == ["Enter host password for user 'a':", "Enter proxy password for user 'b':"])
        prompts = []
        line = try FetchCommandLine(["-u", "c:", "u", "--next", "-u", "d", "u"])
        try line.askForPasswords(answer)
        #expect(line.operations.map(\.user) == ["c:", "d:p1"])
        #expect(prompts == ["Enter host password for user 'd' on URL #2:"])
        line = try FetchCommandLine(["-u", "e", "--oauth2-bearer", "token", "u"])
        try line.askForPasswords { _ in throw CommandFailure("nothing to ask for") }
    }

    @Test func `every option is told of once, and each letter means one`() {
        let names = FetchOption.all.map(\.name)
        #expect(Set(names).count == names.count)
        let help = FetchHelp.text(width: 80)
        for option in FetchOption.all where option.isShown {
            #expect(help.contains("--" + option.name), "\(option.name)")
            #expect(!option.help.isEmpty)
        }
        #expect(help.split(separator: "\n").allSatisfy { $0.count <= 80 })
    }

    @Test func `--capath names folders`() throws {
        let tls = try operation("--cacert", "/dev/null", "--capath", "/:/tmp", "u").tls
        let authorities = try tls.settings(option: "--").certificateAuthorities
        #expect(authorities == [.file("/dev/null"), .directory("/"), .directory("/tmp")])
    }

    @Test func `a proxy's own scheme has precedence over the option's, and an empty one means none`() throws {
        let url = try FetchURL("http://h/")
        let kinds: [([String], StreamProxy.Kind)] = [
            (["--socks4", "p:1"], .socks4), (["--socks5", "http://p:1"], .socks5),
            (["--socks4", "socks5://p:1"], .socks5), (["-x", "socks5://p:1"], .socks5),
            (["-x", "http://p:1"], .httpConnect), (["-x", "p:1"], .httpConnect),
        ]
        for (words, kind) in kinds {
            let proxy = try FetchCommandLine(["--noproxy", ""] + words + ["u"]).operations[0].proxy(for: url)
            #expect(proxy?.kind == kind && proxy?.host == "p" && proxy?.port == 1)
        }
        for option in ["-x", "--socks4", "--socks4a", "--socks5", "--socks5-hostname"] {
            #expect(try operation("-x", "p:1", option, "", "u").proxy(for: url) == nil)
        }
    }

    @Test func `options name the addresses and the detours of connections, and this machine's end`() throws {
        let resolved = try operation("--resolve", "A.b:80:127.0.0.1,[::1]", "u").connect.addresses
        #expect(resolved == [.init(host: "a.b", port: 80): ["127.0.0.1", "::1"]])
        #expect(throws: FetchFailure.self) { try operation("--resolve", "a:80:b", "u") }
        let detours = try operation("--connect-to", "a:1:b:2", "--connect-to", "::[::1]:", "u").connect
            .detours
        #expect(
            detours == [
                .init(fromHost: "a", fromPort: 1, toHost: "b", toPort: 2), .init(toHost: "::1"),
            ])
        #expect(throws: CommandFailure.self) { try operation("--connect-to", "a", "u") }
        #expect(try operation("--interface", "eth0", "u").connect.localEnd == .interface("eth0"))
        #expect(try operation("--interface", "10.0.0.1", "u").connect.localEnd == .address("10.0.0.1"))
    }
}

/// URLs, globs and what is posted, as values.
struct FetchRequestTests {
    @Test(arguments: [
        ("example.org", "http://example.org/"), ("example.org:8080/x", "http://example.org:8080/x"),
        ("localhost:80", "http://localhost/"), ("HTTPS://h:443/a?b#c", "https://h/a?b#c"),
        ("http://h/a/../b/./c", "http://h/b/c"), ("http://h/..", "http://h/"), ("h?x", "http://h/?x"),
        ("http://u:p@h/", "http://h/"), ("http://[::1]:8/", "http://[::1]:8/"),
        ("file:///a/b", "file:///a/b"), ("file:///a?b#c", "file:///a#c"),
        ("file:///a/../b/./c?d/../e", "file:///b/c"),
        ("http://h/ü", "http://h/%c3%bc"),
        ("http://bücher.example/ü", "http://xn--bcher-kva.example/%c3%bc"),
        ("http://B%C3%BCcher.example:80/", "http://xn--bcher-kva.example/"), ("http://a%62c/", "http://abc/"),
        ("http://127.1/", "http://127.0.0.1/"),
        ("example.org/?u=http://x/", "http://example.org/?u=http://x/"),
    ])
    func `a URL is read as curl reads it`(text: String, expected: String) throws {
        #expect(try FetchURL(text).text == expected)
    }

    @Test func `a query is no part of a file's name`() throws {
        for (text, path) in [
            ("file:///a?b=/c", "/a"), ("file://localhost/a%3Fb", "/a?b"), ("file:///a#?", "/a"),
        ] {
            #expect(try FetchURL(text).url?.path == path)
        }
    }

    @Test(
        arguments: [
            ("http://h/x", ["a", "b"], "http://h/x?a&b"), ("http://h/x?a#f", ["b"], "http://h/x?a&b#f"),
            ("http://h/x?a&", ["b"], "http://h/x?a&b"), ("http://h/x?", ["a"], "http://h/x?a"),
            ("http://h/x?a", [""], "http://h/x?a&"), ("http://h/x?", [""], "http://h/x"),
            ("http://h/x", ["", "a"], "http://h/x?&a"), ("http://h/x#", ["a"], "http://h/x?a"),
            ("http://h/x#f", ["a#b", "c"], "http://h/x?a#b&c#f"), ("http://h/x", ["#"], "http://h/x?#"),
            ("http://h/x", ["ü"], "http://h/x?%c3%bc"), ("http://h/x?a", [], "http://h/x?a"),
            ("file:///x?a", ["b"], "file:///x"),
        ] as [(String, [String], String)])
    func `parts are added to a query as curl adds them`(text: String, parts: [String], sum: String) throws {
        #expect(try FetchURL(text).adding(query: parts).text == sum)
    }

    @Test func `-G sends the bytes of a file that is not UTF-8`() throws {
        let path = NSTemporaryDirectory() + "/rondo-latin-\(UUID().uuidString)"
        defer { unlink(path) }
        try Data([0x61, 0xE9]).write(to: URL(fileURLWithPath: path))
        let operation = try FetchCommandLine(["-G", "-d", "@" + path, "u"]).operations[0]
        let request = try FetchRequest(FetchURL("http://h/"), operation, upload: nil, offset: 0)
        #expect(request.url.target == "/?a%e9")
    }

    @Test func `a file's name that ends with a slash is a folder's`() throws {
        for text in ["file:///a/", "file:///a/.", "file:///a/b/..", "file:///a/./", "file:///a%2F"] {
            #expect(try FetchURL(text).url?.path == "/a/.")
        }
        #expect(try FetchURL("file:///a/../b").url?.path == "/b")
    }

    @Test(arguments: [
        "", "http://", "http://:80/", "http://h:99999/", "http://h:x/", "http://h/a b", "http://a|b/",
        "http://a%20b/", "http://a%2Fb/", "http://a%2541/", "http://a%zz/", "http://ü%00/",
        "http://a\u{FF0F}b/",
    ])
    func `a text that is not a URL is refused`(text: String) {
        let failure = #expect(throws: FetchFailure.self) { try FetchURL(text) }
        #expect(failure?.status == .malformedURL)
    }

    @Test(
        arguments: [
            ("mailto:x@b", .unsupportedScheme), ("tel:1", .unsupportedScheme),
            ("localhost:80/x", .unsupportedScheme), ("javascript:void(0)", .unsupportedScheme),
            ("about:blank", .unsupportedScheme), ("ftp://b/", .unsupportedScheme),
            ("http:80/x", .malformedURL), ("file:80/x", .malformedURL), ("http://b:99999/", .malformedURL),
            ("//b/x", nil), ("HTTPS://b/x#y", nil), ("1:2", nil), ("./b:80", nil), ("data:,x", nil),
        ] as [(String, FetchFailure.Status?)])
    func `no scheme is guessed for the target of a redirect`(
        location: String, status: FetchFailure.Status?
    ) throws {
        let url = try FetchURL("http://a/")
        guard let status else {
            _ = try url.following(location, keepsDots: false)
            return
        }
        let failure = #expect(throws: FetchFailure.self) { try url.following(location, keepsDots: false) }
        #expect(failure?.status == status)
    }

    @Test(arguments: [
        ("Thu, 01 Feb 2024 10:00:00 +0100", "Thu, 01 Feb 2024 09:00:00 GMT"),
        ("Thu, 01 Feb 2024 10:00:00 -0530", "Thu, 01 Feb 2024 15:30:00 GMT"),
        ("Thu Feb  1 10:00:00 CET 2024", "Thu, 01 Feb 2024 09:00:00 GMT"),
        ("1 Feb 2024 10:00:00 pdt", "Thu, 01 Feb 2024 17:00:00 GMT"),
        ("1 Feb 2024 +0100", "Wed, 31 Jan 2024 23:00:00 GMT"),
        ("20240201 10:00:00 +0100", "Thu, 01 Feb 2024 09:00:00 GMT"),
        ("01-Feb-2024 10:00:00", "Thu, 01 Feb 2024 10:00:00 GMT"),
        ("Sunday, 06-Nov-94 08:49:37 GMT", "Sun, 06 Nov 1994 08:49:37 GMT"),
        ("1 Feb 2024 10:00:00 XYZ", nil), ("old.txt", nil), ("2024-02-01", nil),
    ])
    func `TimeText reads a date in the zone that the text names`(text: String, expected: String?) {
        #expect(TimeText.date(text).map(HTTPDate.format) == expected)
    }

    @Test func `a URL with globs counts up its last glob fastest, and names output files`() throws {
        let glob = try URLGlob("http://h/{a,b}/[1-3:2]/[x-z]")
        #expect(glob.count == 12)
        #expect(glob.url(at: 0).text == "http://h/a/1/x")
        #expect(glob.url(at: 4).text == "http://h/a/3/y")
        #expect(glob.url(at: 11).matches == ["b", "3", "z"])
        #expect(try URLGlob("[08-10]").url(at: 0).text == "08")
        #expect(try URLGlob("http://[::1]/").count == 1)
        #expect(URLGlob.name("#1_#2#3_#.#", ["a", "b"]) == "a_b#3_#.#")
        for text in ["{a", "[1-", "[3-1]", "{}", "a}", "[a-5]", "{a,{b}}", "[1-9999999]"] {
            #expect(throws: FetchFailure.self, "\(text)") { try URLGlob(text) }
        }
    }

    @Test func `data is joined by ampersands, raw, URL-encoded, or a file without its line ends`() throws {
        var data = PostData()
        try data.append("a=1", as: .text)
        try data.append("@b", as: .raw)
        try data.append("c=x y&", as: .encoded)
        try data.append("d@e=@", as: .encoded)
        #expect(String(decoding: data.bytes, as: UTF8.self) == "a=1&@b&c=x+y%26&d@e=%40")
        let path = NSTemporaryDirectory() + "/rondo-form-\(UUID().uuidString)"
        try Data("a=1\r\nb\n\u{0}c".utf8).write(to: URL(fileURLWithPath: path))
        defer { unlink(path) }
        var text = PostData()
        try text.append("@" + path, as: .text)
        #expect(text.bytes == Data("a=1bc".utf8))
        #expect(throws: CommandFailure.self) { try text.append("@/nowhere", as: .text) }
        try text.append("name@/dev/null", as: .encoded)
        #expect(text.bytes == Data("a=1bc&".utf8))
    }

    @Test func `parts of a form are read as curl reads them`() throws {
        #expect(try FormPart("a=b;type=text/x").type == "text/x")
        let file = try FormPart("f=@x.txt;filename=\"a;b\";type=text/html;charset=utf-8,y.txt")
        #expect(
            file.content
                == .files([
                    .init(path: "x.txt", type: "text/html;charset=utf-8", fileName: "a;b"),
                    .init(path: "y.txt"),
                ]))
        #expect(try FormPart("f=<x").content == .contentOf("x"))
        #expect(try FormPart("a= b c ").content == .text("b c"))
        #expect(try FormPart("a=\"b;c").content == .text("\"b"))
        let cut = try FormPart("a=b; c;headers= X: 1 ;filename=\"d\"e")
        #expect(cut.content == .text("b") && cut.headers == ["X: 1"] && cut.fileName == "d")
        #expect(
            cut.warnings == ["-F: skip unknown form field: c", "-F: what follows a quote is left out: e"])
        for text in ["a=(b", "=(;type=multipart/mixed", "=)", "a=b;encoder=base64", "a=b;type=c"] {
            let failure = #expect(throws: CommandFailure.self, "\(text)") { try FormPart(text) }
            #expect(failure?.status == ExitStatus.badUsage)
        }
        #expect(try FormPart(string: "f=@x;type=y").content == .text("@x;type=y"))
    }

    @Test func `-H adds, repeats and omits fields`() throws {
        let given = GivenFields([
            "A: 1", "a: 2", "B:", "C;", "nonsense", "Host: h", "x y: z", "D: a\r\nInjected: b",
        ])
        #expect(given.fields.map { "\($0.name)=\($0.value)" } == ["A=1", "a=2", "C=", "D=aInjected: b"])
        #expect(given.omitted == ["B"] && given.host == "h")
        // Swift takes the accent and the colon before it for one character.
        let odd = GivenFields(["E:\u{301}e", "F: \u{A0}f\u{A0}\t", "G: g\r\u{301}h"]).fields
        #expect(odd.map(\.name) == ["E", "F", "G"])
        let values = ["\u{301}e", "\u{A0}f\u{A0}", "g\u{301}h"]
        #expect(odd.map { Array($0.value.utf8) } == values.map { Array($0.utf8) })
        let operation = try FetchCommandLine(["-H", "Accept:", "-A", "", "-u", "a:b", "u"]).operations[0]
        let request = try FetchRequest(FetchURL("http://h/"), operation, upload: nil, offset: 0)
        #expect(request.fields(operation, cookies: nil).map(\.name) == ["Authorization"])
    }

    @Test func `a redirect changes method and body as curl does, and secrets stay`() throws {
        let operation = try FetchCommandLine(["-d", "x", "-u", "a:b", "-H", "Cookie: c", "u"]).operations[0]
        let first = try FetchRequest(FetchURL("http://h/"), operation, upload: nil, offset: 0)
        let next = { (to: String, status: Int, operation: FetchOperation) in
            try first.redirected(to: FetchURL(to), status: status, first: first, operation)
        }
        for (status, method) in [(301, "GET"), (302, "GET"), (303, "GET"), (307, "POST"), (308, "POST")] {
            #expect(try next("http://h/x", status, operation).method == method)
        }
        let names = { (request: FetchRequest) in request.fields(operation, cookies: nil).map(\.name) }
        #expect(names(try next("http://h/x", 302, operation)).contains("Authorization"))
        for other in ["http://other/", "http://h:81/", "https://h/"] {
            let request = try next(other, 302, operation)
            #expect(
                !names(request).contains("Authorization") && !names(request).contains("Cookie"), "\(other)")
        }
        let named = try FetchCommandLine(["-d", "x", "-X", "POST", "u"]).operations[0]
        let post = try FetchRequest(FetchURL("http://h/"), named, upload: nil, offset: 0)
        let again = try post.redirected(to: FetchURL("http://h/x"), status: 302, first: post, named)
        #expect(again.method == "POST")
        if case .none = again.body {} else { Issue.record("the body goes along") }
    }

    @Test func `an upload keeps to its rate, and makes up for a second of slowness`() throws {
        var now = 5.0
        let stream = PacedStream(
            Foundation.InputStream(data: Data(count: 1000)), bytesPerSecond: 128, clock: { now })
        stream.open()
        var buffer = [UInt8](repeating: 0, count: 1000)
        let read = { stream.read(&buffer, maxLength: 1000) }
        #expect(stream.hasBytesAvailable)
        #expect(read() == 16)
        #expect(!stream.hasBytesAvailable)
        now = 5.5
        #expect(stream.hasBytesAvailable)
        #expect(read() == 64)
        now = 100
        #expect(read() == 144)
        #expect(!stream.hasBytesAvailable)
    }

    @Test(arguments: [["-d", "x"], ["-F", "a=b"]])
    func `--limit-rate limits uploads, too`(words: [String]) throws {
        let operation = try FetchCommandLine(words + ["--limit-rate", "1k", "u"]).operations[0]
        let request = try FetchRequest(FetchURL("http://h/"), operation, upload: nil, offset: 0)
        let sent = try request.urlRequest()
        #expect(sent.httpBodyStream is PacedStream && request.stream is PacedStream)
        #expect(sent.value(forHTTPHeaderField: "Content-Length") == request.body.length.map { "\($0)" })
    }

    @Test func `words of a netrc file may be in quotes`() throws {
        let text = #"""
            machine "a" login "us er" password "p\"a\\s\ns" # "
            machine b login us"er password "#\x"
            """#
        let netrc = try Netrc(Data(text.utf8))
        #expect(try netrc.credential(for: "a", user: nil)?.user == "us er")
        #expect(try netrc.credential(for: "a", user: nil)?.password == "p\"a\\s\ns")
        #expect(try netrc.credential(for: "b", user: nil)?.user == "us\"er")
        #expect(try netrc.credential(for: "b", user: nil)?.password == "#x")
        let open = Data("machine a\npassword \"x\n".utf8)
        let failure = #expect(throws: CommandFailure.self) { try Netrc(open) }
        #expect(failure?.message == "-n: line 2: a quote is not closed")
        #expect(failure?.status == ExitStatus.unreadable)
    }

    @Test func `a netrc file names users and passwords`() throws {
        let text =
            "# c\nmachine a login x password y\nmacdef init\nmachine b login no\n\nmachine c\n login z\ndefault login d password e"
        let netrc = try Netrc(Data(text.utf8))
        #expect(try netrc.credential(for: "A", user: nil)?.password == "y")
        #expect(try netrc.credential(for: "c", user: nil)?.user == "z")
        #expect(try netrc.credential(for: "b", user: nil)?.user == "d")
        #expect(try netrc.credential(for: "a", user: "other") == nil)
    }

    @Test func `a netrc file is asked for each host, and for the user of a URL`() throws {
        let path = NSTemporaryDirectory() + "/rondo-netrc-\(UUID().uuidString)"
        defer { unlink(path) }
        let text = "machine a login x password 1\nmachine b login y password 2\n"
        try Data(text.utf8).write(to: URL(fileURLWithPath: path))
        let operation = { (words: [String]) in
            try FetchCommandLine(["--netrc-file", path] + words + ["u"]).operations[0]
        }
        let request = { (url: String, operation: FetchOperation) in
            try FetchRequest(FetchURL(url), operation, upload: nil, offset: 0)
        }
        let field = { (request: FetchRequest, operation: FetchOperation) in
            request.authorization(operation).flatMap { Data(base64Encoded: String($0.dropFirst(6))) }.map {
                String(decoding: $0, as: UTF8.self)
            }
        }
        let (required, optional) = (try operation([]), try operation(["--netrc-optional"]))
        for (url, credential) in [("http://a/", "x:1"), ("http://x@a/", "x:1"), ("http://z@a/", "z:")] {
            for netrc in [required, optional] { #expect(field(try request(url, netrc), netrc) == credential) }
        }
        #expect(field(try request("http://x:3@a/", required), required) == "x:1")
        #expect(field(try request("http://x:3@a/", optional), optional) == "x:3")
        let first = try request("http://a/", required)
        for (target, credential) in [
            ("http://b/", "y:2"), ("http://a/x", "x:1"), ("http://c/", nil), ("http://z:9@c/", nil),
        ] {
            let next = try first.redirected(to: FetchURL(target), status: 302, first: first, required)
            #expect(field(next, required) == credential, "\(target)")
            let back = try next.redirected(to: first.url, status: 302, first: first, required)
            #expect(field(back, required) == "x:1")
        }
        // Nothing of the file is sent in plain text on the way from an https URL.
        var hop = try request("https://a/", required)
        let secure = hop
        let hops: [(String, String?)] = [("http://b/", nil), ("http://a/", nil), ("https://b/", "y:2")]
        for (target, credential) in hops {
            hop = try hop.redirected(to: FetchURL(target), status: 302, first: secure, required)
            #expect(field(hop, required) == credential, "\(target)")
        }
        // With -u the file is not read.
        let given = try operation(["-u", "v:w"])
        let own = try request("http://a/", given)
        #expect(field(own, given) == "v:w")
        let next = try own.redirected(to: FetchURL("http://b/"), status: 302, first: own, given)
        #expect(field(next, given) == nil)
    }

    @Test func `cookies are read from a file and written to one`() throws {
        let path = NSTemporaryDirectory() + "/rondo-cookies-\(UUID().uuidString)"
        defer { unlink(path) }
        let line = "#HttpOnly_h\tFALSE\t/\tFALSE\t4102444800\ta\t1\nh\tFALSE\t/\tFALSE\t0\tb\t2\n"
        try Data(line.utf8).write(to: URL(fileURLWithPath: path))
        let cookies = FetchCookies()
        cookies.read(path, droppingSessions: true)
        cookies.receive(["c=3; Path=/p"], from: try FetchURL("http://h/"))
        #expect(cookies.field(for: try FetchURL("http://h/p"), and: ["d=4"]) == "c=3; a=1; d=4")
        #expect(cookies.field(for: try FetchURL("http://other/"), and: []) == nil)
        #expect(
            cookies.fileText.hasSuffix(
                "h\tFALSE\t/p\tFALSE\t0\tc\t3\n#HttpOnly_h\tFALSE\t/\tFALSE\t4102444800\ta\t1\n"))
    }

    @Test func `of a head's cookies that are too many the last ones stay, and one can end another`() throws {
        let cookies = FetchCookies()
        let url = try FetchURL("http://h/")
        let values = (0..<900).map { "c\($0)=\($0)" } + ["c899=; Max-Age=0", "c898=x"]
        cookies.receive(values, from: url)
        let lines = cookies.fileText.split(separator: "\n").filter { !$0.hasPrefix("#") }
        #expect(lines.count == CookieRules.maximumPerDomain)
        let sent = cookies.field(for: url, and: [])?.components(separatedBy: "; ")
        let kept = (899 - CookieRules.maximumPerDomain..<898).map { "c\($0)=\($0)" } + ["c898=x"]
        #expect(Set(sent ?? []) == Set(kept))
    }

    @Test func `RFC 6265bis 5_6 a cookie of a file that is not UTF-8 is left out`() throws {
        let path = NSTemporaryDirectory() + "/rondo-cookies-\(UUID().uuidString)"
        defer { unlink(path) }
        var file = Data("h\tFALSE\t/\tFALSE\t0\ta\tcaf".utf8)
        file.append(0xE9)
        file.append(contentsOf: Array("\r\nh\tFALSE\t/\tFALSE\t0\tbb\tcafé\r\nSet-Cookie: c=".utf8))
        file.append(0xE9)
        // Of an attribute the server gets no byte back.
        file.append(contentsOf: Array("; Domain=h\nSET-COOKIE:d=é; Domain=h; x=".utf8))
        file.append(0xE9)
        try file.write(to: URL(fileURLWithPath: path))
        let cookies = FetchCookies()
        cookies.read(path, droppingSessions: false)
        #expect(cookies.field(for: try FetchURL("http://h/"), and: []) == "bb=café; d=é")
    }

    @Test func `Set-Cookie fields of a file go to the hosts that they name`() throws {
        let path = NSTemporaryDirectory() + "/rondo-cookies-\(UUID().uuidString)"
        defer { unlink(path) }
        let fields = [
            "session=1; Path=/", "a=2; Domain=bank.test", "b=3; Domain=.bank.test; Secure; Path=/x",
            "c=4; Domain=bank.test; Max-Age=0", "d=5; Domain=127.0.0.1; Max-Age=1000", "e=6; Domain=com",
            "f=7; Domain=bank.test\tTRUE", "g=8; Domain=bank.test", "g=9; Domain=bank.test; Max-Age=0",
        ]
        let text = fields.map { "Set-Cookie: \($0)\r\n" }.joined()
        try Data(text.utf8).write(to: URL(fileURLWithPath: path))
        let cookies = FetchCookies()
        cookies.read(path, droppingSessions: false)
        for (url, expected) in [
            ("https://bank.test/", "a=2"), ("https://www.bank.test/x", "b=3; a=2"),
            ("http://bank.test/x", "a=2"), ("https://evil.test/", nil), ("http://www.com/", nil),
            ("http://127.0.0.1/", "d=5; session=1"), ("http://127.0.0.2/", "session=1"),
            ("http://[::1]/", "session=1"),
        ] {
            #expect(cookies.field(for: try FetchURL(url), and: []) == expected, "\(url)")
        }
        #expect(!cookies.fileText.contains("session") && !cookies.fileText.contains("f\t7"))
        let kept = FetchCookies()
        kept.read(path, droppingSessions: true)
        #expect(kept.field(for: try FetchURL("http://127.0.0.1/"), and: []) == "d=5")
    }

    @Test(arguments: ["\u{2028}", "\u{85}", "\r", "\t"])
    func `a server sets no cookie of another host by a character in its own`(character: String) throws {
        let path = NSTemporaryDirectory() + "/rondo-cookies-\(UUID().uuidString)"
        defer { unlink(path) }
        let (evil, bank) = (try FetchURL("http://evil/"), try FetchURL("https://bank/"))
        let cookies = FetchCookies()
        cookies.receive(
            [
                "a=b\(character)Set-Cookie: sid=evil", "c\(character)d=e",
                "f=\(character)bank\tFALSE\t/\tTRUE\t4102444800\tsid\tevil",
            ], from: evil)
        #expect(cookies.field(for: bank, and: []) == nil)
        try Data(cookies.fileText.utf8).write(to: URL(fileURLWithPath: path))
        let next = FetchCookies()
        next.read(path, droppingSessions: false)
        #expect(next.field(for: bank, and: []) == nil)
        #expect(next.field(for: evil, and: []) == cookies.field(for: evil, and: []))
    }

    @Test(
        arguments: [
            ("bytes 50-99/100", 50), ("bytes: 50-99/*", 50), ("50-99/100", 50), ("bytes 0-99/100", 0),
            ("bytes */100", nil), ("bytes", nil),
        ] as [(String, Int64?)])
    func `a part begins where Content-Range says`(value: String, position: Int64?) {
        #expect(
            ReceivedHead("HTTP/1.1 206 Part\r\nContent-Range: \(value)\r\n\r\n").firstPosition == position)
    }

    @Test(arguments: [
        ("attachment; filename=\"a.txt\"", "a.txt"), ("attachment; filename=\"../../b\"", "b"),
        ("attachment; filename=.profile", "profile"), ("attachment; filename=\"..\"", nil), ("inline", nil),
        ("attachment; filename=\"a;b.txt\"; x=y", "a;b.txt"), ("attachment; x=\"; filename=a\"", nil),
        ("attachment; filename=\"a\\\"b.txt\"", "a\"b.txt"), ("attachment; filename='a.txt'", "a.txt"),
        ("attachment; filename*=UTF-8''b; filename=a", "a"),
        ("attachment; filename=\"-a\u{1B}[2Jb\"", "a[2Jb"),
    ])
    func `UC-26 a suggested name stays in the folder`(value: String, name: String?) {
        #expect(
            ReceivedHead("HTTP/1.1 200 OK\r\nContent-Disposition: \(value)\r\n\r\n").suggestedName == name)
    }
}
