import Foundation
import RondoTestSupport
import Testing

/// The command lines of Tests/CurlLines, by curl and by `rondo fetch`.
@Suite(.timeLimit(.minutes(5))) struct CurlLinesTests {
    @Test func `command lines do what curl does with them, but for those that have a reason`() throws {
        let folder = URL(fileURLWithPath: #filePath).resolvingSymlinksInPath().deletingLastPathComponent()
            .deletingLastPathComponent().appendingPathComponent("CurlLines")
        let output = try TestServerProcess.run([
            "python3", folder.appendingPathComponent("compare").path, "--rondo", try CommandTool.path,
        ])
        #expect(output.contains(" 0 not as they should be"), "\(output)")
    }
}
