// System calls that fail on purpose: a library to be preloaded, for RondoFaultProbe and whatever else is to be tried.
//
//     cc -shared -fPIC -O1 -o faults.so faults.c -ldl
//     RONDO_FAULTS='all@0.01' RONDO_FAULT_SEED=7 LD_PRELOAD=./faults.so program
//
// RONDO_FAULTS is a list, separated by commas, of call@rate, or call=ERRNO@rate, as in "epoll_ctl=ENOSPC@1". The call
// "all" stands for all of them but malloc, which stands for calloc and realloc too, and is for callers in C, and
// epoll_ctl_del, which is epoll_ctl where it takes a descriptor out of a set. Without an errno one is drawn from those
// that the call's manual page names; what a correct program never sees (EFAULT, and EBADF where the caller would have to
// close what is not its own) is left out, and so are epoll_ctl's EBADF, EINVAL and ELOOP, for which libev as Debian builds
// it aborts the process: only a wrong call gives them.
// RONDO_FAULT_SEED chooses what is drawn; the n-th call of the process draws the n-th number, so one thread's program is
// the same each time, and that of several differs as their calls do.
// RONDO_FAULT_CALLERS: only calls made by objects whose path holds one of these words, separated by commas; none: all.
// RONDO_FAULT_LIBRARIES: names, separated by commas, of libraries that dlopen does not find.
// RONDO_FAULT_ARMED=0: nothing fails before the program calls rondo_faults_arm(1), which it finds by dlsym.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define CALLS                                                                                                          \
    C(socket, EACCES, EMFILE, ENFILE, ENOBUFS, ENOMEM, EAFNOSUPPORT)                                                   \
    C(connect, EACCES, EADDRNOTAVAIL, EAGAIN, ECONNREFUSED, EINTR, ENETUNREACH, ETIMEDOUT)                             \
    C(accept4, EAGAIN, ECONNABORTED, EINTR, EMFILE, ENFILE, ENOBUFS, ENOMEM, EPERM, EPROTO)                            \
    C(bind, EACCES, EADDRINUSE, EADDRNOTAVAIL, ENOMEM)                                                                 \
    C(listen, EADDRINUSE, EOPNOTSUPP)                                                                                  \
    C(open, EACCES, EINTR, EIO, EMFILE, ENFILE, ENOENT, ENOMEM, ENOSPC, EROFS)                                         \
    C(openat, EACCES, EINTR, EIO, EMFILE, ENFILE, ENOENT, ENOMEM, ENOSPC, EROFS)                                       \
    C(read, EAGAIN, EINTR, EIO)                                                                                        \
    C(write, EAGAIN, EDQUOT, EINTR, EIO, ENOSPC, EPIPE)                                                                \
    C(readv, EAGAIN, EINTR, EIO)                                                                                       \
    C(writev, EAGAIN, EINTR, EIO, ENOSPC, EPIPE)                                                                       \
    C(recv, EAGAIN, ECONNREFUSED, ECONNRESET, EINTR, ENOMEM)                                                           \
    C(recvmsg, EAGAIN, ECONNREFUSED, ECONNRESET, EINTR, ENOMEM)                                                        \
    C(send, EAGAIN, ECONNRESET, EINTR, ENOBUFS, ENOMEM, EPIPE)                                                         \
    C(sendmsg, EAGAIN, ECONNRESET, EINTR, ENOBUFS, ENOMEM, EPIPE)                                                      \
    C(epoll_create1, EMFILE, ENFILE, ENOMEM)                                                                           \
    C(epoll_ctl, ENOMEM, ENOSPC)                                                                                       \
    C(epoll_ctl_del, ENOMEM)                                                                                           \
    C(epoll_wait, EBADF, EINTR, EINVAL)                                                                                \
    C(poll, EINTR, EINVAL, ENOMEM)                                                                                     \
    C(eventfd, EMFILE, ENFILE, ENODEV, ENOMEM)                                                                         \
    C(timerfd_create, EMFILE, ENFILE, ENODEV, ENOMEM)                                                                  \
    C(timerfd_settime, ECANCELED)                                                                                      \
    C(pipe2, EMFILE, ENFILE)                                                                                           \
    C(socketpair, EMFILE, ENFILE)                                                                                      \
    C(fcntl, EACCES, EAGAIN, EINTR, EMFILE)                                                                            \
    C(setsockopt, ENOPROTOOPT, ENOMEM)                                                                                 \
    C(getsockopt, ENOPROTOOPT)                                                                                         \
    C(close, EINTR, EIO, ENOSPC)                                                                                       \
    C(pthread_create, EAGAIN)                                                                                          \
    C(malloc, ENOMEM)                                                                                                  \
    C(pwritev2, EAGAIN, EINTR, EIO, ENOSPC, EPIPE)                                                                     \
    C(waitid, EINTR)                                                                                                   \
    C(__clone, EAGAIN, EMFILE, ENFILE, ENOMEM)

enum {
#define C(name, ...) call_##name,
    CALLS
#undef C
        call_count
};

static const char *const names[] = {
#define C(name, ...) #name,
    CALLS
#undef C
};

#define C(name, ...) static const int errors_##name[] = {__VA_ARGS__};
CALLS
#undef C

static const struct {
    const int *list;
    int count;
} errors[] = {
#define C(name, ...) {errors_##name, (int)(sizeof errors_##name / sizeof(int))},
    CALLS
#undef C
};

static const struct {
    const char *name;
    int code;
} codes[] = {{"EAGAIN", EAGAIN}, {"EMFILE", EMFILE}, {"ENFILE", ENFILE}, {"ENOMEM", ENOMEM}, {"ENOSPC", ENOSPC},
             {"EINTR", EINTR},   {"EIO", EIO},       {"EBADF", EBADF},   {"EINVAL", EINVAL}, {"ECONNRESET", ECONNRESET}};

// What of the environment and the objects is known, all of it set by the constructor before the program begins.
static double rates[call_count];
static int chosen[call_count];
static uint64_t seed;
static struct {
    uintptr_t from, to;
} callers[64];
static int caller_count, takes_all_callers = 1;
static char caller_words[512];

static atomic_int is_armed;
static atomic_ullong drawn;
static atomic_ullong failed[call_count];

void rondo_faults_arm(int armed) { atomic_store(&is_armed, armed); }

/// How often calls have failed.
unsigned long long rondo_faults_count(void) {
    unsigned long long sum = 0;
    for (int call = 0; call < call_count; call++) sum += failed[call];
    return sum;
}

static int note_object(struct dl_phdr_info *info, size_t size, void *data) {
    char own[4096];
    const char *path = info->dlpi_name;
    if (!*path) {
        ssize_t length = readlink("/proc/self/exe", own, sizeof own - 1);
        if (length < 0) return 0;
        own[length] = 0;
        path = own;
    }
    char words[sizeof caller_words];
    strcpy(words, caller_words);
    char *rest = words, *word;
    while ((word = strsep(&rest, ",")))
        if (*word && strstr(path, word))
            for (int i = 0; i < info->dlpi_phnum; i++) {
                const ElfW(Phdr) *header = &info->dlpi_phdr[i];
                if (header->p_type != PT_LOAD || !(header->p_flags & PF_X) || caller_count == 64) continue;
                callers[caller_count].from = info->dlpi_addr + header->p_vaddr;
                callers[caller_count++].to = info->dlpi_addr + header->p_vaddr + header->p_memsz;
            }
    return 0;
}

static void set(const char *entry) {
    char name[32] = "", code[32] = "";
    double rate = 1;
    if (sscanf(entry, "%31[^=@]=%31[^@]@%lf", name, code, &rate) < 2) sscanf(entry, "%31[^@]@%lf", name, &rate);
    int found = 0;
    for (int call = 0; call < call_count; call++) {
        int is_apart = call == call_malloc || call == call_epoll_ctl_del;
        if (strcmp(name, names[call]) && (strcmp(name, "all") || is_apart)) continue;
        found = 1;
        rates[call] = rate;
        for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
            if (!strcmp(code, codes[i].name)) chosen[call] = codes[i].code;
    }
    if (!found) {
        fprintf(stderr, "faults: there is no call %s\n", name);
        _exit(2);
    }
}

__attribute__((constructor)) static void begin(void) {
    const char *given = getenv("RONDO_FAULTS");
    char list[1024] = "";
    if (given) strncpy(list, given, sizeof list - 1);
    char *rest = list, *entry;
    while ((entry = strsep(&rest, ",")))
        if (*entry) set(entry);
    if ((given = getenv("RONDO_FAULT_SEED"))) seed = strtoull(given, 0, 10);
    if ((given = getenv("RONDO_FAULT_CALLERS")) && *given) {
        takes_all_callers = 0;
        strncpy(caller_words, given, sizeof caller_words - 1);
        dl_iterate_phdr(note_object, 0);
    }
    given = getenv("RONDO_FAULT_ARMED");
    is_armed = !given || strcmp(given, "0");
    // Programs that this one starts are as they always are.
    unsetenv("LD_PRELOAD");
}

__attribute__((destructor)) static void end(void) {
    if (!getenv("RONDO_FAULT_LOG")) return;
    for (int call = 0; call < call_count; call++)
        if (failed[call]) fprintf(stderr, "faults: %s failed %llu times\n", names[call], failed[call]);
}

/// 0: it is made as it is; otherwise the errno with which it fails.
static int fault(int call, void *caller) {
    if (!atomic_load_explicit(&is_armed, memory_order_relaxed) || rates[call] <= 0) return 0;
    int is_meant = takes_all_callers;
    for (int i = 0; i < caller_count && !is_meant; i++)
        is_meant = (uintptr_t)caller >= callers[i].from && (uintptr_t)caller < callers[i].to;
    if (!is_meant) return 0;
    // SplitMix64 of the seed and the number of the call.
    uint64_t value = seed * 0x9e3779b97f4a7c15u + (atomic_fetch_add(&drawn, 1) + 1) * 0xbf58476d1ce4e5b9u;
    value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
    value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
    value ^= value >> 31;
    if ((double)(value >> 11) * 0x1p-53 >= rates[call]) return 0;
    atomic_fetch_add(&failed[call], 1);
    return chosen[call] ? chosen[call] : errors[call].list[(value & 0x7ff) % errors[call].count];
}

#define REAL(name) __typeof__(name) *real = (__typeof__(name) *)dlsym(RTLD_NEXT, #name)
#define MAKE(name, type, parameters, arguments)                                                                        \
    type name parameters {                                                                                             \
        REAL(name);                                                                                                    \
        int code = fault(call_##name, __builtin_return_address(0));                                                    \
        if (!code) return real arguments;                                                                              \
        errno = code;                                                                                                  \
        return -1;                                                                                                     \
    }

MAKE(socket, int, (int family, int type, int protocol), (family, type, protocol))
MAKE(connect, int, (int s, const struct sockaddr *address, socklen_t length), (s, address, length))
MAKE(accept4, int, (int s, struct sockaddr *address, socklen_t *length, int flags), (s, address, length, flags))
MAKE(bind, int, (int s, const struct sockaddr *address, socklen_t length), (s, address, length))
MAKE(listen, int, (int s, int backlog), (s, backlog))
MAKE(read, ssize_t, (int f, void *bytes, size_t count), (f, bytes, count))
MAKE(write, ssize_t, (int f, const void *bytes, size_t count), (f, bytes, count))
MAKE(readv, ssize_t, (int f, const struct iovec *pieces, int count), (f, pieces, count))
MAKE(writev, ssize_t, (int f, const struct iovec *pieces, int count), (f, pieces, count))
MAKE(recv, ssize_t, (int s, void *bytes, size_t count, int flags), (s, bytes, count, flags))
MAKE(recvmsg, ssize_t, (int s, struct msghdr *message, int flags), (s, message, flags))
MAKE(send, ssize_t, (int s, const void *bytes, size_t count, int flags), (s, bytes, count, flags))
MAKE(sendmsg, ssize_t, (int s, const struct msghdr *message, int flags), (s, message, flags))
MAKE(epoll_create1, int, (int flags), (flags))

// What leaves a set can be made to fail alone: libev and Rondo have to live with a descriptor that stays in it.
int epoll_ctl(int set, int op, int f, struct epoll_event *event) {
    REAL(epoll_ctl);
    int code = fault(call_epoll_ctl, __builtin_return_address(0));
    if (!code && op == EPOLL_CTL_DEL) code = fault(call_epoll_ctl_del, __builtin_return_address(0));
    if (!code) return real(set, op, f, event);
    errno = code;
    return -1;
}

MAKE(epoll_wait, int, (int set, struct epoll_event *events, int count, int time), (set, events, count, time))
MAKE(eventfd, int, (unsigned count, int flags), (count, flags))
MAKE(timerfd_create, int, (clockid_t clock, int flags), (clock, flags))
MAKE(timerfd_settime, int, (int f, int flags, const struct itimerspec *new, struct itimerspec *old),
     (f, flags, new, old))
MAKE(pipe2, int, (int ends[2], int flags), (ends, flags))
MAKE(socketpair, int, (int family, int type, int protocol, int ends[2]), (family, type, protocol, ends))
MAKE(setsockopt, int, (int s, int level, int option, const void *value, socklen_t length),
     (s, level, option, value, length))
MAKE(getsockopt, int, (int s, int level, int option, void *value, socklen_t *length),
     (s, level, option, value, length))

MAKE(pwritev2, ssize_t, (int f, const struct iovec *pieces, int count, off_t offset, int flags),
     (f, pieces, count, offset, flags))
MAKE(waitid, int, (idtype_t kind, id_t id, siginfo_t *information, int options), (kind, id, information, options))

// By this name a child is born.
int __clone(int (*function)(void *), void *stack, int flags, void *argument, ...);
int __clone(int (*function)(void *), void *stack, int flags, void *argument, ...) {
    va_list list;
    va_start(list, argument);
    void *parent = va_arg(list, void *);
    va_end(list);
    REAL(__clone);
    int code = fault(call___clone, __builtin_return_address(0));
    if (!code) return real(function, stack, flags, argument, parent);
    errno = code;
    return -1;
}

struct pollfd;
int poll(struct pollfd *requests, unsigned long count, int time);
MAKE(poll, int, (struct pollfd * requests, unsigned long count, int time), (requests, count, time))

#define MAKE_OPEN(name, as, parameters, arguments, last)                                                               \
    int name parameters {                                                                                              \
        va_list list;                                                                                                  \
        va_start(list, last);                                                                                          \
        int mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg(list, int) : 0;                                            \
        va_end(list);                                                                                                  \
        REAL(name);                                                                                                    \
        int code = fault(call_##as, __builtin_return_address(0));                                                      \
        if (!code) return real arguments;                                                                              \
        errno = code;                                                                                                  \
        return -1;                                                                                                     \
    }

MAKE_OPEN(open, open, (const char *path, int flags, ...), (path, flags, mode), flags)
MAKE_OPEN(open64, open, (const char *path, int flags, ...), (path, flags, mode), flags)
MAKE_OPEN(openat, openat, (int folder, const char *path, int flags, ...), (folder, path, flags, mode), flags)
MAKE_OPEN(openat64, openat, (int folder, const char *path, int flags, ...), (folder, path, flags, mode), flags)

#define MAKE_FCNTL(name)                                                                                               \
    int name(int f, int command, ...) {                                                                                \
        va_list list;                                                                                                  \
        va_start(list, command);                                                                                       \
        void *argument = va_arg(list, void *);                                                                         \
        va_end(list);                                                                                                  \
        REAL(name);                                                                                                    \
        int code = fault(call_fcntl, __builtin_return_address(0));                                                     \
        if (!code) return real(f, command, argument);                                                                  \
        errno = code;                                                                                                  \
        return -1;                                                                                                     \
    }

MAKE_FCNTL(fcntl)
MAKE_FCNTL(fcntl64)

// On Linux a close that fails has closed: the number may be another file's already.
int close(int f) {
    REAL(close);
    int result = real(f);
    int code = result ? 0 : fault(call_close, __builtin_return_address(0));
    if (!code) return result;
    errno = code;
    return -1;
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*body)(void *), void *argument) {
    REAL(pthread_create);
    int code = fault(call_pthread_create, __builtin_return_address(0));
    return code ? code : real(thread, attributes, body, argument);
}

// By the names that the C library has for its own: dlsym allocates.
#define MAKE_MEMORY(name, parameters, arguments)                                                                       \
    void *__libc_##name parameters;                                                                                    \
    void *name parameters {                                                                                            \
        int code = fault(call_malloc, __builtin_return_address(0));                                                    \
        if (!code) return __libc_##name arguments;                                                                     \
        errno = code;                                                                                                  \
        return 0;                                                                                                      \
    }

MAKE_MEMORY(malloc, (size_t size), (size))
MAKE_MEMORY(calloc, (size_t count, size_t size), (count, size))
MAKE_MEMORY(realloc, (void *old, size_t size), (old, size))

void *dlopen(const char *name, int flags) {
    REAL(dlopen);
    char words[512] = "";
    const char *given = getenv("RONDO_FAULT_LIBRARIES");
    if (given && name) strncpy(words, given, sizeof words - 1);
    char *rest = words, *word;
    while ((word = strsep(&rest, ",")))
        if (*word && !strcmp(word, name)) return 0;
    return real(name, flags);
}
