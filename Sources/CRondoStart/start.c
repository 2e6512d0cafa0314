#define _GNU_SOURCE
#include "start.h"

#include <stdlib.h>
#include <string.h>

// Constructors, because in some programs no code of Rondo's runs before their first run loop.

// Rondo's shared cache is installed before a program can take a reference to another one.
__attribute__((constructor)) static void rondo_cache_constructor(void) {
    if (rondo_cache_start) rondo_cache_start();
}

// The variable is removed from the environment, so that a child process does not overwrite its parent's file.
// A program with rights that its caller does not have (set-user-ID) ignores it: the caller would choose a
// file for it to write.
__attribute__((constructor)) static void rondo_trace_constructor(void) {
    const char *path = secure_getenv("RONDO_TRACE");
    if (!path || !*path || !rondo_trace_start) return;
    char *copy = strdup(path);
    if (!copy) return;
    unsetenv("RONDO_TRACE");
    rondo_trace_start(copy);
    free(copy);
}
