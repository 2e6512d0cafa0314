import Rondo

/// Signals as a thread sees them that waits for them, so that nothing has to be done inside a handler.
enum Signals {
    /// From now on SIGINT and SIGTERM are handed to `handler`, on a thread of its own, one at a time.
    ///
    /// Call it before other threads are made: they inherit that the signals are blocked.
    static func onInterruption(_ handler: @escaping @Sendable (Int32) -> Void) {
        handle([SIGINT, SIGTERM], handler)
    }

    /// As above, for the signals of `numbers`.
    static func handle(_ numbers: [Int32], _ handler: @escaping @Sendable (Int32) -> Void) {
        var set = sigset_t()
        sigemptyset(&set)
        for number in numbers { sigaddset(&set, number) }
        pthread_sigmask(SIG_BLOCK, &set, nil)
        let awaited = set
        do throws(SystemError) {
            try SystemThread.start(name: "signals") {
                var awaited = awaited
                while true {
                    var signal: Int32 = 0
                    if sigwait(&awaited, &signal) == 0 { handler(signal) }
                }
            }
        } catch {
            // No thread waits for them: they end the program, as they do by themselves.
            pthread_sigmask(SIG_UNBLOCK, &set, nil)
        }
    }

    /// A reader that has gone shall be an error of `write`, not the end of the process.
    static func ignoreBrokenPipes() {
        signal(SIGPIPE, SIG_IGN)
    }
}
