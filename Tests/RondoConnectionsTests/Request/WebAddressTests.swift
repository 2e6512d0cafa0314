import Foundation
import FoundationNetworking
import RondoCore
import Testing

@testable import RondoConnections
@testable import RondoHTTP

/// URLs and responses, read and made without Foundation's slow ways where that is the same.
@Suite(.leavesNoConnections) struct WebAddressTests {
    @Test(
        arguments: [
            ("http://a/", "a", 80, "a", "/", true),
            ("https://a.b-c.d/x?y=1", "a.b-c.d", 443, "a.b-c.d", "/x?y=1", true),
            ("http://127.0.0.1:8080/x#f", "127.0.0.1", 8080, "127.0.0.1:8080", "/x", true),
            ("http://a:80/?", "a", 80, "a:80", "/?", true),
            ("http://a/b?c?d#e?f#", "a", 80, "a", "/b?c?d", true),
            ("http://a", "a", 80, "a", "/", false), ("http://a?b", "a", 80, "a", "/?b", false),
            ("HTTP://a/", "a", 80, "a", "/", false), ("http://A/", "A", 80, "A", "/", false),
            ("http://u:p@a/x", "a", 80, "a", "/x", false),
            ("http://[::1]:81/x", "::1", 81, "[::1]:81", "/x", false),
            ("http://a:081/x", "a", 81, "a:81", "/x", false), ("http://a:/x", "a", 80, "a", "/x", false),
        ] as [(String, String, Int, String, String, Bool)])
    func `a URL is read as Foundation reads it`(
        text: String, host: String, port: Int, authority: String, target: String, isPlain: Bool
    ) throws {
        let url = try #require(URL(string: text))
        let address = try #require(WebAddress(url))
        #expect(address.host == host && address.port == port)
        #expect(address.authority == authority && address.target == target)
        #expect(WebAddress.isPlain(url) == isPlain)
        // By the parser that the plain way does without.
        let parts = try #require(URLComponents(url: url, resolvingAgainstBaseURL: true))
        #expect(address.host == url.host)
        #expect(address.port == parts.port ?? (parts.scheme?.lowercased() == "https" ? 443 : 80))
        let path = parts.percentEncodedPath.isEmpty ? "/" : parts.percentEncodedPath
        #expect(address.target == path + (parts.percentEncodedQuery.map { "?" + $0 } ?? ""))
    }

    @Test(arguments: ["file:///a", "data:,x", "http:///x", "ftp://a/b", "mailto:a@b", "x"])
    func `a URL that is neither http nor https has no web address`(text: String) throws {
        #expect(WebAddress(try #require(URL(string: text))) == nil)
    }

    @Test(arguments: ["http://[fe80::1%25eth0]:8080/x", "http://u@[fe80::1%25eth0]:8080/x"])
    func `RFC 6874 4 the zone of an IPv6 address is for connecting, and is not sent`(text: String) throws {
        let url = try #require(URL(string: text))
        let address = try #require(WebAddress(url))
        #expect(address.host == url.host)
        #expect(address.authority == "[fe80::1]:8080")
        #expect(address.absoluteForm("/x") == "http://[fe80::1]:8080/x")
        #expect(TunnelNegotiation.authority(ofHost: "fe80::1%eth0", port: 443) == "[fe80::1]:443")
    }

    @Test func `RFC 3986 3.2.3 an empty port is the usual one, and one that does not exist is none`() {
        #expect(WebAddress(url("http://h:/a"))?.port == 80)
        #expect(WebAddress(url("https://h:"))?.port == 443)
        #expect(WebAddress(url("http://h:00081/"))?.port == 81)
        for port in ["0", "65536", "99999999999999999999", "18446744073709551696"] {
            #expect(WebAddress(url("http://h:\(port)/")) == nil)
        }
    }

    @Test func `a URL relative to another is read whole`() throws {
        let base = try #require(URL(string: "http://a/b/c"))
        let url = try #require(URL(string: "../d?e", relativeTo: base))
        #expect(WebAddress(url)?.target == "/d?e" && WebAddress(url)?.host == "a")
    }

    @Test func `UC-25 the fields of a response are spelled as Foundation spells them`() throws {
        let url = try #require(URL(string: "http://a/b"))
        let names = [
            "content-type", "ETag", "x-one", "X-Two-THREE", "WWW-authenticate", "sec-ch-ua-64bit", "a_b.c",
            "P3P", "Content-MD5", "strict-transport-security", "ÄTag", "x",
        ]
        let fields = Dictionary(uniqueKeysWithValues: names.map { ($0, "value of \($0)") })
        let head = ResponseHead(status: 200, fields: HeaderFields(fields.map { ($0.key, $0.value) }))
        let response = try #require(LoadedResponse(url: url, head: head, bodyLength: 1))
        let foundation = try #require(
            HTTPURLResponse(url: url, statusCode: 200, httpVersion: "HTTP/1.1", headerFields: fields))
        #expect(
            response.allHeaderFields as? [String: String] == foundation.allHeaderFields as? [String: String])
        for name in names {
            #expect(response.value(forHTTPHeaderField: name.uppercased()) == "value of \(name)")
        }
    }

    @Test func `UC-25 fields that come again are one list, whatever their case`() throws {
        let url = try #require(URL(string: "http://a/b"))
        let fields = HeaderFields([("X-a", "1"), ("Via", "2"), ("x-A", "3"), ("VIA", "4"), ("X-A", "5")])
        let head = ResponseHead(status: 200, fields: fields)
        let response = try #require(LoadedResponse(url: url, head: head, bodyLength: nil))
        #expect(response.allHeaderFields as? [String: String] == ["X-a": "1, 3, 5", "Via": "2, 4"])
    }

    /// RFC 9110 §5.3: what is no list cannot be joined.
    @Test func `UC-26 fields that are no list are not joined, and of media types the last one counts`() throws
    {
        let url = try #require(URL(string: "http://a/b"))
        for _ in 1...2 {
            let fields = HeaderFields([
                ("Content-Type", "text/plain; charset=a"), ("ETag", "\"1\""),
                ("Content-Disposition", "inline; filename=c"),
                ("content-type", "text/html; charset=d"), ("etag", "\"2\""), ("Content-Type", "nonsense"),
                ("Content-Disposition", "attachment; filename=e"), ("Location", "/f"), ("Location", "/f"),
            ])
            let head = ResponseHead(status: 200, fields: fields)
            let response = try #require(LoadedResponse(url: url, head: head, bodyLength: nil))
            #expect(response.mimeType == "text/html")
            #expect(response.textEncodingName == "d")
            #expect(response.suggestedFilename == "c")
            #expect(response.value(forHTTPHeaderField: "ETag") == "\"1\"")
            #expect(response.value(forHTTPHeaderField: "Location") == "/f")
        }
    }

    /// Nothing that is remembered of one head may show in the next.
    @Test func `UC-25 the fields of a response are its own, whatever the last one had`() throws {
        let url = try #require(URL(string: "http://a/b"))
        let long = String(repeating: "l", count: 1000)
        let heads: [([(String, String)], [String: String])] = [
            ([("a", "1"), ("b", "2")], ["A": "1", "B": "2"]),
            ([("a", "1"), ("b", "2")], ["A": "1", "B": "2"]),
            ([("a", "1"), ("b", "3")], ["A": "1", "B": "3"]),
            ([("b", "3"), ("a", "1")], ["A": "1", "B": "3"]),
            ([("b", "3"), ("b", "4")], ["B": "3, 4"]), ([("b", "3"), ("b", "5")], ["B": "3, 5"]),
            ([("b", "3"), ("a", long)], ["A": long, "B": "3"]),
            ([("b", ""), ("a", long)], ["A": long, "B": ""]),
            ([("b", ""), ("a", "1"), ("c", "2")], ["A": "1", "B": "", "C": "2"]),
            ([("b", "")], ["B": ""]), ([("B", "")], ["B": ""]), ([], [:]), ([("a", "ä")], ["A": "ä"]),
            // Of a large one less is remembered.
            ([("a", long + long)], ["A": long + long]), ([], [:]), ([("a", long + long)], ["A": long + long]),
            ([("X-a", "1"), ("x-A", "2")], ["X-a": "1, 2"]),
            ([("X-a", "1"), ("x-B", "2")], ["X-a": "1", "x-B": "2"]),
        ]
        for (fields, expected) in heads + heads.reversed() + heads {
            let head = ResponseHead(status: 200, fields: HeaderFields(fields))
            let response = try #require(LoadedResponse(url: url, head: head, bodyLength: 1))
            #expect(response.allHeaderFields as? [String: String] == expected)
        }
    }

    @Test func `UC-25 a response is archived with its URL`() throws {
        let url = try #require(URL(string: "http://a/b.txt?c"))
        let head = ResponseHead(status: 200, fields: HeaderFields([("a", "1")]))
        let response = try #require(LoadedResponse(url: url, head: head, bodyLength: 1))
        let data = try NSKeyedArchiver.archivedData(withRootObject: response, requiringSecureCoding: true)
        let read = try NSKeyedUnarchiver.unarchivedObject(ofClass: LoadedResponse.self, from: data)
        #expect(read?.url == url && read?.suggestedFilename == "b.txt" && read?.expectedContentLength == 1)
        #expect(response.url == url && response.suggestedFilename == "b.txt")
    }

    @Test(arguments: ["text/html", "Text/HTML; charset=utf-8", "a/b;c=\"d;e\"", "multipart/x; boundary=y"])
    func `UC-26 the media type is the one that Foundation finds`(field: String) throws {
        let url = try #require(URL(string: "http://a/b"))
        let foundation = HTTPURLResponse(
            url: url, statusCode: 200, httpVersion: nil, headerFields: ["Content-Type": field])
        #expect(try mimeType(field) == foundation?.mimeType)
    }

    @Test func `UC-26 space around the media type is no part of it`() throws {
        #expect(try mimeType(" text/plain ;charset=x") == "text/plain")
        #expect(try mimeType(";charset=x") == nil)
    }

    private func mimeType(_ field: String) throws -> String? {
        let url = try #require(URL(string: "http://a/b"))
        let head = ResponseHead(status: 200, fields: HeaderFields([("Content-Type", field)]))
        return try #require(LoadedResponse(url: url, head: head, bodyLength: nil)).mimeType
    }
}
