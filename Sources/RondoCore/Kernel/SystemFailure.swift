internal import CRondoEv
internal import RondoMutex

internal import struct Synchronization.Atomic

/// Handles failures of system calls that libev considers impossible: without the callback installed here
/// libev would abort the process.
///
/// It is not called where `epoll_ctl` fails: libev judges that by an assertion, which Debian's build keeps
/// and no option or callback replaces. `OwnDescriptors.refusal` asks the kernel before, for that reason.
///
/// libev has one such callback for the process. If the calling thread runs no `ModeLoop`, another user of
/// libev has made the call, and the process aborts as libev would have it.
enum SystemFailure {
    private static let restNanoseconds = 1_000_000

    /// The number of threads with a failed look that `take()` has not returned yet.
    private static let pending = Atomic(0)
    /// The threads that run our loops, each with the errno of a look that has failed there, or 0. (Keys are
    /// `Int` for the reason given in `OwnDescriptors`.)
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
        // libev has closed its epoll set and asks for a new one, again and again until it gets one.
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

    /// Whether a look has failed on any thread; costs one branch if none has.
    static var hasOccurred: Bool { pending.load(ordering: .relaxed) != 0 }

    /// Returns and clears the errno of the calling thread's failed look; nil if no look has failed.
    static func take() -> Int32? {
        threads.withLock { threads in
            guard let code = threads[currentThread], code != 0 else { return nil }
            threads[currentThread] = 0
            pending.wrappingSubtract(1, ordering: .relaxed)
            return code
        }
    }

    /// Sleeps for a millisecond, so that a call that fails at once is not repeated at full speed.
    static func rest() {
        var time = timespec(tv_sec: 0, tv_nsec: restNanoseconds)
        nanosleep(&time, nil)
    }
}
