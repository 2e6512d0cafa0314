import Rondo
import RondoHTTP
import RondoTestSupport
import Testing

@testable import RondoConnections

/// The decisions about which credential is asked for: without a server.
@Suite struct AuthenticationStateTests {
    private static let credential = URLCredential(user: "user", password: "pass", persistence: .none)

    /// A server names a realm in a challenge. Whether something is tried without asking the delegate.
    private static func isAnsweredSilently(_ authentication: inout Authentication, realm: Int) -> Bool {
        let step = authentication.challenged(
            by: [Challenge(scheme: "Basic", parameters: [.init(name: "realm", value: "\(realm)")])],
            makeSpace: { realm, method in
                URLProtectionSpace(
                    host: "a.example", port: 80, protocol: "http", realm: realm, authenticationMethod: method)
            },
            candidates: { _ in [(credential, .url)] })
        guard case .ask(let question) = step, let silent = question.silent else { return false }
        return authentication.use(silent.credential, from: silent.source, for: question)
    }

    @Test func `UC-49 a server that names another realm each time is not answered without end`() {
        var authentication = Authentication()
        var answers = 0
        while answers < 100, Self.isAnsweredSilently(&authentication, realm: answers) { answers += 1 }
        #expect(answers == Authentication.maximumSilentAttempts)
    }

    @Test func `UC-49 a credential for one proxy is not sent to another one`() throws {
        let authenticator = Authenticator(nil) { Issue.record("\($0)") }
        authenticator.beginRequest(for: url("http://a.example/"))
        func sent() -> String? {
            authenticator.proxyAuthorization(method: "CONNECT", target: "a.example:443") { _ in nil }
                .map { String(decoding: $0, as: UTF8.self) }
        }
        let first = StreamProxy(.httpConnect, host: "first.example", port: 1)
        authenticator.chooseProxy(first)
        let head = ResponseHead(
            status: 407, fields: HeaderFields([("Proxy-Authenticate", "Basic realm=\"r\"")]))
        guard case .ask(let inquiry) = authenticator.challenged(by: head),
            case .useCredential = authenticator.answer(inquiry, by: .use(Self.credential))
        else {
            Issue.record("the delegate was not asked")
            return
        }
        let own = try #require(sent())
        // A request without a proxy between two to the same one changes nothing.
        authenticator.chooseProxy(nil)
        authenticator.chooseProxy(first)
        #expect(sent() == own)
        authenticator.chooseProxy(StreamProxy(.httpConnect, host: "second.example", port: 1))
        #expect(sent() == nil)
        authenticator.chooseProxy(
            StreamProxy(.httpConnect, host: "third.example", port: 1, userName: "me", password: "pass"))
        #expect(sent() == "Basic " + Data("me:pass".utf8).base64EncodedString())
    }

    /// RFC 9110 §11.7.3.
    @Test(arguments: [true, false], [200, 503])
    func `UC-48 only a response of the proxy itself says what the proxy knows`(
        isFromProxy: Bool, status: Int
    ) throws {
        let authenticator = Authenticator(nil) { Issue.record("\($0)") }
        authenticator.beginRequest(for: url("http://a.example/"))
        authenticator.chooseProxy(StreamProxy(.httpConnect, host: "p.example", port: 1))
        let challenge = ResponseHead(
            status: 407,
            fields: HeaderFields([
                ("Proxy-Authenticate", "Digest realm=\"r\", nonce=\"n\", qop=\"auth\", algorithm=SHA-256")
            ]))
        guard case .ask(let inquiry) = authenticator.challenged(by: challenge),
            case .useCredential = authenticator.answer(inquiry, by: .use(Self.credential))
        else {
            Issue.record("the delegate was not asked")
            return
        }
        _ = try #require(
            authenticator.proxyAuthorization(method: "GET", target: "http://a.example/") { _ in nil })
        let wrong = String(repeating: "0", count: 64)
        let head = ResponseHead(
            status: status,
            fields: HeaderFields([("Proxy-Authentication-Info", "qop=auth, rspauth=\"\(wrong)\"")]))
        let failure = authenticator.received(head, isFromProxy: isFromProxy)
        #expect((failure != nil) == isFromProxy)
    }

    @Test(arguments: [(200, true), (302, true), (404, true), (429, false), (500, false), (503, false)])
    func `UC-51 a response of a server that need not have looked at the credential does not store it`(
        status: Int, isStored: Bool
    ) throws {
        let stored = StoredCredentials(URLCredentialStorage())
        let authenticator = Authenticator(stored) { Issue.record("\($0)") }
        authenticator.beginRequest(for: url("http://a.example/"))
        let challenge = ResponseHead(
            status: 401, fields: HeaderFields([("WWW-Authenticate", "Basic realm=\"r\"")]))
        let inquiry = try #require(Self.answered(challenge, by: authenticator))
        for (status, isStored) in [(status, isStored), (200, true)] {
            let head = ResponseHead(status: status, fields: HeaderFields())
            let failure = authenticator.received(head, isFromProxy: false)
            #expect(failure == nil)
            #expect((stored.defaultCredential(for: inquiry.space) != nil) == isStored)
        }
    }

    @Test(arguments: [true, false], [401, 429, 503])
    func `UC-51 a server's response through a tunnel does not leave open what the proxy has accepted`(
        isTunnel: Bool, status: Int
    ) throws {
        let stored = StoredCredentials(URLCredentialStorage())
        let authenticator = Authenticator(stored) { Issue.record("\($0)") }
        authenticator.beginRequest(for: url(isTunnel ? "https://a.example/" : "http://a.example/"))
        authenticator.chooseProxy(StreamProxy(.httpConnect, host: "p.example", port: 1))
        let challenge = ResponseHead(
            status: 407, fields: HeaderFields([("Proxy-Authenticate", "Basic realm=\"r\"")]))
        let inquiry = try #require(Self.answered(challenge, by: authenticator))
        let head = ResponseHead(status: status, fields: HeaderFields())
        let failure = authenticator.received(head, isFromProxy: !isTunnel)
        #expect(failure == nil)
        #expect((stored.defaultCredential(for: inquiry.space) != nil) == isTunnel)
        let next = ResponseHead(status: 200, fields: HeaderFields())
        let later = authenticator.received(next, isFromProxy: !isTunnel)
        #expect(later == nil)
        #expect(stored.defaultCredential(for: inquiry.space) != nil)
    }

    /// Answers a challenge by a credential for the session.
    ///
    /// - Returns: Nil if the delegate was not asked, or the credential is not used.
    private static func answered(
        _ challenge: ResponseHead, by authenticator: Authenticator
    ) -> Authenticator.Inquiry? {
        let credential = URLCredential(user: "user", password: "pass", persistence: .forSession)
        guard case .ask(let inquiry) = authenticator.challenged(by: challenge),
            case .useCredential = authenticator.answer(inquiry, by: .use(credential))
        else { return nil }
        return inquiry
    }

    /// The decision about a Basic challenge in `realm`, for which `candidates` are known.
    private static func question(
        _ authentication: inout Authentication, realm: String,
        _ candidates: [(URLCredential, Authentication.CredentialSource)] = [(Self.credential, .storage)]
    ) -> Authentication.Question? {
        let step = authentication.challenged(
            by: [Challenge(scheme: "Basic", parameters: [.init(name: "realm", value: "\(realm)")])],
            makeSpace: { realm, method in
                URLProtectionSpace(
                    host: "a.example", port: 80, protocol: "http", realm: realm, authenticationMethod: method)
            },
            candidates: { _ in candidates })
        guard case .ask(let question) = step else { return nil }
        return question
    }

    /// RFC 9110 §11.5.
    @Test func `UC-50 a credential that was accepted in one realm has not failed by a challenge of another`()
        throws
    {
        var authentication = Authentication()
        for realm in ["a", "b", "a", "b"] {
            let question = try #require(Self.question(&authentication, realm: realm))
            #expect(question.failures == 0)
            let silent = try #require(question.silent)
            let isUsed = authentication.use(silent.credential, from: silent.source, for: question)
            #expect(isUsed)
            guard case .accepted = authentication.accepted(info: nil, laterHash: { _ in }) else {
                Issue.record("realm \(realm) was not accepted")
                return
            }
        }
        // In the realm that it was accepted in last it fails.
        let question = try #require(Self.question(&authentication, realm: "b"))
        #expect(question.failures == 1 && question.silent == nil)
    }

    @Test func `UC-50 a credential that was never accepted fails by a challenge of any realm`() throws {
        var authentication = Authentication()
        for realm in ["a", "b"] {
            let question = try #require(Self.question(&authentication, realm: realm))
            let silent = try #require(question.silent)
            let isUsed = authentication.use(silent.credential, from: silent.source, for: question)
            #expect(isUsed)
        }
        let question = try #require(Self.question(&authentication, realm: "a"))
        #expect(question.failures == 1 && question.silent == nil)
    }

    @Test func `UC-49 an accepted credential makes the count of silent attempts begin anew`() {
        var authentication = Authentication()
        for realm in 0..<3 * Authentication.maximumSilentAttempts {
            #expect(Self.isAnsweredSilently(&authentication, realm: realm))
            guard case .accepted = authentication.accepted(info: nil, laterHash: { _ in }) else {
                Issue.record("realm \(realm) was not accepted")
                return
            }
        }
    }
}
