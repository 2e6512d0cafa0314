import RondoHTTP
import Testing

/// Tests what stands behind the semicolons of a field's value, and which media type Content-Type means.
@Suite struct FieldParametersTests {
    @Test(
        arguments: [
            ("text/html", [:]), ("text/html; charset=utf-8", ["charset": "utf-8"]),
            ("text/html;; charset=utf-8", ["charset": "utf-8"]),
            ("text/html; ; ;charset=utf-8;", ["charset": "utf-8"]),
            ("text/html; flag; charset=utf-8", ["charset": "utf-8"]),
            ("text/html; charset; charset=utf-8", ["charset": "utf-8"]),
            ("text/html; charset=; charset=utf-8", ["charset": "utf-8"]),
            ("text/html; =x; charset=utf-8", ["charset": "utf-8"]),
            ("text/html;\u{301}; charset=utf-8", ["charset": "utf-8"]),
            ("attachment; ;filename=foo", ["filename": "foo"]),
            ("attachment;flag\t; FileName = \"a;b\\\"c\" ; x=y", ["filename": "a;b\"c", "x": "y"]),
            ("a; b=\"1\"junk; c=2", ["b": "1", "c": "2"]), ("a; b=1; B=2", ["b": "1"]),
            ("a; b=\"unclosed; c=2", ["b": "unclosed; c=2"]), ("", [:]), (";", [:]), (";;;;", [:]),
            ("a=b; c=d", ["c": "d"]),
        ] as [(String, [String: String])])
    func `RFC 9110 5.6.6 an invalid parameter does not remove others`(
        value: String, expected: [String: String]
    ) {
        #expect(FieldParameters.of(value) == expected)
    }

    @Test(
        arguments: [
            ("text/html", "text/html", nil), ("Text/HTML; Charset=UTF-8", "text/html", "UTF-8"),
            ("text/plain, text/html;charset=a", "text/html", "a"),
            ("text/html;charset=a, nonsense", "text/html", "a"), ("text/html, */*", "text/html", nil),
            ("text/html, , ", "text/html", nil), ("*/*, text/html", "text/html", nil),
            ("text/html; a=\"b, c/d\"", "text/html", nil),
            ("text/html; a=\"\\\", b/c\"; charset=x", "text/html", "x"),
            ("text/plain;charset=a, text/html", "text/html", nil), ("text/html charset=a", nil, nil),
            ("text", nil, nil), ("text/", nil, nil), ("/html", nil, nil), ("text/html/x", nil, nil),
            ("", nil, nil),
            ("*/*", nil, nil), (";charset=a", nil, nil), ("te xt/html", nil, nil),
            ("text/html; a=\"", "text/html", nil),
            ("text/html; a=\"\\", "text/html", nil),
        ] as [(String, String?, String?)])
    func `UC-26 of several media types the last one counts that is one`(
        value: String, essence: String?, charset: String?
    ) {
        let type = MediaTypeField(value)
        #expect(type?.essence == essence)
        #expect(type?.parameters["charset"] == charset)
    }
}
