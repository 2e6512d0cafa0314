/// How many calls of `suspend()` no `resume()` has undone (rule PR-18). Negative after a `resume()` too many, which counts for
/// a later `suspend()`.
struct Suspensions {
    private var count = 0

    mutating func suspend() { count += 1 }

    /// - Returns: Whether this was the last one, so that the child must continue.
    mutating func resume() -> Bool {
        defer { count -= 1 }
        return count == 1
    }
}
