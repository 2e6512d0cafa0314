public import RondoCore
public import RondoSystem

/// An executable that runs scenarios on the main run loop, which tests cannot do: Swift Testing and `await`
/// occupy the main thread.
///
/// The executable belongs to the package under test. Its first argument names the scenario; its exit status
/// is 0 if the scenario succeeded:
///
/// ```swift
/// let helper = try MainLoopHelper("MyMainLoopProbe")
/// let run = try await helper.run("timers")
/// #expect(run.status.isSuccess, "\(run.output)")
/// ```
///
/// Rule XT-11.
public struct MainLoopHelper: Sendable {
    /// The path of the executable.
    public let program: String

    /// Finds the executable.
    ///
    /// - Parameter name: The name of an executable in the folder of the test executable, where the package
    ///   manager puts both; or a path.
    /// - Throws: `CocoaError(.fileNoSuchFile)` if there is no such file. The test target must depend on the
    ///   executable's target.
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

    /// The result of a scenario.
    public struct Run: Sendable {
        /// The exit status; success means that the scenario succeeded.
        public let status: Child.Status
        /// The standard output of the executable. Its standard error is that of the tests.
        public let output: String
    }

    /// Runs a scenario to its end.
    ///
    /// - Parameters:
    ///   - scenario: The first argument of the executable.
    ///   - arguments: Further arguments.
    ///   - timeLimit: Seconds after which the executable is stopped.
    /// - Throws: `ChildError` if the executable could not be started, was stopped, or wrote more than 1
    ///   MiB; `CancellationError` if the Swift task was cancelled.
    public func run(_ scenario: String, _ arguments: [String] = [], timeLimit: TimeInterval = 60) async throws
        -> Run
    {
        let (status, output) = try await Child.run(
            program, [scenario] + arguments, timeLimit: timeLimit, output: .string(limit: 1 << 20))
        return Run(status: status, output: output)
    }
}
