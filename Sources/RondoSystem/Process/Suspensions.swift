/// How many calls of `suspend()` no `resume()` has undone (rule PR-18). Negative after a `resume()` too many,
/// which counts for a later `suspend()`.
///
/// The signals are sent by closures, so that counting and sending are one step under the lock of the process:
/// otherwise another thread could come in between, and send its SIGCONT before a SIGSTOP that is counted
/// already.
struct Suspensions {
    private var count = 0

    /// - Parameter stop: Stops the child.
    /// - Returns: Whether it has done so; if not, nothing is counted.
    mutating func suspend(_ stop: () -> Bool) -> Bool {
        guard stop() else { return false }
        count += 1
        return true
    }

    /// - Parameter proceed: Lets the child continue; called by the resume that undoes the last suspend.
    /// - Returns: False if it was called and has failed; then nothing is counted.
    mutating func resume(_ proceed: () -> Bool) -> Bool {
        if count == 1, !proceed() { return false }
        count -= 1
        return true
    }
}
