import Rondo
import RondoMutex

/// Some system calls fail: a child either cannot be started, with an error, or its end is reported once. At
/// the end there is no child, no zombie and no further descriptor.
///
/// - Parameter refuses: Whether the failing calls include those without which no child can be started.
func childrenWhileCallsFail(refuses: Bool) {
    // The objects that are made with the first child remain.
    expect(runOne(), "a child can be started before")
    let before = openDescriptors()
    Faults.arm()
    let counts = Mutex((started: 0, refused: 0, ends: 0, completions: 0))
    for index in 0..<150 {
        var configuration = Child.Configuration("/bin/sh", ["-c", "cat; exit \(index % 5)"])
        configuration.standardInput = index % 2 == 0 ? .stream : .none
        configuration.standardOutput = .collected(limit: 1_000)
        configuration.outputGrace = 0.5
        do {
            let child = try Child.spawn(configuration)
            counts.withLock { $0.started += 1 }
            child.onEnd = { _, status in
                counts.withLock { $0.ends += 1 }
                expect(status == .exited(Int32(index % 5)), "child \(index): \(status)")
            }
            child.onCompletion = { _, _ in counts.withLock { $0.completions += 1 } }
            child.schedule(in: .current, forMode: .default)
            child.input?.open()
            child.input?.close()
        } catch {
            counts.withLock { $0.refused += 1 }
        }
        // A child of Foundation's `Process` interface beside it.
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/bin/true")
        if (try? process.run()) != nil { process.waitUntilExit() }
    }
    let cameInTime = run(upTo: 30) {
        counts.withLock { $0.ends == $0.started && $0.completions == $0.started }
    }
    Faults.disarm()
    expect(cameInTime, "each child that was started is told of: \(counts.withLock { "\($0)" })")
    expect(
        counts.withLock { $0.started > 50 && ($0.refused > 0) == refuses },
        "some are started: \(counts.withLock { "\($0)" })")
    expect(runOne(), "a child can be started afterwards")
    run(upTo: 10) { openDescriptors().count <= before.count }
    expect(openDescriptors().count <= before.count, "descriptors: \(before), then \(openDescriptors())")
    expect(waitpid(-1, nil, WNOHANG) == -1 && errno == ECHILD, "no child is left")
}

private func runOne() -> Bool {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/bin/true")
    guard (try? process.run()) != nil else { return false }
    process.waitUntilExit()
    return process.terminationStatus == 0
}

/// The kernel's names of open descriptors, without those of run loops, which a loop opens again after a
/// failed call.
private func openDescriptors() -> [String] {
    (0..<1_024).compactMap {
        try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\($0)")
    }.filter { name in
        !["[eventfd]", "[eventpoll]", "[timerfd]"].contains { name.hasSuffix($0) }
    }.sorted()
}
