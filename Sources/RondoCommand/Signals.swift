import Rondo

/// Receives signals on a waiting thread, so that no code must run in a signal handler.
enum Signals {
    /// From now on calls `handler` for SIGINT and SIGTERM, on a thread of its own, one signal at a time. A
    /// signal that is ignored stays ignored: a shell starts programs so in the background of a script, and
    /// nohup does.
    ///
    /// Call it before other threads are made: they inherit the mask that blocks the signals.
    static func onInterruption(_ handler: @escaping @Sendable (Int32) -> Void) {
        handle([SIGINT, SIGTERM], handler)
    }

    /// As above, for the signals in `numbers`.
    static func handle(_ numbers: [Int32], _ handler: @escaping @Sendable (Int32) -> Void) {
        let awaited = block(numbers.filter { !isIgnored($0) })
        do throws(SystemError) {
            try SystemThread.start(name: "signals") {
                var awaited = awaited
                while true {
                    var signal: Int32 = 0
                    if sigwait(&awaited, &signal) == 0 { handler(signal) }
                }
            }
        } catch {
            // Without a waiting thread, the signals must end the program as they do by default.
            var set = awaited
            pthread_sigmask(SIG_UNBLOCK, &set, nil)
        }
    }

    /// Has the signals wait, of this thread and those that it makes.
    ///
    /// - Returns: The set of the signals.
    @discardableResult
    static func block(_ numbers: [Int32]) -> sigset_t {
        var set = sigset_t()
        sigemptyset(&set)
        for number in numbers { sigaddset(&set, number) }
        pthread_sigmask(SIG_BLOCK, &set, nil)
        return set
    }

    static func isIgnored(_ number: Int32) -> Bool {
        var action = sigaction()
        sigaction(number, nil, &action)
        // Both are C function pointers, which Swift does not compare; each has the size of an `Int`.
        return unsafeBitCast(action.__sigaction_handler.sa_handler, to: Int.self)
            == unsafeBitCast(SIG_IGN, to: Int.self)
    }

    /// A closed reader becomes an error of `write` instead of ending the process.
    static func ignoreBrokenPipes() {
        signal(SIGPIPE, SIG_IGN)
    }
}
