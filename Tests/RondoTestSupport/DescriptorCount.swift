internal import RondoCore
internal import Testing

/// The descriptors that this process has open.
///
/// Tests run in parallel in one process: a test that counts runs its body in an exit test, alone.
package struct OpenDescriptors: CustomStringConvertible {
    /// The name of each, as the kernel gives it: "socket:[4711]", "anon_inode:[eventpoll]", a path.
    private let names: [String]

    /// The folders of what is kept for the user. Files in them stay open from the first load on.
    private static let keptFolders = FileManager.default.urls(
        for: .applicationSupportDirectory, in: .userDomainMask
    ).map { $0.resolvingSymlinksInPath().path + "/" }

    package init() throws {
        let files = FileManager.default
        // The listing has one open itself, which is closed by the time that its name is asked for.
        names = try files.contentsOfDirectory(atPath: "/proc/self/fd").compactMap {
            try? files.destinationOfSymbolicLink(atPath: "/proc/self/fd/" + $0)
        }.filter { name in !Self.keptFolders.contains { name.hasPrefix($0) } }
    }

    package var count: Int { names.count }

    /// "9: 3 anon_inode:[eventpoll], 4 socket, 2 /dev/null".
    package var description: String {
        let kinds = Dictionary(grouping: names) { $0.hasPrefix("socket:") ? "socket" : $0 }
        let list = kinds.sorted { $0.key < $1.key }.map { "\($0.value.count) \($0.key)" }
        return "\(count): \(list.joined(separator: ", "))"
    }

    /// Waits until no more are open than now, since threads close theirs in their own time; records an issue if
    /// some stay open.
    package func waitUntilOthersAreClosed() throws {
        do {
            try waitFor("descriptors to be closed") {
                (try? OpenDescriptors()).flatMap { $0.count <= count ? () : nil }
            }
        } catch {
            Issue.record("Before, these descriptors were open: \(self). Afterwards \(try OpenDescriptors())")
        }
    }
}

package func openDescriptorCount() throws -> Int { try OpenDescriptors().count }

/// Calls `round` ten times, and throws if the process has then more or fewer descriptors open than before.
///
/// It calls `round` once before it counts: the process opens some descriptors once and keeps them.
package func keepsDescriptors(_ round: () throws -> Void) throws {
    makeDispatchTimers()
    try round()
    let before = try OpenDescriptors()
    for _ in 1...10 { try round() }
    let after = try OpenDescriptors()
    guard after.count == before.count else {
        throw NeverCame(description: "The open descriptors were \(before), and became \(after)")
    }
}

/// Has Dispatch make the descriptors by which it serves timers, as it does on first use and in its own time:
/// a count of descriptors begins before that.
package func makeDispatchTimers() { _ = dispatchTimers }

private let dispatchTimers: Void = {
    let served = DispatchSemaphore(value: 0)
    DispatchQueue.global().asyncAfter(deadline: .now() + .milliseconds(1)) { served.signal() }
    served.wait()
}()
