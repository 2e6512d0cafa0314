// What the benchmarks need of C and Swift's Glibc does not show.
#ifndef CBENCHMARK_H
#define CBENCHMARK_H

#include <sys/eventfd.h>

/// A descriptor that counts tokens: reading takes one, writing adds one. -1 when there are no more descriptors.
static inline int bench_token_descriptor(void) { return eventfd(0, EFD_SEMAPHORE | EFD_NONBLOCK); }

#endif
