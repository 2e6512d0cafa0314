internal import RondoCore
internal import RondoMutex
package import Testing

/// Counts descriptors and live objects before and after a suite: what it has left behind is a failure.
///
/// Suites that run at the same time cannot be told apart, so it counts only where a suite had the process for
/// itself: under `swift test --no-parallel`, as `make test` calls it.
package struct LeavesNothing: SuiteTrait, TestScoping {
    /// Lets go of what is kept on purpose: idle connections in a pool.
    let tidy: @Sendable () -> Void

    package func provideScope(
        for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void
    ) async throws {
        try makeWhatStays()
        tidy()
        let run = Self.runs.withLock { $0.begin() }
        let before = try Leftovers()
        let servers = TestServer.Scope()
        defer { servers.stopAll() }
        do {
            try await TestServer.$scope.withValue(servers) { try await function() }
        } catch {
            _ = Self.runs.withLock { $0.end(run) }
            throw error
        }
        guard Self.runs.withLock({ $0.end(run) }) else { return }
        servers.stopAll()
        tidy()
        do {
            // Threads and servers may be on their way out.
            try waitFor("the end of what \(test.name) has begun") {
                (try? Leftovers()).flatMap { $0.isCovered(by: before) ? () : nil }
            }
        } catch {
            Issue.record("\(test.name) began with \(before), and has left \(try Leftovers())")
        }
    }

    /// Counts the suites that run at the same time.
    private struct Runs {
        var running = 0
        var begun = 0

        mutating func begin() -> Int? {
            running += 1
            begun += 1
            return running == 1 ? begun : nil
        }

        /// - Returns: Whether the suite was alone from beginning to end.
        mutating func end(_ run: Int?) -> Bool {
            running -= 1
            return running == 0 && run == begun
        }
    }

    private static let runs = Mutex(Runs())
}

extension Trait where Self == LeavesNothing {
    /// The suite leaves neither descriptors nor timers, sources, observers, streams or connections behind.
    package static var leavesNothing: Self { leavesNothing {} }

    package static func leavesNothing(after tidy: @escaping @Sendable () -> Void) -> Self {
        LeavesNothing(tidy: tidy)
    }
}

/// Makes what a process makes on first use, and keeps: a count of descriptors begins after that.
package func makeWhatStays() throws {
    try RunLoop.loader.waitUntilAsleep()
    makeDispatchTimers()
    SharedCache.isEmptied
    // The first question for any of Foundation's loops makes the main one as well.
    _ = Foundation.RunLoop.main
}

/// The descriptors and objects that this process holds.
private struct Leftovers: CustomStringConvertible {
    let descriptors: OpenDescriptors
    let objects: [LiveObject.Kind: Int]

    init() throws {
        descriptors = try OpenDescriptors()
        objects = LiveObject.census ?? [:]
    }

    func isCovered(by other: Leftovers) -> Bool {
        descriptors.count <= other.descriptors.count
            && objects.allSatisfy { $0.value <= other.objects[$0.key, default: 0] }
    }

    var description: String {
        let counts = objects.sorted { $0.key.rawValue < $1.key.rawValue }.map { "\($0.key)s: \($0.value)" }
        return "descriptors: \(descriptors), \(counts.joined(separator: ", "))"
    }
}
