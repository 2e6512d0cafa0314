import Rondo

/// Receives signals on a waiting thread, so that no code must run in a signal handler.
enum Signals {
    /// From now on calls `handler` for SIGINT and SIGTERM, on a thread of its own, one signal at a time. A signal
    /// that is ignored stays ignored: a shell starts programs so in the background of a script, and nohup does.
    ///
    /// Call it before other threads are made: they inherit the mask that blocks the signals.
    static func onInterruption(_ handler: @escaping @Sendable (Int32) -> Void) {
        handle([SIGINT, SIGTERM], handler)
    }

    /// As above, for the signals in `numbers`.
    static func handle(_ numbers: [Int32], _ handler: @escaping @Sendable (Int32) -> Void) {
        var set = sigset_t()
        sigemptyset(&set)
        for number in numbers where !isIgnored(number) { sigaddset(&set, number) }
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
            // Without a waiting thread, the signals must end the program as they do by default.
            pthread_sigmask(SIG_UNBLOCK, &set, nil)
        }
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
