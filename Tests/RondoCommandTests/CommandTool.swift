import Foundation

/// The tool that the tests of this target run as a process.
enum CommandTool {
    /// Beside the tests' own program; under its product's name, or its target's.
    static var path: String {
        get throws {
            let tests = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
            let folder = URL(fileURLWithPath: tests).deletingLastPathComponent().path
            let names = ["rondo", "RondoCommand"].map { "\(folder)/\($0)" }
            return names.first { FileManager.default.isExecutableFile(atPath: $0) } ?? names[0]
        }
    }
}
