#if RONDO_THREAD_SANITIZER
    internal import RondoMutex

    // A name declared in a module goes before one that it imports: here before Swift's.
    typealias Mutex = RondoMutex.Mutex
#endif
