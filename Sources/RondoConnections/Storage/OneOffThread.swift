internal import RondoCore

/// A thread for one piece of work.
///
/// libdispatch would have the caller wait, for ever perhaps, where the machine has no thread left.
enum OneOffThread {
    private final class Body: Sendable {
        let run: @Sendable () -> Void
        init(_ run: @escaping @Sendable () -> Void) { self.run = run }
    }

    /// Calls `run` on a thread of its own, to which no signals go.
    ///
    /// - Returns: False if there can be none; then `run` is not called.
    static func start(_ run: @escaping @Sendable () -> Void) -> Bool {
        // A signal handler is the program's, and so are the threads that it may run on.
        var (all, before) = (sigset_t(), sigset_t())
        sigfillset(&all)
        pthread_sigmask(SIG_SETMASK, &all, &before)
        defer { pthread_sigmask(SIG_SETMASK, &before, nil) }
        var thread = pthread_t()
        // The thread takes the body over, and releases it.
        let body = Unmanaged.passRetained(Body(run))
        let code = pthread_create(
            &thread, nil,
            { argument in
                guard let argument else { return nil }
                // The one reference that was handed over.
                Unmanaged<Body>.fromOpaque(argument).takeRetainedValue().run()
                return nil
            }, body.toOpaque())
        guard code == 0 else {
            body.release()
            return false
        }
        pthread_detach(thread)
        return true
    }
}
