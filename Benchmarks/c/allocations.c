/* Loaded before everything else (LD_PRELOAD), counts the calls of malloc and its kin in all threads. For ../guard. */
#include <errno.h>
#include <stddef.h>

/* What glibc's own malloc is called besides. */
extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);

static long count;
static void note(void) { __atomic_add_fetch(&count, 1, __ATOMIC_RELAXED); }
long bench_allocations(void) { return __atomic_load_n(&count, __ATOMIC_RELAXED); }

void *malloc(size_t size) { note(); return __libc_malloc(size); }
void *calloc(size_t n, size_t size) { note(); return __libc_calloc(n, size); }
void *realloc(void *p, size_t size) { note(); return __libc_realloc(p, size); }
void *memalign(size_t alignment, size_t size) { note(); return __libc_memalign(alignment, size); }
void *aligned_alloc(size_t alignment, size_t size) { return memalign(alignment, size); }
int posix_memalign(void **p, size_t alignment, size_t size) {
    void *made = memalign(alignment, size);
    if (made) *p = made;
    return made ? 0 : ENOMEM;
}
