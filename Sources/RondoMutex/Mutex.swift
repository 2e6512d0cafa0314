// The lock of all other targets.
//
// Swift's Synchronization library is not instrumented, so ThreadSanitizer does not see that its `Mutex` orders what it
// guards, and reports every access. `make sanitize` therefore builds with RONDO_THREAD_SANITIZER, and a lock that the
// sanitizer knows stands in for Swift's. Without it this module has one name for Swift's lock, and no code.

#if RONDO_THREAD_SANITIZER
    internal import Foundation

    /// As `Synchronization.Mutex`, by the thread library.
    ///
    /// `@unchecked Sendable`: the value is reached under the lock only. Both pointers are owned, and freed in
    /// `deinit`.
    package struct Mutex<Value: ~Copyable>: ~Copyable, @unchecked Sendable {
        private let value: UnsafeMutablePointer<Value>
        private let lock: UnsafeMutablePointer<pthread_mutex_t>

        package init(_ value: consuming sending Value) {
            self.value = .allocate(capacity: 1)
            self.value.initialize(to: value)
            lock = .allocate(capacity: 1)
            lock.initialize(to: pthread_mutex_t())
            pthread_mutex_init(lock, nil)
        }

        deinit {
            pthread_mutex_destroy(lock)
            lock.deallocate()
            value.deinitialize(count: 1)
            value.deallocate()
        }

        package borrowing func withLock<Result, Failure: Error>(
            _ body: (inout Value) throws(Failure) -> Result
        ) throws(Failure) -> Result {
            pthread_mutex_lock(lock)
            defer { pthread_mutex_unlock(lock) }
            return try body(&value.pointee)
        }
    }
#else
    package import Synchronization

    /// Swift's own lock, by the same name.
    package typealias Mutex = Synchronization.Mutex
#endif
