import Foundation
import RondoTestSupport

/// The command `rondo`, as it was built beside the tests.
enum Tool {
    static var path: String {
        get throws {
            let tests = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
            let folder = URL(fileURLWithPath: tests).deletingLastPathComponent().path
            // By its product's name, or where only targets are built by the target's.
            let names = ["rondo", "RondoCommand"].map { "\(folder)/\($0)" }
            return names.first { FileManager.default.isExecutableFile(atPath: $0) } ?? names[0]
        }
    }

    /// Runs it to its end. Throws if it fails; returns what it printed.
    ///
    /// The address sanitizer, where it watches, would keep what was freed, and some experiments measure memory.
    static func run(_ arguments: [String]) throws -> String {
        try TestServerProcess.run(["env", "ASAN_OPTIONS=quarantine_size_mb=0", path] + arguments)
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
