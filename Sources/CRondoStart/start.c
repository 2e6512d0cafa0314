#include "start.h"

#include <stdlib.h>
#include <string.h>

// Constructors, because nothing of Rondo's runs in every program before its first run loop does.

// The shared cache is Rondo's before a program can take a reference to another one.
__attribute__((constructor)) static void rondo_cache_constructor(void) {
    if (rondo_cache_start) rondo_cache_start();
}

// The variable is taken out of the environment: a child process must not write over its parent's file.
__attribute__((constructor)) static void rondo_trace_constructor(void) {
    const char *path = getenv("RONDO_TRACE");
    if (!path || !*path || !rondo_trace_start) return;
    char *copy = strdup(path);
    if (!copy) return;
    unsetenv("RONDO_TRACE");
    rondo_trace_start(copy);
    free(copy);
}
