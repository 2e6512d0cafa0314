import Rondo
import Testing

@testable import RondoConnections

/// The decisions about which credential is asked for: without a server.
@Suite struct AuthenticationStateTests {
    private static let credential = URLCredential(user: "user", password: "pass", persistence: .none)

    /// A server names a realm in a challenge. Whether something is tried without asking the delegate.
    private static func isAnsweredSilently(_ authentication: inout Authentication, realm: Int) -> Bool {
        let step = authentication.challenged(
            by: ["Basic realm=\"\(realm)\""],
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

    @Test func `UC-49 once something was accepted, as many are tried again`() {
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
