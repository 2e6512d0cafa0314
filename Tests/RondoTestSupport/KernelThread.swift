package import RondoCore

/// The kernel's number of the thread that calls this.
package func threadNumber() -> pid_t {
    let link = try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/thread-self")
    return link?.split(separator: "/").last.flatMap { pid_t($0) } ?? 0
}

/// Waits until a thread of this process sleeps.
package func waitUntilAsleep(thread: pid_t) throws {
    try waitFor("a thread to wait") { isAsleep(thread: thread) ? () : nil }
}

package func isAsleep(thread: pid_t) -> Bool {
    // Behind the name in brackets stands the state.
    let line = try? String(contentsOfFile: "/proc/self/task/\(thread)/stat", encoding: .utf8)
    return line?.split(separator: ")").last?.hasPrefix(" S") ?? false
}
