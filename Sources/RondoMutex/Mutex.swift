// The lock of all other targets.
//
// Swift's Synchronization library is not instrumented, so ThreadSanitizer does not see that its `Mutex`
// orders what it guards, and reports every access. `make sanitize` therefore builds with
// RONDO_THREAD_SANITIZER, and a lock that the sanitizer knows stands in for Swift's.

#if RONDO_THREAD_SANITIZER
    package typealias Mutex = UnfairMutex
#else
    package import Synchronization

    /// Swift's own lock, by the same name.
    package typealias Mutex = Synchronization.Mutex
#endif
