// The identity of threads. In C because Swift has no thread-local variables.
#include "rondo_system.h"

#include <stdatomic.h>

uint64_t rondo_thread_serial(void) {
    static _Atomic uint64_t last;
    static _Thread_local uint64_t serial;
    if (!serial) serial = atomic_fetch_add_explicit(&last, 1, memory_order_relaxed) + 1;
    return serial;
}
