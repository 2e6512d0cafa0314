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
    /// - Parameters:
    ///   - name: Shown by debuggers, which see the first 15 bytes.
    ///   - blocksSignals: Whether the thread leaves signals to the program's threads, as Dispatch's threads
    ///     do: a signal that the program blocks in its threads, to wait for it, must not find a thread of
    ///     Rondo's that takes it and ends the process. False for threads that the program asks for, and for
    ///     that of `RunLoop.loader`, which may call the program: they inherit the mask of the calling thread,
    ///     as the children do that the program starts there.
    /// - Throws: `EAGAIN`, as a rule: the number of threads, or memory for them, is used up.
    package static func start(
        name: String, blocksSignals: Bool = true, _ body: @escaping @Sendable () -> Void
    ) throws(SystemError) {
        var before = sigset_t()
        if blocksSignals {
            // The new thread inherits the mask, so that it takes no signal before its first instruction
            // either.
            var blocked = signalsOfTheProgram
            pthread_sigmask(SIG_BLOCK, &blocked, &before)
        }
        defer { if blocksSignals { pthread_sigmask(SIG_SETMASK, &before, nil) } }
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

    /// All signals but those that a thread raises by what it does itself, and SIGPROF, which profilers send.
    private static var signalsOfTheProgram: sigset_t {
        var signals = sigset_t()
        sigfillset(&signals)
        for number in [SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE, SIGSEGV, SIGSYS, SIGPROF] {
            sigdelset(&signals, number)
        }
        // They stop a job in the background that uses its terminal. A thread that blocks them gets an error
        // instead when it reads.
        for number in [SIGTTIN, SIGTTOU] { sigdelset(&signals, number) }
        return signals
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
