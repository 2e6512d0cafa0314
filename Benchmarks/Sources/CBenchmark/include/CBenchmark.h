// What the benchmarks need of C and Swift's Glibc does not show.
#ifndef CBENCHMARK_H
#define CBENCHMARK_H

#include <sys/eventfd.h>

/// A descriptor that counts tokens: reading takes one, writing adds one. -1 when there are no more descriptors.
static inline int bench_token_descriptor(void) { return eventfd(0, EFD_SEMAPHORE | EFD_NONBLOCK); }

/// From here on instructions count (under `valgrind --tool=callgrind --instr-atstart=no`) and calls of malloc
/// and its kin (where ../../c/allocations.c was loaded first).
void bench_guard_begin(void);

/// Until here: prints the allocations of `count` items of `name`, or leaves a callgrind dump of that name.
void bench_guard_end(const char *name, long count);

#endif
