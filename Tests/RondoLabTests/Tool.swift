import Foundation
import RondoTestSupport

/// The command `rondo`, as it was built beside the tests.
enum Tool {
    /// Runs it to its end. Throws if it fails; returns what it printed.
    ///
    /// The address sanitizer, where it watches, would keep what was freed, and some experiments measure memory.
    static func run(_ arguments: [String]) throws -> String {
        try TestServerProcess.run(
            ["env", "ASAN_OPTIONS=quarantine_size_mb=0", BuiltFiles.command] + arguments)
    }

    /// Runs a script of Python, whose first argument is the command's path.
    ///
    /// - Returns: The script's output.
    static func python(_ script: String, _ arguments: [String] = []) throws -> String {
        try TestServerProcess.run(["python3", "-c", script, BuiltFiles.command] + arguments)
    }
}

/// Calls `body` with the path of a file that does not exist yet, and removes the file afterwards.
func withFile(_ body: (String) throws -> Void) rethrows {
    let file = NSTemporaryDirectory() + "/rondo-lab-test-\(UUID().uuidString)"
    defer { unlink(file) }
    try body(file)
}

/// The files of the repository, found from this one.
enum Repository {
    static func file(_ path: String) -> URL {
        URL(fileURLWithPath: #filePath).resolvingSymlinksInPath().deletingLastPathComponent()
            .deletingLastPathComponent().deletingLastPathComponent().appendingPathComponent(path)
    }

    static func swiftFiles(below path: String) throws -> [URL] {
        let folder = file(path)
        let names = try FileManager.default.subpathsOfDirectory(atPath: folder.path)
        return names.filter { $0.hasSuffix(".swift") }.sorted().map { folder.appendingPathComponent($0) }
    }
}
