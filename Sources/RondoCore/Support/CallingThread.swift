/// The thread that makes the callbacks of one object: one thread at a time, which may nest them, since a
/// callback may run its loop again. Another thread leaves the callbacks that it finds to the loop of this
/// one.
package struct CallingThread: Sendable {
    /// Meaningful while `depth` is not 0.
    private var thread = pthread_t()
    private var depth = 0
    private var loop: RunLoop?
    /// Another thread has left callbacks to `loop`, which does not know yet.
    private var isAsked = false

    package init() {}

    /// False if another thread makes callbacks.
    package var mayEnter: Bool { depth == 0 || pthread_equal(thread, pthread_self()) != 0 }

    /// Lets the calling thread make callbacks, unless another one does. It then calls `end()`.
    ///
    /// - Parameter loop: That of the calling thread, for `ask()`.
    @discardableResult package mutating func begin(on loop: RunLoop? = nil) -> Bool {
        guard mayEnter else { return false }
        (thread, self.loop) = (pthread_self(), loop)
        depth += 1
        return true
    }

    package mutating func end() {
        depth -= 1
        if depth == 0 { (loop, isAsked) = (nil, false) }
    }

    /// Leaves callbacks to the thread that makes some now.
    ///
    /// - Returns: Its loop, which the caller tells, since a nested run may be waiting there for them; nil if
    ///   that was done already.
    package mutating func ask() -> RunLoop? {
        defer { isAsked = true }
        return isAsked ? nil : loop
    }

    /// Records that the loop to which callbacks were left knows of them, or has no mode in which it could
    /// make them.
    package mutating func endAsking() { isAsked = false }
}
