import RondoTestSupport
import Testing

@testable import RondoCommand

/// The article “Limits”, compared with the constants of `rondo serve`.
@Suite struct ServerLimitsPageTests {
    @Test func `the article about limits has the numbers of the command's server`() throws {
        let differences = try LimitsPage.differences(
            in: .server,
            from: [
                "ServerLimits.connections": ServerLimits.connections,
                "ServerLimits.yieldTime": Int(ServerLimits.yieldTime),
                "ServerLimits.unsentBytes": Int(ServerLimits.unsentBytes),
                "ServerLimits.headSize": ServerLimits.headSize,
                "ServerLimits.headTime": Int(ServerLimits.headTime),
                "ServerLimits.idleTime": Int(ServerLimits.idleTime),
                "ServerLimits.stallTime": Int(ServerLimits.stallTime),
                "ServerLimits.lingerTime": Int(ServerLimits.lingerTime),
                "ServerLimits.lingerSize": ServerLimits.lingerSize,
                "ServerLimits.ranges": ServerLimits.ranges,
                "ServerLimits.listedEntries": ServerLimits.listedEntries,
            ])
        #expect(differences == [])
    }
}
