public import Glibc

/// A lock that is not handed over: a thread that asks for a free one gets it, although others wait.
///
/// Swift's own `Mutex` hands a lock that is waited for to a waiter, which then has to be scheduled before it
/// can use the lock. Where more threads share a short lock than there are cores, each use of it comes to cost
/// a switch of threads: with it a small GET takes 30 to 100 µs of CPU on eight loops that share two cores,
/// with this one 12, as on one loop (`make bench`, W5 with 8 loops). Everywhere else Swift's takes less
/// memory, and no allocation.
///
/// It is public, since the compiler puts no `package` function in the place of a call from another module: a
/// generic one is then called with descriptions of its types, which takes some 2 % of the instructions of
/// bench-guard's http.request.
///
/// `@unchecked Sendable`: the value is reached under the lock only. Both pointers are owned, and freed in
/// `deinit`.
public struct UnfairMutex<Value: ~Copyable>: ~Copyable, @unchecked Sendable {
    @usableFromInline let value: UnsafeMutablePointer<Value>
    @usableFromInline let lock: UnsafeMutablePointer<pthread_mutex_t>

    @inlinable public init(_ value: consuming sending Value) {
        self.value = .allocate(capacity: 1)
        self.value.initialize(to: value)
        lock = .allocate(capacity: 1)
        lock.initialize(to: pthread_mutex_t())
        pthread_mutex_init(lock, nil)
    }

    @inlinable deinit {
        pthread_mutex_destroy(lock)
        lock.deallocate()
        value.deinitialize(count: 1)
        value.deallocate()
    }

    @inlinable public borrowing func withLock<Result, Failure: Error>(
        _ body: (inout Value) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        pthread_mutex_lock(lock)
        defer { pthread_mutex_unlock(lock) }
        return try body(&value.pointee)
    }
}
