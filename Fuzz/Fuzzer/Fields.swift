import Foundation
import RondoHTTP

@testable import RondoConnections

private let now = Date(timeIntervalSince1970: 1_700_000_000)

/// Each line a Set-Cookie field.
func readCookies(_ lines: [String]) {
    let origins = [
        CookieOrigin(host: "a.example.org", path: "/x/y", isSecure: true),
        CookieOrigin(host: "127.0.0.1", path: "", isSecure: false),
    ]
    var table = CookieTable()
    for line in lines {
        for origin in origins {
            guard let field = SetCookie(line), let cookie = CookieRules.cookie(field, from: origin, now: now)
            else { continue }
            _ = table.receive([cookie], from: origin, now: now)
            for cookie in table.cookies(for: origin, now: now) {
                let bytes = [cookie.name, cookie.value].joined().utf8
                if bytes.contains(where: { $0 == 0x0D || $0 == 0x0A }) { fatalError("a line end in Cookie") }
            }
        }
    }
    if table.count != table.all.count { fatalError("\(table.count) cookies, \(table.all.count) found") }
}

/// Each line a WWW-Authenticate field, and an Authentication-Info afterwards.
func readChallenges(_ lines: [String]) {
    // Others do not come out of a head.
    guard lines.allSatisfy(canBeField) else { return }
    for challenge in PasswordChallenge.strongestFirst(Challenge.challenges(in: lines.map { Array($0.utf8) }))
    {
        guard case .digest(let digest) = challenge,
            var session = try? DigestSession(digest, user: "u", password: "p"),
            let answer = try? session.authorize(method: "GET", target: "/", bodyHash: "h")
        else { continue }
        if !canBeSent(answer.fieldValue) { fatalError("a control character in Authorization") }
        for line in lines { _ = session.received(line, to: answer) }
    }
    for line in lines { _ = FieldParameters.of(line) }
}

/// As a part of a response it can be, with its control characters.
private func canBeField(_ text: String) -> Bool {
    text.utf8.allSatisfy { $0 != 0 && $0 != 0x0A && $0 != 0x0D }
}

private func canBeSent(_ bytes: [UInt8]) -> Bool {
    bytes.allSatisfy { $0 >= 0x20 && $0 != 0x7F || $0 == 0x09 }
}

/// Each line the value of a field with parameters.
func readParameters(_ lines: [String]) {
    for line in lines {
        for (name, value) in FieldParameters.of(line) where name.isEmpty || value.isEmpty {
            fatalError("no parameter: \(name)=\(value)")
        }
        // An empty member in front changes nothing.
        if FieldParameters.of("x;;" + line) != FieldParameters.of("x;" + line) { fatalError("it counts") }
        if let type = MediaTypeField(line) {
            let parts = type.essence.split(separator: "/", omittingEmptySubsequences: false)
            if parts.count != 2 || type.essence.contains(",") { fatalError("no type: \(type.essence)") }
        }
        _ = MultipartReader.boundary(ofMixedReplace: "multipart/x-mixed-replace;" + line)
        _ = URIPort(authority: line)
        let name = SuggestedFilename.from(contentDisposition: "attachment;" + line, url: nil)
        if name.isEmpty || name.hasPrefix(".") || name.hasPrefix("-") || name.contains("/") {
            fatalError("no file name: \(name)")
        }
        if name.utf8.count > SuggestedFilename.maximumLength { fatalError("too long: \(name)") }
    }
}

/// The lines are the fields that a cache looks at.
func readCacheFields(_ lines: [String]) {
    let names = [
        "Cache-Control", "Expires", "Date", "Age", "Last-Modified", "Vary", "ETag", "Connection", "Pragma",
    ]
    var fields = HeaderFields()
    for (index, line) in lines.enumerated() { fields.append(name: names[index % names.count], value: line) }
    let head = ResponseHead(status: 200, fields: fields)
    _ = CacheRules.mayStore(head, to: fields)
    let entry = CacheEntry(head, to: fields, requestedAt: now, receivedAt: now)
    for policy in CachePolicy.allCases {
        _ = CacheRules.decide(policy, request: fields, entry: entry, now: now.addingTimeInterval(100))
        _ = CacheRules.mayServeStale(entry, for: 503, request: fields, policy: policy, now: now)
    }
    _ = entry.freshened(by: head, requestedAt: now, receivedAt: now)
    for line in lines {
        let date = HTTPDate.parse(line, now: now)
        if let date { _ = HTTPDate.format(date) }
        if let exact = HTTPDate.parse(exactly: line, now: now), exact != date { fatalError("two dates") }
        var policies = StrictTransportSecurity()
        policies.received(line, from: "a.example", now: now)
        _ = policies.covers("x.a.example", now: now)
    }
}

/// Each line a Location.
func readLocations(_ lines: [String]) {
    guard let current = URL(string: "http://a.example/b/c?d#e") else { return }
    for line in lines {
        for method in ["GET", "POST"] {
            let decision = Redirect.decide(status: 302, location: line, method: method, currentURL: current)
            guard case .to(let url, _, _, _) = decision else { continue }
            if !["http", "https"].contains(url.scheme?.lowercased()) { fatalError("to \(url)") }
            if url.host?.isEmpty ?? true { fatalError("nowhere: \(url)") }
            let isClean = url.absoluteString.utf8.allSatisfy { $0 > 0x20 && $0 != 0x7F }
            if !isClean { fatalError("a byte that no URL has: \(url)") }
        }
    }
}
