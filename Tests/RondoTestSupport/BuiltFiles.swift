internal import RondoCore

/// The files that the build has made beside the program that runs the tests.
package enum BuiltFiles {
    /// The path of a program, or of another such file.
    package static func path(_ name: String) throws -> String {
        let tests = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
        return URL(fileURLWithPath: tests).deletingLastPathComponent().path + "/" + name
    }

    /// The command `rondo`: by its product's name, or by its target's where only targets were built.
    package static var command: String {
        get throws {
            let paths = try [path("rondo"), path("RondoCommand")]
            return paths.first { FileManager.default.isExecutableFile(atPath: $0) } ?? paths[0]
        }
    }

    /// Plays a scenario of the program `probe`, which exits with 1 where it finds the scenario's rule broken: that is an
    /// error here.
    ///
    /// - Parameter environment: Variables, as `env` takes them.
    package static func play(
        _ scenario: String, _ arguments: [String] = [], of probe: String, environment: [String] = []
    ) throws {
        let output = try TestServerProcess.run(
            ["env"] + environment + [path(probe), scenario] + arguments)
        guard output.contains("\(scenario) holds") else {
            throw TestServerProcess.Failure(description: "\(probe) \(scenario): \(output)")
        }
    }
}
