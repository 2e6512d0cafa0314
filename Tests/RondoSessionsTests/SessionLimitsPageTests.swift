import RondoHTTP
import RondoTestSupport
import Testing

@testable import RondoSessions

/// The article “Limits”, compared with the constants of sessions.
@Suite struct SessionLimitsPageTests {
    @Test func `the article about limits has the numbers of WebSockets`() throws {
        let differences = try LimitsPage.differences(
            in: .webSockets,
            from: [
                "WebSocketLimits.maximumMessageSize": WebSocketLimits().maximumMessageSize,
                "WebSocketUpgrade.closingTime": Int(WebSocketUpgrade.closingTime),
            ])
        #expect(differences == [])
    }
}
