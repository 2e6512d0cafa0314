internal import RondoCore

/// A program `NAME stress [COUNT [THREADS [SEED]]]`, which prints "stress holds" and what it saw, or "stress fails" and why, with
/// status 1.
package struct StressProgram {
    package let count: Int
    package let threads: Int
    package let seed: UInt64

    private static let defaultThreads = 4, defaultSeed = 1
    private static let mostFailures = 20

    /// Reads the command line; another one ends the program.
    ///
    /// - Parameters:
    ///   - counted: What COUNT counts, in the usage.
    ///   - defaultCount: Without COUNT, or for 0.
    package init(_ name: String, counted: String, defaultCount: Int) {
        let arguments = CommandLine.arguments.dropFirst()
        guard arguments.first == "stress" else {
            print("usage: \(name) stress [\(counted) [THREADS [SEED]]]")
            exit(2)
        }
        let numbers = arguments.dropFirst().map { Int($0) ?? 0 } + [0, 0, 0]
        count = numbers[0] > 0 ? numbers[0] : defaultCount
        threads = numbers[1] > 0 ? numbers[1] : Self.defaultThreads
        seed = UInt64(numbers[2] > 0 ? numbers[2] : Self.defaultSeed)
    }

    /// Tells of the outcome, and ends the program.
    package func end(_ failures: [String], _ summary: String) -> Never {
        for failure in failures.prefix(Self.mostFailures) { print("stress fails: \(failure)") }
        print(failures.isEmpty ? "stress holds: \(summary)" : "stress fails: \(summary)")
        exit(failures.isEmpty ? 0 : 1)
    }
}
