// What is called before `main`. All of it is written in Swift, and weak, so that a program that links this alone links.
#ifndef RONDO_START_H
#define RONDO_START_H

#include <sys/prctl.h>

/// Makes the shared cache Rondo's; in RondoConnections.
__attribute__((weak)) void rondo_cache_start(void);

/// Begins to record into the file at `path`, where RONDO_TRACE names one: any program that uses Rondo can be recorded
/// without changing it; in RondoTrace.
__attribute__((weak)) void rondo_trace_start(const char *path);

/// Names the calling thread; the kernel keeps 15 bytes.
static inline void rondo_trace_set_name_of_thread(const char *name) {
    prctl(PR_SET_NAME, (unsigned long)name, 0, 0, 0);
}

/// The name of the calling thread, at most 15 bytes and a zero; `prctl` takes variable arguments.
static inline void rondo_trace_name_of_thread(char *name) {
    prctl(PR_GET_NAME, (unsigned long)name, 0, 0, 0);
}

#endif
