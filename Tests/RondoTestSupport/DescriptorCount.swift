internal import RondoCore

/// How many descriptors this process has open.
///
/// Tests run in parallel in one process: a test that counts runs its body in an exit test, alone.
package func openDescriptorCount() throws -> Int {
    // The listing has one open itself.
    try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count - 1
}

/// Has Dispatch make the descriptors by which it serves timers, as it does on first use and in its own time:
/// whoever counts descriptors counts them from the start.
package func makeDispatchTimers() { _ = dispatchTimers }

private let dispatchTimers: Void = {
    let served = DispatchSemaphore(value: 0)
    DispatchQueue.global().asyncAfter(deadline: .now() + .milliseconds(1)) { served.signal() }
    served.wait()
}()
