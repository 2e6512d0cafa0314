import Foundation
import RondoHTTP
import Testing

@Suite struct DigestTests {
    private func session(
        _ challenge: String, user: String = "Mufasa", password: String = "Circle of Life",
        clientNonce: String = "f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ"
    ) throws -> DigestSession {
        let challenge = try #require(Challenge.challenges(in: [Array(challenge.utf8)]).first)
        let digest = try #require(DigestChallenge(challenge))
        return try DigestSession(digest, user: user, password: password, clientNonce: clientNonce)
    }

    private func parameters(_ answer: DigestSession.Authorization) throws -> Challenge {
        try #require(Challenge.challenges(in: [answer.fieldValue]).first)
    }

    private func text(_ answer: DigestSession.Authorization) -> String {
        String(decoding: answer.fieldValue, as: UTF8.self)
    }

    private static let rfcChallenge = """
        Digest realm="http-auth@example.org", qop="auth, auth-int", algorithm=ALGORITHM, \
        nonce="7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v", \
        opaque="FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS"
        """

    @Test(arguments: [
        ("MD5", "8ca523f5e9506fed4657c9700eebdbec"),
        ("SHA-256", "753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1"),
    ])
    func `RFC 7616 3.9.1 the challenges of the examples get the answers of the examples`(
        _ algorithm: String, _ response: String
    ) throws {
        var session = try session(Self.rfcChallenge.replacingOccurrences(of: "ALGORITHM", with: algorithm))
        let answer = try session.authorize(method: "GET", target: "/dir/index.html")
        let expected = """
            Digest username="Mufasa", realm="http-auth@example.org", \
            nonce="7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v", uri="/dir/index.html", \
            response="\(response)", algorithm=\(algorithm), \
            cnonce="f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ", \
            opaque="FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS", qop=auth, nc=00000001
            """
        #expect(text(answer) == expected)
    }

    /// The RFC printed what the first half of SHA-512 gives; these are of SHA-512/256, by Python's hashlib.
    @Test func `RFC 7616 3.9.2 the example with a hashed user, by the right function`() throws {
        var session = try session(
            """
            Digest realm="api@example.org", qop="auth", algorithm=SHA-512-256, \
            nonce="5TsQWLVdgBdmrQ0XsxbDODV+57QdFR34I9HAbC/RVvkK", \
            opaque="HRPCssKJSGjCrkzDg8OhwpzCiGPChXYjwrI2QmXDnsOS", charset=UTF-8, userhash=true
            """, user: "J\u{E4}s\u{F8}n Doe", password: "Secret, or not?",
            clientNonce: "NTg6RKcb9boFIAS3KrFK9BGeh+niz/sm")
        let answer = try parameters(session.authorize(method: "GET", target: "/doe.json"))
        #expect(answer["username"] == "793263caabb707a56211940d90411ea4a575adeccb7e360aeb624ed06ece9b0b")
        #expect(answer["response"] == "7a4e1192babbba02e91182d2895bfdbf7adafc6e48d4e517ca301974843d840c")
        #expect(answer["userhash"] == "true")
    }

    @Test func `RFC 2617 3.5 the examples of RFC 2617 and RFC 2069 get their answers`() throws {
        let common = #"Digest realm="testrealm@host.com", nonce="dcd98b7102dd2f0e8b11d0f600bfb0c093""#
        var named = try session(
            common + #", qop="auth,auth-int""#, password: "Circle Of Life", clientNonce: "0a4f113b")
        let answer = try parameters(named.authorize(method: "GET", target: "/dir/index.html"))
        #expect(answer["response"] == "6629fae49393a05397450978507c4ef1")
        #expect(answer["algorithm"] == nil)
        // RFC 2069 §2.4, by its erratum 749.
        var unnamed = try session(common, password: "CircleOfLife", clientNonce: "x")
        let old = try parameters(unnamed.authorize(method: "GET", target: "/dir/index.html"))
        #expect(old["response"] == "1949323746fe6a43ef61f9606e7febea")
        #expect(old["cnonce"] == nil && old["nc"] == nil && old["qop"] == nil)
    }

    @Test func `RFC 7616 3.4 the count goes up with each request, and begins anew with each nonce`() throws {
        var session = try session(#"Digest realm="r", nonce="n1", qop=auth"#)
        let first = try session.authorize(method: "GET", target: "/")
        let second = try session.authorize(method: "GET", target: "/")
        #expect(try parameters(first)["nc"] == "00000001")
        #expect(try parameters(second)["nc"] == "00000002")
        #expect(first.fieldValue != second.fieldValue)
        #expect(session.received(Array(#"nextnonce="n2", qop=auth"#.utf8), to: second) == .absent)
        let third = try parameters(session.authorize(method: "GET", target: "/"))
        #expect(third["nc"] == "00000001" && third["nonce"] == "n2")
        for _ in 2..<0x1F { _ = try session.authorize(method: "GET", target: "/") }
        #expect(try parameters(session.authorize(method: "GET", target: "/"))["nc"] == "0000001f")
    }

    @Test func `RFC 7616 3.4.2 the session variants keep their first nonces`() throws {
        var session = try session(
            #"Digest realm="r", nonce="n1", qop=auth, algorithm=MD5-sess"#, clientNonce: "c")
        let answer = try session.authorize(method: "GET", target: "/")
        let hash = { (text: String) in try #require(DigestHash.md5.hexadecimal(of: text)) }
        let secret = try hash(try hash("Mufasa:r:Circle of Life") + ":n1:c")
        let expected = try hash("\(secret):n1:00000001:c:auth:\(hash("GET:/"))")
        #expect(try parameters(answer)["response"] == expected)
        _ = session.received(Array("nextnonce=n2".utf8), to: answer)
        let next = try hash("\(secret):n2:00000001:c:auth:\(hash("GET:/"))")
        #expect(try parameters(session.authorize(method: "GET", target: "/"))["response"] == next)
    }

    @Test func `RFC 7616 3.4.3 auth-int takes the body into account`() throws {
        var session = try session(#"Digest realm="r", nonce="n", qop="auth-int""#, clientNonce: "c")
        #expect(session.needsBodyHash)
        #expect(throws: DigestSession.Failure.bodyHashMissing) {
            try session.authorize(method: "POST", target: "/")
        }
        let hash = { (text: String) in try #require(DigestHash.md5.hexadecimal(of: text)) }
        let body = try #require(DigestHash.md5.hexadecimal(of: Data("a=b".utf8)))
        let answer = try parameters(session.authorize(method: "POST", target: "/", bodyHash: body))
        let (secret, subject) = (try hash("Mufasa:r:Circle of Life"), try hash("POST:/:\(body)"))
        #expect(try answer["response"] == hash("\(secret):n:\(answer["nc"]!):c:auth-int:\(subject)"))
        #expect(answer["qop"] == "auth-int")
    }

    @Test func `RFC 7616 3.5 the server proves that it knows the password`() throws {
        var session = try session(#"Digest realm="r", nonce="n", qop="auth""#, clientNonce: "c")
        let answer = try session.authorize(method: "GET", target: "/a")
        let hash = { (text: String) in try #require(DigestHash.md5.hexadecimal(of: text)) }
        let secret = try hash("Mufasa:r:Circle of Life")
        let proof = try hash("\(secret):n:00000001:c:auth:\(hash(":/a"))")
        let info = #"rspauth="PROOF", cnonce="c", nc=00000001, qop=auth, nextnonce="m""#
        #expect(
            session.received(Array(info.replacingOccurrences(of: "PROOF", with: proof).utf8), to: answer)
                == .confirmed)
        // Also after another nonce has come, and in capitals.
        #expect(session.received(Array("rspauth=\(proof.uppercased())".utf8), to: answer) == .confirmed)
        #expect(session.received(Array("rspauth=\(proof.dropLast())0".utf8), to: answer) != .confirmed)
        #expect(session.received(Array("rspauth=".utf8), to: answer) == .refuted)
        #expect(session.received(Array("".utf8), to: answer) == .absent)
        #expect(session.received(Array("qop=auth-int, rspauth=x".utf8), to: answer) == .bodyHashMissing)
        let body = try hash("body")
        let whole = try hash("\(secret):n:00000001:c:auth:\(hash(":/a:\(body)"))")
        #expect(
            session.received(Array("qop=auth-int, rspauth=\(whole)".utf8), to: answer, bodyHash: body)
                == .confirmed)
    }

    @Test func `RFC 7616 3.4 quoted values are escaped, and hashed without escapes`() throws {
        var session = try session(
            #"Digest realm="a \"b\" \\", nonce="n\"", opaque="o\"", qop=auth"#, user: #"c"\d"#)
        let answer = try session.authorize(method: "GET", target: #"/?q="x""#)
        #expect(text(answer).contains(#"username="c\"\\d""#))
        #expect(text(answer).contains(#"realm="a \"b\" \\""#))
        let read = try parameters(answer)
        let hash = { (text: String) in try #require(DigestHash.md5.hexadecimal(of: text)) }
        let cnonce = try #require(read["cnonce"])
        let secret = try hash(#"c"\d:a "b" \:Circle of Life"#)
        let subject = try hash(#"GET:/?q="x""#)
        #expect(try read["response"] == hash("\(secret):n\":00000001:\(cnonce):auth:\(subject)"))
        #expect(read["opaque"] == "o\"")
    }

    @Test func `RFC 7616 3.4 bytes that are not UTF-8 are hashed and go back as they came`() throws {
        let byte: [UInt8] = [0xE9]
        func value(of name: String) -> [UInt8] { Array(name.utf8) + byte }
        func parameter(_ name: String) -> [UInt8] {
            Array(", \(name)=\"".utf8) + value(of: name) + Array("\"".utf8)
        }
        let names = ["realm", "nonce", "opaque"]
        var field = Array("Digest qop=auth".utf8)
        for name in names { field += parameter(name) }
        let challenge = try #require(Challenge.challenges(in: [field]).first)
        #expect(challenge.realm == "realm\u{E9}")
        let digest = try #require(DigestChallenge(challenge))
        var session = try DigestSession(digest, user: "u", password: "p", clientNonce: "c")
        let answer = try session.authorize(method: "GET", target: "/")
        for name in names { #expect(answer.fieldValue.firstRange(of: parameter(name)) != nil, "\(name)") }
        let hash = { (start: String, middle: [UInt8], end: String) throws -> String in
            let bytes = Array(start.utf8) + middle + Array(end.utf8)
            return try #require(DigestHash.md5.hexadecimal(of: Data(bytes)))
        }
        let secret = try hash("u:", value(of: "realm"), ":p")
        let subject = try hash("GET:/", [], "")
        let response = try hash("\(secret):", value(of: "nonce"), ":00000001:c:auth:\(subject)")
        #expect(try parameters(answer)["response"] == response)
        #expect(session.received(Array("nextnonce=".utf8) + [0xE9, 0x80], to: answer) == .absent)
        let next = try session.authorize(method: "GET", target: "/")
        #expect(next.fieldValue.firstRange(of: Array("nonce=\"".utf8) + [0xE9, 0x80]) != nil)
    }

    @Test func `RFC 7616 3.4 a user name that is not ASCII is encoded`() throws {
        var modern = try session("Digest nonce=n, charset=UTF-8", user: "Ja\u{308}s O'Doe")
        #expect(
            try text(modern.authorize(method: "GET", target: "/"))
                .contains("username*=UTF-8''J%C3%A4s%20O%27Doe"))
        var old = try session("Digest nonce=n", user: "J\u{E4}s")
        #expect(try text(old.authorize(method: "GET", target: "/")).contains("username=\"J\u{E4}s\""))
        for control in ["\0", "\r\n", "\u{7F}"] {
            #expect(throws: DigestSession.Failure.controlCharacter) {
                try session("Digest nonce=n", user: "a\(control)")
            }
        }
    }

    @Test func `client nonces differ`() {
        #expect(Set((0..<100).map { _ in DigestSession.randomNonce() }).count == 100)
    }

    @Test func `hashes are those of FIPS 180 and RFC 1321`() {
        #expect(DigestHash.md5.hexadecimal(of: "abc") == "900150983cd24fb0d6963f7d28e17f72")
        #expect(
            DigestHash.sha256.hexadecimal(of: "abc")
                == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")
        #expect(
            DigestHash.sha512T256.hexadecimal(of: "abc")
                == "53048e2681941ef99b2e29b76b4c7dabe4c2d0c634fc6d46e0e2f13107e7af23")
        #expect(DigestHash.md5.hexadecimal(of: Data()) == "d41d8cd98f00b204e9800998ecf8427e")
        #expect(DigestHash.allCases.filter(\.isAvailable).count == 3)
    }

    /// curl answers the challenge; the same nonces give the same response here.
    @Test(arguments: [
        ("MD5", "qop=auth"), ("MD5-sess", "qop=auth"), ("SHA-256", "qop=auth"), ("SHA-256-sess", "qop=auth"),
        ("", "qop=\"auth,auth-int\""), ("", "stale=false"), ("MD5", "x=y"), ("SHA-256", "x=y"),
    ])
    func `curl answers the same challenge with the same fields`(_ algorithm: String, _ qop: String) throws {
        let named = algorithm.isEmpty ? "" : ", algorithm=\(algorithm)"
        let challenge = #"Digest realm="a b", nonce="n1", opaque="o", \#(qop)\#(named)"#
        let fields = try Self.curl(challenge, user: "user", password: "p a:ss", target: "/x?y=z")
        let theirs = try #require(Challenge.challenges(in: [Array(fields.utf8)]).first)
        var session = try session(
            challenge, user: "user", password: "p a:ss", clientNonce: theirs["cnonce"] ?? "none")
        let ours = try parameters(session.authorize(method: "GET", target: "/x?y=z"))
        #expect(theirs["response"] != nil)
        for name in ["response", "username", "realm", "nonce", "uri", "opaque", "qop", "nc", "algorithm"] {
            #expect(ours[name] == theirs[name], "\(name)")
        }
    }

    /// The Authorization field that curl sends to a server with this challenge.
    private static func curl(
        _ challenge: String, user: String, password: String, target: String
    ) throws -> String {
        let script = """
            import http.server, subprocess, sys, threading
            seen = []
            class Handler(http.server.BaseHTTPRequestHandler):
                protocol_version = "HTTP/1.1"
                def log_message(self, *arguments): pass
                def do_GET(self):
                    given = self.headers.get("Authorization")
                    if given: seen.append(given)
                    self.send_response(200 if given else 401)
                    if not given: self.send_header("WWW-Authenticate", sys.argv[1])
                    self.send_header("Content-Length", "0")
                    self.end_headers()
            server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
            threading.Thread(target=server.serve_forever, daemon=True).start()
            subprocess.run(["curl", "-s", "--noproxy", "*", "--digest", "-u", sys.argv[2],
                f"http://127.0.0.1:{server.server_address[1]}{sys.argv[3]}"], check=True)
            print(seen[-1])
            """
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = ["python3", "-c", script, challenge, "\(user):\(password)", target]
        let pipe = Pipe()
        process.standardOutput = pipe
        try process.run()
        let output = pipe.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        return String(decoding: output, as: UTF8.self).trimmingCharacters(in: .newlines)
    }
}
