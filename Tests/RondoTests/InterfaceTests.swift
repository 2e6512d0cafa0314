import Rondo
import RondoTestSupport
import Testing

/// What is looked at with the modules that were built with these tests; nothing is built.
struct InterfaceTests {
    private static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent()

    /// What the script finds wrong is an error that holds what it says.
    @discardableResult
    private static func check(_ script: String, _ arguments: String...) throws -> String {
        let tests = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
        let modules = URL(fileURLWithPath: tests).deletingLastPathComponent().appendingPathComponent(
            "Modules")
        let path = root.appendingPathComponent("Scripts/\(script)").path
        return try TestServerProcess.run(["python3", path] + arguments + ["--modules", modules.path])
    }

    @Test func `the public interface is the one that Documentation/Interface.txt lists`() throws {
        let output = try Self.check("interface", "--check")
        // Another compiler's extractor writes other lines.
        if output.contains("not compared") { withKnownIssue { Issue.record("\(output)") } }
    }

    @Test func `the snippets of the README and of the documentation compile, and run where they end`() throws
    {
        try Self.check("snippets")
    }

    @Test func `the changelog has a section of this version`() throws {
        let text = try String(
            contentsOf: Self.root.appendingPathComponent("CHANGELOG.md"), encoding: .utf8)
        #expect(text.contains("\n## [\(rondoVersion)]"))
    }
}
