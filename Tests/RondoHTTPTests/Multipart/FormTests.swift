import Foundation
import RondoHTTP
import Testing

@Suite struct FormTests {
    private func text(_ form: MultipartForm) -> String {
        form.segments.map { segment in
            switch segment {
            case .bytes(let data): String(decoding: data, as: UTF8.self)
            case .file(let path, _, let length): "<\(path), \(length)>"
            }
        }.joined()
    }

    @Test func `RFC 7578 4 a form with fields and files is written as multipart/form-data`() {
        var form = MultipartForm(boundary: "B")
        form.append(name: "a", value: "1\n\u{E9}")
        form.append(name: "f", fileName: "x.txt", contentType: "text/plain", .bytes(Data("data".utf8)))
        form.append(name: "g", fileName: "y", contentType: nil, .file(path: "/y", length: 5))
        #expect(form.contentType == "multipart/form-data; boundary=B")
        let expected =
            "--B\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n1\n\u{E9}\r\n"
            + "--B\r\nContent-Disposition: form-data; name=\"f\"; filename=\"x.txt\"\r\n"
            + "Content-Type: text/plain\r\n\r\ndata\r\n"
            + "--B\r\nContent-Disposition: form-data; name=\"g\"; filename=\"y\"\r\n"
            + "Content-Type: application/octet-stream\r\n\r\n</y, 5>\r\n--B--\r\n"
        #expect(text(form) == expected)
        #expect(form.length == Int64(expected.utf8.count - "</y, 5>".utf8.count + 5))
        #expect(form.segments.count == 3)
    }

    /// Fields are appended where the bytes before them lie, but for the times when the memory has to grow.
    @Test func `fields behind a long one do not copy it`() {
        var form = MultipartForm(boundary: "B")
        form.append(name: "long", fileName: nil, contentType: nil, .bytes(Data(count: 1_000_000)))
        var places: [UnsafeRawPointer?] = []
        for number in 0..<100 {
            form.append(name: "\(number)", value: "")
            places.append(form.tail.withUnsafeBytes { $0.baseAddress })
        }
        let moves = zip(places, places.dropFirst()).count { $0 != $1 }
        #expect(moves <= 2)
        let field = "--B\r\nContent-Disposition: form-data; name=\"10\"\r\n\r\n\r\n"
        #expect(text(form).contains(field))
        #expect(form.length == form.segments.reduce(0) { $0 + $1.length })
    }

    @Test func `a form that ends in a file, and one of two files, have their lines between`() {
        var form = MultipartForm(boundary: "B")
        for path in ["/x", "/y"] {
            form.append(name: "f", fileName: nil, contentType: nil, .file(path: path, length: 5))
        }
        let head = "--B\r\nContent-Disposition: form-data; name=\"f\"\r\n\r\n"
        let expected = "\(head)</x, 5>\r\n\(head)</y, 5>\r\n--B--\r\n"
        #expect(text(form) == expected)
        #expect(form.segments.count == 5)
        #expect(form.length == Int64(expected.utf8.count - 2 * "</x, 5>".utf8.count + 10))
    }

    @Test func `an empty form is its end`() {
        let form = MultipartForm(boundary: "B")
        #expect(text(form) == "--B--\r\n" && form.length == 7)
    }

    @Test func `WHATWG HTML 4.10.21.8 names are escaped, and cannot leave their line`() {
        var form = MultipartForm(boundary: "B")
        form.append(name: "a\"b\nc\rd\r\ne\\%", value: "")
        form.append(
            name: "", fileName: "q\"\r\nX: y\n", contentType: "a/b\r\nX: y", .bytes(Data()))
        let whole = text(form)
        #expect(whole.contains("name=\"a%22b%0D%0Ac%0D%0Ad%0D%0Ae\\%\"\r\n"))
        #expect(whole.contains("name=\"\"; filename=\"q%22%0D%0AX: y%0A\"\r\nContent-Type: a/bX: y\r\n\r\n"))
    }

    @Test func `random boundaries differ and have 49 bytes`() {
        let boundaries = Set((0..<100).map { _ in MultipartForm.randomBoundary() })
        #expect(boundaries.count == 100 && boundaries.allSatisfy { $0.utf8.count == 49 })
    }

    @Test(arguments: [
        ("a", "b", "a=b"), ("a b", "c+d", "a+b=c%2Bd"), ("", "", "="), ("&=", "%\r\n", "%26%3D=%25%0D%0A"),
        ("*-._09AZaz", "~!'()", "*-._09AZaz=%7E%21%27%28%29"), ("é", "€😀", "%C3%A9=%E2%82%AC%F0%9F%98%80"),
    ])
    func `WHATWG URL 5.2 names and values are percent-encoded`(
        _ name: String, _ value: String, _ expected: String
    ) {
        #expect(URLEncodedForm.encode([(name, value)]) == expected)
    }

    @Test func `WHATWG URL 5.2 fields keep their order, and their repetitions`() {
        #expect(URLEncodedForm.encode([("b", "1"), ("a", "2"), ("b", "3")]) == "b=1&a=2&b=3")
        #expect(URLEncodedForm.encode([]) == "")
    }

    /// Python's parsers read what is written here.
    @Test func `Python reads multipart and URL-encoded forms`() throws {
        var form = MultipartForm()
        form.append(name: "n\u{E9}", value: "v\r\n--x")
        form.append(name: "f", fileName: "a b.txt", contentType: nil, .bytes(Data([0, 1, 255, 13, 10])))
        let script = """
            import email, sys, urllib.parse
            body = sys.stdin.buffer.read()
            head = b"Content-Type: " + sys.argv[1].encode() + b"\\r\\n\\r\\n"
            for part in email.message_from_bytes(head + body).get_payload():
                name = part.get_param("name", header="content-disposition")
                print(ascii(name), part.get_filename(), part.get_payload(decode=True))
            print(ascii(urllib.parse.parse_qsl(sys.argv[2], keep_blank_values=True)))
            """
        let encoded = URLEncodedForm.encode([("a b", "\u{20AC}&="), ("", "")])
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = ["python3", "-c", script, form.contentType, encoded]
        let (input, output) = (Pipe(), Pipe())
        process.standardInput = input
        process.standardOutput = output
        try process.run()
        for case .bytes(let data) in form.segments { try input.fileHandleForWriting.write(contentsOf: data) }
        try input.fileHandleForWriting.close()
        let said = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        process.waitUntilExit()
        let lines = said.split(separator: "\n")
        #expect(lines.count == 3)
        #expect(lines.first?.hasSuffix(#"None b'v\r\n--x'"#) == true)
        #expect(lines.dropFirst().first == #"'f' a b.txt b'\x00\x01\xff\r\n'"#)
        #expect(lines.last == #"[('a b', '\u20ac&='), ('', '')]"#)
    }

    @Test func `files of any size have a length together`() {
        var form = MultipartForm(boundary: "B")
        for name in ["a", "b"] {
            form.append(
                name: name, fileName: name, contentType: nil, .file(path: "/\(name)", length: .max - 1))
        }
        #expect(form.length == .max)
    }
}
