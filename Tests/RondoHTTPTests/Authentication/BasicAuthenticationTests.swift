import RondoHTTP
import Testing

@Suite struct BasicAuthenticationTests {
    @Test(arguments: [
        // The examples of RFC 7617 §2 and §2.1.
        ("Aladdin", "open sesame", "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="),
        ("test", "123£", "Basic dGVzdDoxMjPCow=="),
        ("", "", "Basic Og=="), ("a", "b:c", "Basic YTpiOmM="),
        // In normal form C, however it was typed.
        ("e\u{301}", "", "Basic w6k6"),
    ])
    func `RFC 7617 2 user and password are joined and encoded`(
        _ user: String, _ password: String, _ expected: String
    ) throws {
        #expect(try BasicAuthentication(user: user, password: password).fieldValue == expected)
    }

    @Test func `RFC 7617 2 a user name or password that a server would misread is refused`() {
        #expect(throws: BasicAuthentication.Failure.colonInUser) {
            try BasicAuthentication(user: "a:b", password: "")
        }
        for control in ["\0", "\n", "\r", "\u{7F}"] {
            #expect(throws: BasicAuthentication.Failure.controlCharacter) {
                try BasicAuthentication(user: "a\(control)", password: "")
            }
            #expect(throws: BasicAuthentication.Failure.controlCharacter) {
                try BasicAuthentication(user: "a", password: control)
            }
        }
    }
}
