import Foundation
import RondoTestSupport
import Testing

@testable import RondoCommand

/// The command lines of Tests/CurlLines, by curl and by `rondo fetch`.
@Suite(.timeLimit(.minutes(5))) struct CurlLinesTests {
    @Test func `command lines do what curl does with them, but for those that have a reason`() throws {
        let folder = URL(fileURLWithPath: #filePath).resolvingSymlinksInPath().deletingLastPathComponent()
            .deletingLastPathComponent().appendingPathComponent("CurlLines")
        let output = try TestServerProcess.run([
            "python3", folder.appendingPathComponent("compare").path, "--rondo", try BuiltFiles.command,
        ])
        #expect(output.contains(" 0 not as they should be"), "\(output)")
    }

    static var isComparedCurl: Bool {
        get throws { try TestServerProcess.run(["curl", "--version"]).hasPrefix("curl 7.88") }
    }

    /// Later versions of curl list options that fetch does not know.
    @Test(.enabled(if: try CurlLinesTests.isComparedCurl, "the options are those of curl 7.88"))
    func `every option that curl lists is there, or says what to use`() throws {
        let list = try TestServerProcess.run(["curl", "--help", "all"])
        // A letter, the name, and whether a value follows.
        let option = /\s*(?:-(.), )?\s*--(?:no-)?([a-z0-9.\-]+)\s*([<\[])?/
        for line in list.split(separator: "\n") {
            // Help of curl's has chapters.
            guard let match = line.prefixMatch(of: option), match.2 != "help" else { continue }
            let names = ["\(match.2)", "no-\(match.2)"]
            let known = FetchOption.all.first { names.contains($0.name) }
            #expect(known != nil, "\(line)")
            #expect(known?.takesValue == (match.3 != nil), "\(line)")
            if let letter = match.1?.first { #expect(known?.short == letter, "\(line)") }
        }
    }
}
