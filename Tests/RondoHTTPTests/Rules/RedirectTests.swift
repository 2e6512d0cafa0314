import Foundation
import RondoHTTP
import Testing

@Suite struct RedirectTests {
    private func follow(
        _ location: String?, from current: String = "http://a.example/b/c?d", status: Int = 302,
        method: String = "GET"
    ) throws -> Redirect.Decision {
        let url = try #require(URL(string: current))
        return Redirect.decide(status: status, location: location, method: method, currentURL: url)
    }

    private func target(_ location: String, from current: String = "http://a.example/b/c?d") throws -> String?
    {
        if case .to(let url, _, _, _) = try follow(location, from: current) {
            url.absoluteString
        } else {
            nil
        }
    }

    // MARK: Method and body

    @Test(arguments: [
        (301, "GET", "GET", true), (301, "POST", "GET", false), (301, "HEAD", "HEAD", true),
        (301, "PUT", "PUT", true), (302, "POST", "GET", false), (302, "DELETE", "DELETE", true),
        (302, "HEAD", "HEAD", true), (303, "GET", "GET", false), (303, "POST", "GET", false),
        (303, "PUT", "GET", false), (303, "HEAD", "HEAD", false), (307, "POST", "POST", true),
        (307, "GET", "GET", true), (308, "POST", "POST", true), (308, "PATCH", "PATCH", true),
    ])
    func `UC-33 the status decides on method and body`(
        _ status: Int, _ method: String, _ newMethod: String, _ keepsBody: Bool
    ) throws {
        let url = try #require(URL(string: "http://a.example/e"))
        #expect(
            try follow("/e", status: status, method: method)
                == .to(url: url, method: newMethod, keepsBody: keepsBody, sameOrigin: true))
    }

    @Test(arguments: [200, 201, 300, 304, 305, 306, 309, 404])
    func `UC-33 no other status is a redirect, Location or not`(_ status: Int) throws {
        #expect(try follow("/e", status: status) == .notARedirect)
        #expect(try follow(nil, status: status) == .notARedirect)
    }

    @Test(arguments: [
        nil, "", "  ", "http://", "http:///e", "http:e", "https://:80/", "http://a:65536/", "http://a:0/",
        "http://a:99999999999999999999/", "//a.example:18446744073709551696/e", "http://u:p@a:4294967376/",
        "http://[::1]:99999999999999999999/", "http://a:x/", "http://a:-1/",
    ])
    func `UC-34 a Location that leads nowhere is none`(_ location: String?) throws {
        #expect(try follow(location) == .missingLocation)
    }

    @Test(arguments: [
        "ftp://a.example/", "file:///etc/passwd", "mailto:a@b", "javascript:alert('a b')", "data:,a",
    ])
    func `a server may send a request only to http and https`(_ location: String) throws {
        guard case .unsupported(let url) = try follow(location) else {
            Issue.record("\(location) was followed")
            return
        }
        #expect(url.scheme.map { location.hasPrefix($0) } == true)
    }

    @Test(arguments: [
        ("http://h", URIPort.usual), ("http://h/", .usual), ("http://h:/a:1", .usual),
        ("http://h:80/", .number(80)),
        ("http://h:000000000000000000000080/", .number(80)), ("http://h:65535", .number(65_535)),
        ("http://h:65536", .impossible), ("http://h:0/", .impossible), ("http://h:00/", .impossible),
        ("http://h:99999999999999999999/", .impossible), ("http://1:2@h/", .usual),
        ("http://u@h:1", .number(1)),
        ("http://[::1]/", .usual), ("http://[::1]:/", .usual), ("http://[::1]:8/", .number(8)),
        ("http://[::1]:70000/", .impossible), ("http:/a:99999", .usual),
    ])
    func `RFC 3986 3.2.3 a port is one of 16 bits, or left out`(_ text: String, _ expected: URIPort) throws {
        #expect(URIPort(of: try #require(URL(string: text))) == expected)
    }

    // MARK: Where

    @Test(arguments: [
        ("/e", true), ("HTTP://A.EXAMPLE:80/e", true), ("//a.example/e", true), ("//u:p@a.example/e", true),
        ("https://a.example/e", false), ("http://a.example:8080/", false), ("http://b.example/", false),
        ("//a.example.b.example/", false), ("//a.example@b.example/", false),
    ])
    func `the origin is scheme, host and port`(_ location: String, _ isSame: Bool) throws {
        guard case .to(_, _, _, let sameOrigin) = try follow(location) else {
            Issue.record("\(location) was not followed")
            return
        }
        #expect(sameOrigin == isSame)
    }

    @Test(arguments: [
        ("e", "http://a.example/b/e"), ("../e", "http://a.example/e"), ("?e", "http://a.example/b/c?e"),
        ("//b.example", "http://b.example"), (" /e\t", "http://a.example/e"),
        ("/a b", "http://a.example/a%20b"), ("/é?ü=ß", "http://a.example/%C3%A9?%C3%BC=%C3%9F"),
        ("/a%20b%C3%A9", "http://a.example/a%20b%C3%A9"), ("/100%", "http://a.example/100%25"),
        ("/%zz%4", "http://a.example/%25zz%254"),
        ("/a|b\"<>\\^`{}", "http://a.example/a%7Cb%22%3C%3E%5C%5E%60%7B%7D"),
        ("/a[1]?b[]=2#c#d", "http://a.example/a%5B1%5D?b%5B%5D=2#c%23d"),
        ("http://[::1]:8080/e", "http://[::1]:8080/e"), ("http://b.example:/e", "http://b.example:/e"),
        ("//b.example/a:b@c;d=e,f", "http://b.example/a:b@c;d=e,f"),
    ])
    func `a Location is resolved against the current URL, and mended`(
        _ location: String, _ expected: String
    ) throws {
        #expect(try target(location) == expected)
    }

    @Test func `RFC 9110 10.2.2 the fragment is inherited unless the Location has one`() throws {
        #expect(try target("/e", from: "http://a.example/b#f") == "http://a.example/e#f")
        #expect(try target("/e#g", from: "http://a.example/b#f") == "http://a.example/e#g")
        #expect(try target("/e#", from: "http://a.example/b#f") == "http://a.example/e#")
        #expect(try target("//b.example/", from: "http://a.example/b#f") == "http://b.example/#f")
        #expect(try target("#g", from: "http://a.example/b?c#f") == "http://a.example/b?c#g")
    }

    @Test func `a URL without a path is resolved against too`() throws {
        #expect(try target("e", from: "http://a.example") == "http://a.example/e")
        #expect(try target("?e", from: "http://a.example") == "http://a.example?e")
    }

    @Test func `a host in other letters is followed or refused, never another host`() throws {
        let target = try target("http://bücher.example/e")
        #expect(target == nil || target == "http://xn--bcher-kva.example/e")
    }

    @Test(arguments: ["http://a b/", "http://a\\b/", "http://a\"b/", "http://a<b/"])
    func `a redirect to an invalid host is not followed to another host`(_ location: String) throws {
        switch try follow(location) {
        case .missingLocation: break
        case .to(let url, _, _, let sameOrigin): #expect(url.host != "a" && url.host != "b" && !sameOrigin)
        case .notARedirect, .unsupported: Issue.record("no redirect")
        }
    }

    // MARK: RFC 3986

    @Test(arguments: [
        // §5.4.1, normal examples
        ("g:h", "g:h"), ("g", "http://a/b/c/g"), ("./g", "http://a/b/c/g"), ("g/", "http://a/b/c/g/"),
        ("/g", "http://a/g"), ("//g", "http://g"), ("?y", "http://a/b/c/d;p?y"), ("g?y", "http://a/b/c/g?y"),
        ("#s", "http://a/b/c/d;p?q#s"), ("g#s", "http://a/b/c/g#s"), ("g?y#s", "http://a/b/c/g?y#s"),
        (";x", "http://a/b/c/;x"), ("g;x", "http://a/b/c/g;x"), ("g;x?y#s", "http://a/b/c/g;x?y#s"),
        ("", "http://a/b/c/d;p?q"), (".", "http://a/b/c/"), ("./", "http://a/b/c/"), ("..", "http://a/b/"),
        ("../", "http://a/b/"), ("../g", "http://a/b/g"), ("../..", "http://a/"), ("../../", "http://a/"),
        ("../../g", "http://a/g"),
        // §5.4.2, abnormal examples
        ("../../../g", "http://a/g"), ("../../../../g", "http://a/g"), ("/./g", "http://a/g"),
        ("/../g", "http://a/g"), ("g.", "http://a/b/c/g."), (".g", "http://a/b/c/.g"),
        ("g..", "http://a/b/c/g.."), ("..g", "http://a/b/c/..g"), ("./../g", "http://a/b/g"),
        ("./g/.", "http://a/b/c/g/"), ("g/./h", "http://a/b/c/g/h"), ("g/../h", "http://a/b/c/h"),
        ("g;x=1/./y", "http://a/b/c/g;x=1/y"), ("g;x=1/../y", "http://a/b/c/y"),
        ("g?y/./x", "http://a/b/c/g?y/./x"), ("g?y/../x", "http://a/b/c/g?y/../x"),
        ("g#s/./x", "http://a/b/c/g#s/./x"), ("g#s/../x", "http://a/b/c/g#s/../x"), ("http:g", "http:g"),
        // and some more of that kind
        ("//g/../h/./i", "http://g/h/i"), ("//", "http://"), ("///g", "http:///g"),
        ("?", "http://a/b/c/d;p?"),
        ("#", "http://a/b/c/d;p?q#"), ("1:2", "http://a/b/c/1:2"), ("x/y:z", "http://a/b/c/x/y:z"),
        ("g//h/..//i", "http://a/b/c/g///i"),
    ])
    func `RFC 3986 5.4 a reference is resolved as in the table`(
        _ reference: String, _ expected: String
    ) {
        let base = URIReference("http://a/b/c/d;p?q")
        #expect(URIReference(reference).resolved(against: base).text == expected)
    }
}
