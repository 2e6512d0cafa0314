#include "trace_start.h"

#include <stdlib.h>
#include <string.h>

// A constructor, because nothing of Rondo's runs in every program before its first run loop does. The variable
// is taken out of the environment: a child process must not write over its parent's file.
__attribute__((constructor)) static void rondo_trace_constructor(void) {
    const char *path = getenv("RONDO_TRACE");
    if (!path || !*path || !rondo_trace_start) return;
    char *copy = strdup(path);
    if (!copy) return;
    unsetenv("RONDO_TRACE");
    rondo_trace_start(copy);
    free(copy);
}
