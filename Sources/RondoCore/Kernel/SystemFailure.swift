internal import CEv
internal import RondoMutex

internal import struct Synchronization.Atomic

/// What libev says of system calls that must not fail: it would abort the process, unless it finds this callback.
///
/// The callback is the process's, as libev has only one. Where the calling thread runs no `ModeLoop`, the call is another
/// user's of libev, and the process aborts as libev would have it.
enum SystemFailure {
    private static let restNanoseconds = 1_000_000

    /// How many threads have a failed look that has not been dealt with.
    private static let pending = Atomic(0)
    /// The threads that run loops of ours, and the errno of a look that has failed there; 0: none has.
    private static let threads = Mutex<[pthread_t: Int32]>([:])

    private static let installed: Void = ev_set_syserr_cb { message in
        let code = errno
        let isWait = message.map { String(cString: $0).contains("epoll_wait") } ?? false
        let isOurs = threads.withLock { threads in
            guard let known = threads[pthread_self()] else { return false }
            guard isWait else { return true }
            if known == 0 { pending.wrappingAdd(1, ordering: .relaxed) }
            threads[pthread_self()] = code
            return true
        }
        guard isOurs else {
            perror(message)
            abort()
        }
        // A new epoll set, which libev asks for until it has one, having closed the old one.
        if !isWait { rest() }
    }

    /// Before the calling thread makes its first `ev_loop`.
    static func beginThread() {
        _ = installed
        threads.withLock { threads in
            if threads[pthread_self()] == nil { threads[pthread_self()] = 0 }
        }
    }

    /// The calling thread has no `ev_loop` any more.
    static func endThread() {
        _ = take()
        threads.withLock { _ = $0.removeValue(forKey: pthread_self()) }
    }

    /// One branch where nothing has failed.
    @inline(__always)
    static var hasOccurred: Bool { pending.load(ordering: .relaxed) != 0 }

    /// Why the calling thread's look has failed; nil: it has not.
    static func take() -> Int32? {
        threads.withLock { threads in
            guard let code = threads[pthread_self()], code != 0 else { return nil }
            threads[pthread_self()] = 0
            pending.wrappingSubtract(1, ordering: .relaxed)
            return code
        }
    }

    /// Keeps what fails at once from being tried at full speed.
    static func rest() {
        var time = timespec(tv_sec: 0, tv_nsec: restNanoseconds)
        nanosleep(&time, nil)
    }
}
