public import RondoCore
public import RondoSystem

/// A program that plays scenarios which need the main run loop: no test has the main thread, which Swift Testing and `await`
/// keep for themselves.
///
/// The program is an executable of the package. Its first argument names the scenario; it exits with 0 if that went well:
///
/// ```swift
/// let helper = try MainLoopHelper("MyMainLoopProbe")
/// let run = try await helper.run("timers")
/// #expect(run.status.isSuccess, "\(run.output)")
/// ```
///
/// Rule XT-11.
public struct MainLoopHelper: Sendable {
    /// The path of the program.
    public let program: String

    /// - Parameter name: A program in the folder of the one that runs the tests, where the package manager puts both; or a
    ///   path.
    /// - Throws: `CocoaError(.fileNoSuchFile)` where there is none: the test target has to depend on its target.
    public init(_ name: String) throws {
        if name.contains("/") {
            program = name
        } else {
            let tests = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
            program =
                URL(fileURLWithPath: tests).deletingLastPathComponent().appendingPathComponent(name).path
        }
        guard FileManager.default.isExecutableFile(atPath: program) else {
            throw CocoaError(.fileNoSuchFile, userInfo: [NSFilePathErrorKey: program])
        }
    }

    /// How a scenario has ended.
    public struct Run: Sendable {
        public let status: Child.Status
        /// What the program has written to its standard output; its standard error is that of the tests.
        public let output: String
    }

    /// Runs a scenario to its end.
    ///
    /// - Parameter timeLimit: Seconds after which the program is stopped.
    /// - Throws: `ChildError` where it could not be started, was stopped, or has written more than a mebibyte;
    ///   `CancellationError`.
    public func run(_ scenario: String, _ arguments: [String] = [], timeLimit: TimeInterval = 60) async throws
        -> Run
    {
        let (status, output) = try await Child.run(
            program, [scenario] + arguments, timeLimit: timeLimit, output: .string(limit: 1 << 20))
        return Run(status: status, output: output)
    }
}
