import Rondo
import RondoTestSupport
import Testing

/// Checks that need the built modules; nothing is built.
struct InterfaceTests {
    private static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent()

    /// Throws the script's output if it fails.
    @discardableResult
    private static func check(_ script: String, _ arguments: String...) throws -> String {
        let modules = try BuiltFiles.path("Modules")
        let path = root.appendingPathComponent("Scripts/\(script)").path
        return try TestServerProcess.run(["python3", path] + arguments + ["--modules", modules])
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

    @Test func `a mark of a snippet that is unknown, or has no snippet behind it, is an error`() throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent(
            "rondo-snippets-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer {
            do {
                try FileManager.default.removeItem(at: folder)
            } catch {
                Issue.record("the folder of the page cannot be removed: \(error)")
            }
        }
        let page = """
            <!-- snippet: not compiled: a manifest -->
            ```swift
            let package = Package()
            ```
            <!-- snippet: run -->
            The next one runs.
            ```sh
            swift run
            ```
            <!-- Snipet: runs -->
            <!-- snippet: runs -->
            ```swift
            import Rondo
            ```
            <!-- snippet:
            """
        try page.write(to: folder.appendingPathComponent("Page.md"), atomically: true, encoding: .utf8)
        let failure = #expect(throws: TestServerProcess.Failure.self) {
            try Self.check("snippets", "--pages", folder.path)
        }
        let problems = (failure?.description ?? "").split(separator: "\n").filter { $0.contains(" (see ") }
        #expect(
            problems == [
                "snippets: Page.md:13: it has an unknown mark, “runs” (see Scripts/snippets)",
                "snippets: Page.md:5: no snippet follows the mark “<!-- snippet: run -->” (see Scripts/snippets)",
                "snippets: Page.md:10: no snippet follows the mark “<!-- Snipet: runs -->” (see Scripts/snippets)",
                "snippets: Page.md:15: no snippet follows the mark “<!-- snippet:” (see Scripts/snippets)",
            ])
    }

    @Test func `the changelog has a section of this version`() throws {
        let text = try String(
            contentsOf: Self.root.appendingPathComponent("CHANGELOG.md"), encoding: .utf8)
        #expect(text.contains("\n## [\(rondoVersion)]"))
    }
}
