import RondoHTTP
import Testing

@Suite struct ChallengeTests {
    private func challenge(_ scheme: String, _ pairs: (String, String)..., token: String? = nil) -> Challenge
    {
        Challenge(
            scheme: scheme, token: token, parameters: pairs.map { Challenge.Parameter(name: $0, value: $1) })
    }

    private func read(_ values: String...) -> [Challenge] { read(values) }

    private func read(_ values: [String]) -> [Challenge] {
        Challenge.challenges(in: values.map { Array($0.utf8) })
    }

    @Test func `RFC 9110 11.6.1 several challenges in one field`() {
        // The RFC's own example.
        let value =
            #"Basic realm="simple", Newauth realm="apps", type=1, title="Login to \"apps\"""#
        let expected = [
            challenge("Basic", ("realm", "simple")),
            challenge("Newauth", ("realm", "apps"), ("type", "1"), ("title", #"Login to "apps""#)),
        ]
        #expect(read(value) == expected)
    }

    @Test func `RFC 9110 11.6.1 empty members lose nothing`() {
        let digest = challenge("Digest", ("realm", "a"), ("nonce", "b"))
        #expect(read(#", Digest , realm="a",, nonce="b" ,, NTLM,"#) == [digest, challenge("NTLM")])
        #expect(
            read(#"Digest realm=, nonce="b", opaque=, qop=auth"#)
                == [challenge("Digest", ("nonce", "b"), ("opaque", ""), ("qop", "auth"), token: "realm=")])
    }

    @Test func `RFC 9110 5.5 an answer repeats no control character`() {
        let asked = read("Digest realm=\"a\", nonce=\"b\u{1}\", Basic realm=\"c\u{1B}\"")
        #expect(PasswordChallenge.strongestFirst(asked) == [.basic(realm: "c\u{1B}")])
    }

    @Test func `RFC 9110 11.6.1 challenges in several fields`() {
        #expect(
            read(#"Digest realm="a", nonce="b""#, "Basic realm=c")
                == [challenge("Digest", ("realm", "a"), ("nonce", "b")), challenge("Basic", ("realm", "c"))])
    }

    @Test func `RFC 9110 11.2 a challenge may have a token in place of parameters`() {
        #expect(read("Negotiate") == [challenge("Negotiate")])
        #expect(
            read("Negotiate YWJj==, NTLM") == [challenge("Negotiate", token: "YWJj=="), challenge("NTLM")])
        #expect(read("Negotiate a/b+c~d, Basic realm=x").map(\.token) == ["a/b+c~d", nil])
        #expect(read("A b=, C d=e") == [challenge("A", token: "b="), challenge("C", ("d", "e"))])
    }

    @Test func `a challenge without parameters is read before and after others`() {
        #expect(
            read(#"Negotiate, Digest qop="auth,auth-int", nonce=x, NTLM"#)
                == [
                    challenge("Negotiate"), challenge("Digest", ("qop", "auth,auth-int"), ("nonce", "x")),
                    challenge("NTLM"),
                ])
    }

    @Test func `whitespace and empty elements change nothing`() {
        let expected = [challenge("Basic", ("realm", "a"), ("charset", "UTF-8")), challenge("B")]
        #expect(read(",, \tBasic\t realm = \"a\" ,,charset= UTF-8 , , B ,") == expected)
    }

    @Test(arguments: [
        (#"Basic realm="a"#, "a"), (#"Basic realm="a\"#, #"a\"#), (#"Basic realm="#, ""),
        ("Basic realm=My Site, x=y", "My Site"), (#"Basic realm="a"b"#, "a"), ("Basic realm=\"é\"", "é"),
        (#"Basic realm="a, Digest nonce=b""#, "a, Digest nonce=b"), (#"basic REALM="x", realm="y""#, "x"),
    ])
    func `malformed challenges of servers are read as browsers read them`(_ value: String, _ realm: String) {
        #expect(read(value).first?.realm == realm || read(value).first?.token == "realm=")
    }

    @Test(arguments: ["", ",", "=", "=x", "realm=x", "\"Basic\"", "Basic\"x\"", "(", "@ Basic"])
    func `a text that is not a challenge is skipped`(_ value: String) {
        #expect(read(value).isEmpty)
        #expect(read(value, "Basic realm=x") == [challenge("Basic", ("realm", "x"))])
        #expect(read(value + ", Basic realm=x").last == challenge("Basic", ("realm", "x")))
    }

    @Test func `no more challenges than the limit are read`() {
        let many = (0..<1000).map { "S\($0) a=b" }.joined(separator: ", ")
        #expect(read(many).count == Challenge.maximumCount)
        #expect(read(many, many).count == Challenge.maximumCount)
    }

    // MARK: The choice

    @Test func `the strongest challenge comes first, the others in the server's order`() {
        let values = [
            "Bearer realm=z", "Basic realm=b1", "Digest realm=m, nonce=n", "Negotiate",
            "Digest realm=s, nonce=n, algorithm=SHA-256, Basic realm=b2",
            "Digest realm=t, nonce=n, algorithm=SHA-512-256-sess",
            "Digest realm=s2, nonce=n, algorithm=sha-256-SESS",
        ]
        let order = PasswordChallenge.strongestFirst(read(values)).map(\.realm)
        #expect(order == ["t", "s", "s2", "m", "b1", "b2"])
    }

    @Test func `RFC 7616 3.7 the same realm in several algorithms is one choice each`() {
        let values = [
            "Digest realm=a, nonce=1, algorithm=MD5", "Digest realm=a, nonce=2, algorithm=SHA-256",
            "Digest realm=a, nonce=3, algorithm=SHA-256", "Basic realm=a, Basic realm=a",
        ]
        let order = PasswordChallenge.strongestFirst(read(values))
        let nonces = order.map { choice in
            if case .digest(let challenge) = choice { challenge.nonce } else { Array("basic".utf8) }
        }
        #expect(nonces == ["2", "1", "basic"].map { Array($0.utf8) })
    }

    @Test(arguments: [
        "Digest realm=a", "Digest realm=a, nonce=n, algorithm=SHA-1",
        "Digest realm=a, nonce=n, qop=\"auth-conf\"", "Bearer realm=a", "NTLM", "Negotiate abc=",
        "BasicX realm=a",
    ])
    func `RFC 7616 3.3 a challenge that cannot be understood is ignored`(_ value: String) {
        #expect(PasswordChallenge.strongestFirst(read(value)).isEmpty)
    }

    @Test(arguments: [
        ("qop=\"auth\"", DigestChallenge.Protection.auth), ("qop=\"auth-int,auth\"", .auth),
        ("qop=AUTH", .auth), ("qop=\"auth-int\"", .authInt), ("qop=\"x, auth-int\"", .authInt),
        ("qop=\"\"", .unnamed), ("a=b", .unnamed),
    ])
    func `RFC 7616 3.3 the qop parameter decides the protection`(
        _ parameter: String, _ expected: DigestChallenge.Protection
    ) throws {
        let challenge = try #require(read("Digest nonce=n, \(parameter)").first)
        #expect(DigestChallenge(challenge)?.protection == expected)
    }

    @Test func `RFC 7616 3.3 the other parameters of a Digest challenge are read`() throws {
        let value =
            #"Digest realm="a \"b\"", nonce="n", opaque="o\\p", stale=TRUE, userhash=true, charset=UTF-8, "#
            + #"domain="/x http://b.example/y", algorithm=SHA-256-sess"#
        let challenge = try #require(read(value).first)
        let digest = try #require(DigestChallenge(challenge))
        #expect(digest.realm == #"a "b""# && digest.opaque == Array(#"o\p"#.utf8))
        #expect(digest.isStale && digest.hashesUser)
        #expect(digest.isUTF8 && digest.domain == ["/x", "http://b.example/y"])
        #expect(digest.algorithm.isSession && digest.algorithm.hash == .sha256)
    }
}
