internal import CRondoEv

/// Starts threads, and throws the kernel's reason if it cannot.
///
/// Foundation's `Thread` and Dispatch hide a failure of `pthread_create`: Foundation starts no thread and
/// reports nothing; Dispatch blocks the thread that asked, and tries again for ever.
package enum SystemThread {
    /// The name and the function of a thread, passed through C.
    private final class Body: Sendable {
        let name: String
        let run: @Sendable () -> Void

        init(_ name: String, _ run: @escaping @Sendable () -> Void) {
            self.name = name
            self.run = run
        }
    }

    /// Runs `body` on a new thread, which ends when `body` returns and cannot be joined.
    ///
    /// - Parameter name: Shown by debuggers, which see the first 15 bytes.
    /// - Throws: `EAGAIN`, as a rule: the number of threads, or memory for them, is used up.
    package static func start(
        name: String, _ body: @escaping @Sendable () -> Void
    ) throws(SystemError) {
        var thread = pthread_t()
        // `Unmanaged` to pass through C: retained here, and released by the new thread, or below if there is
        // none.
        let handedOver = Unmanaged.passRetained(Body(name, body))
        let code = pthread_create(
            &thread, nil,
            { argument in
                guard let argument else { return nil }
                // Takes over the one reference that was retained for this thread.
                let body = Unmanaged<Body>.fromOpaque(argument).takeRetainedValue()
                rondo_name_thread(body.name)
                body.run()
                return nil
            }, handedOver.toOpaque())
        guard code == 0 else {
            handedOver.release()
            throw SystemError("pthread_create", code: code)
        }
        pthread_detach(thread)
    }

    /// The name of the calling thread, for messages.
    static var nameOfCurrent: String {
        if Thread.isMainThread { return "the main thread" }
        // On Linux a thread without a name has the name of the thread that made it; the number tells them
        // apart.
        guard let name = Thread.current.name, !name.isEmpty else { return "thread \(rondo_thread_number())" }
        return "thread \(name) (\(rondo_thread_number()))"
    }
}
