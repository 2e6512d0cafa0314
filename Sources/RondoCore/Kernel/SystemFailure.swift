internal import CRondoEv
internal import RondoMutex

internal import struct Synchronization.Atomic

/// Failures of system calls that libev takes for impossible: without the callback here it would abort the
/// process.
///
/// It is not called where `epoll_ctl` fails: libev judges that by an assertion, which Debian's build keeps and no option or
/// callback replaces. `OwnDescriptors.refusal` asks the kernel before, for that reason.
///
/// libev has one such callback for the process. If the calling thread runs no `ModeLoop`, another user of
/// libev has made the call, and the process aborts as libev would have it.
enum SystemFailure {
    private static let restNanoseconds = 1_000_000

    /// How many threads have a failed look that `take()` has not returned yet.
    private static let pending = Atomic(0)
    /// The threads that run our loops, each with the errno of a look that has failed there; 0: none has.
    /// (By `Int`, for the reason that `OwnDescriptors` names.)
    private static let threads = Mutex<[Int: Int32]>([:])

    private static var currentThread: Int { Int(bitPattern: pthread_self()) }

    private static let installed: Void = ev_set_syserr_cb { message in
        let code = errno
        let isWait = message.map { String(cString: $0).contains("epoll_wait") } ?? false
        let isOurs = threads.withLock { threads in
            guard let known = threads[currentThread] else { return false }
            guard isWait else { return true }
            if known == 0 { pending.wrappingAdd(1, ordering: .relaxed) }
            threads[currentThread] = code
            return true
        }
        guard isOurs else {
            perror(message)
            abort()
        }
        // libev has closed its epoll set, and asks for a new one until it has one.
        if !isWait { rest() }
    }

    /// To be called before the calling thread makes its first `ev_loop`.
    static func beginThread() {
        _ = installed
        threads.withLock { threads in
            if threads[currentThread] == nil { threads[currentThread] = 0 }
        }
    }

    /// To be called when the calling thread has closed its last `ev_loop`.
    static func endThread() {
        _ = take()
        threads.withLock { _ = $0.removeValue(forKey: currentThread) }
    }

    /// One branch where nothing has failed.
    static var hasOccurred: Bool { pending.load(ordering: .relaxed) != 0 }

    /// The errno of the calling thread's failed look, which is forgotten here; nil: no look has failed.
    static func take() -> Int32? {
        threads.withLock { threads in
            guard let code = threads[currentThread], code != 0 else { return nil }
            threads[currentThread] = 0
            pending.wrappingSubtract(1, ordering: .relaxed)
            return code
        }
    }

    /// Rests for a moment, so that a call that fails at once is not repeated at full speed.
    static func rest() {
        var time = timespec(tv_sec: 0, tv_nsec: restNanoseconds)
        nanosleep(&time, nil)
    }
}
