internal import CEv
internal import RondoMutex

internal import struct Synchronization.Atomic

/// The numbers of the descriptors that run loops have for themselves: epoll sets, eventfds, timerfds.
///
/// A source that watches one of these numbers was scheduled for a descriptor that has been closed since. To hand the
/// number to libev would abort the process in places (an epoll set in itself, or sets that watch each other), and in
/// others a program would read from an eventfd that is the loop's (rule SRC-27).
enum OwnDescriptors {
    private static let numbers = Mutex<Set<Int32>>([])

    /// - Parameter make: Makes a descriptor; nil: it could not. Between that and its being known no other thread can ask.
    static func add(_ make: () -> Int32?) {
        numbers.withLock { numbers in
            if let number = make(), number >= 0 { numbers.insert(number) }
        }
    }

    /// Before it is closed.
    static func remove(_ number: Int32) { numbers.withLock { _ = $0.remove(number) } }

    static func contains(_ number: Int32) -> Bool { numbers.withLock { $0.contains(number) } }
}

/// What libev says of system calls that must not fail: it would abort the process, unless it finds this callback.
///
/// The callback is the process's, as libev has only one. Where the calling thread has no run loop, the call is another
/// user's of libev, and the process aborts as libev would have it.
enum SystemFailure {
    private static let pending = Atomic(0)

    private static let installed: Void = ev_set_syserr_cb { message in
        let code = errno
        guard let pointer = pthread_getspecific(LoopOwner.key) else {
            perror(message)
            abort()
        }
        // The thread's slot holds a reference, so the object is alive.
        let owner = Unmanaged<RunLoop>.fromOpaque(pointer).takeUnretainedValue().owner
        if let message, String(cString: message).contains("epoll_wait") {
            if owner.lookFailure == 0 { pending.wrappingAdd(1, ordering: .relaxed) }
            owner.lookFailure = code
        } else {
            // A new epoll set, which libev asks for until it has one, having closed the old one.
            ModeLoop.rest()
        }
    }

    static func install() { _ = installed }

    /// One branch where nothing has failed.
    @inline(__always)
    static var hasOccurred: Bool { pending.load(ordering: .relaxed) != 0 }

    /// Why the calling thread's look has failed; nil: it has not.
    static func take() -> Int32? {
        guard let pointer = pthread_getspecific(LoopOwner.key) else { return nil }
        // As above.
        let owner = Unmanaged<RunLoop>.fromOpaque(pointer).takeUnretainedValue().owner
        guard owner.lookFailure != 0 else { return nil }
        defer { owner.lookFailure = 0 }
        pending.wrappingSubtract(1, ordering: .relaxed)
        return owner.lookFailure
    }
}
