// Functions called before `main`. They are written in Swift, and weak, so that a program can link this target
// alone.
#ifndef RONDO_START_H
#define RONDO_START_H

#include <sys/prctl.h>

/// Installs Rondo's shared cache. Defined in RondoConnections.
__attribute__((weak)) void rondo_cache_start(void);

/// Starts recording into the file at `path`, which RONDO_TRACE names: any program that uses Rondo can be
/// recorded without changing it. Defined in RondoTrace.
__attribute__((weak)) void rondo_trace_start(const char *path);

/// Names the calling thread; the kernel keeps 15 bytes.
static inline void rondo_trace_set_name_of_thread(const char *name) {
    prctl(PR_SET_NAME, (unsigned long)name, 0, 0, 0);
}

/// The name of the calling thread, at most 15 bytes and a zero. In C because `prctl` takes variable
/// arguments.
static inline void rondo_trace_name_of_thread(char *name) {
    prctl(PR_GET_NAME, (unsigned long)name, 0, 0, 0);
}

#endif
