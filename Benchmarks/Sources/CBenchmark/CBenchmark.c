#define _GNU_SOURCE
#include "CBenchmark.h"
#include <dlfcn.h>
#include <stdio.h>

#if __has_include(<valgrind/callgrind.h>)
#include <valgrind/callgrind.h>
#else
// Nothing counts instructions then; ../../guard sees to it that valgrind is there.
#define CALLGRIND_START_INSTRUMENTATION
#define CALLGRIND_STOP_INSTRUMENTATION
#define CALLGRIND_ZERO_STATS
#define CALLGRIND_DUMP_STATS_AT(name)
#endif

static long (*allocations)(void);
static long allocations_before;

void bench_guard_begin(void) {
    allocations = (long (*)(void))dlsym(RTLD_DEFAULT, "bench_allocations");
    allocations_before = allocations ? allocations() : 0;
    CALLGRIND_START_INSTRUMENTATION;
    CALLGRIND_ZERO_STATS;
}

void bench_guard_end(const char *name, long count) {
    CALLGRIND_DUMP_STATS_AT(name);
    CALLGRIND_STOP_INSTRUMENTATION;
    long made = allocations ? allocations() - allocations_before : 0;
    printf("guard=%s count=%ld allocations=%ld\n", name, count, made);
    fflush(stdout);
}
