// libev 4: the few names that Swift cannot import by itself.
#ifndef RONDO_CEV_SHIM_H
#define RONDO_CEV_SHIM_H

#include <malloc.h>
#include <errno.h>
#include <ev.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <unistd.h>

_Static_assert(EV_VERSION_MAJOR == 4, "Rondo is written for libev 4");
_Static_assert(EV_MULTIPLICITY, "Rondo needs a libev that can run more than one loop");

// Declared only under _GNU_SOURCE, like accept4 below.
#ifndef RWF_NOWAIT
#define RWF_NOWAIT 0x00000008
#endif

#pragma clang assume_nonnull begin

/// The callback of every descriptor watcher. Its arguments are the loop, the watcher and the events.
typedef void (*rondo_ev_io_callback)(struct ev_loop *loop, ev_io *watcher, int events);

/// `ev_io_init` is a macro; the watcher must be stopped.
static inline void rondo_ev_io_init(
    ev_io *watcher, rondo_ev_io_callback callback, int descriptor, int events) {
    ev_io_init(watcher, callback, descriptor, events);
}

/// `EFD_…` and `TFD_…` are anonymous enumerations, which Swift imports without a common integer type.
static inline int rondo_eventfd(void) {
    return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
}

static inline int rondo_timerfd(void) {
    return timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
}

static inline int rondo_epoll(void) {
    return epoll_create1(EPOLL_CLOEXEC);
}

/// Makes an epoll set watch a descriptor for reading and writing, or for neither: then it leaves the set. The
/// tag comes with its events.
static inline int rondo_epoll_set_tagged(
    int set, int descriptor, int reads, int writes, unsigned long long tag) {
    struct epoll_event event = {
        .events = (reads ? EPOLLIN : 0u) | (writes ? EPOLLOUT : 0u), .data = {.u64 = tag}};
    if (!event.events) return epoll_ctl(set, EPOLL_CTL_DEL, descriptor, &event);
    int result = epoll_ctl(set, EPOLL_CTL_MOD, descriptor, &event);
    return result == -1 && errno == ENOENT ? epoll_ctl(set, EPOLL_CTL_ADD, descriptor, &event) : result;
}

static inline int rondo_epoll_set(int set, int descriptor, int reads, int writes) {
    return rondo_epoll_set_tagged(set, descriptor, reads, writes, 0);
}

/// Finds the tags of descriptors of an epoll set that are ready, 16 at most. If there are more, each call
/// finds others.
///
/// Returns their number, or -1 with errno.
static inline int rondo_epoll_ready(int set, unsigned long long *tags) {
    struct epoll_event events[16];
    int count = epoll_wait(set, events, 16, 0);
    for (int index = 0; index < count; index++) tags[index] = events[index].data.u64;
    return count;
}

/// Makes an epoll set report once each time a descriptor is written or read, even if bytes are left to read.
static inline int rondo_epoll_add_edges(int set, int descriptor) {
    struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLET};
    return epoll_ctl(set, EPOLL_CTL_ADD, descriptor, &event);
}

/// Whether a descriptor of an epoll set is ready: 1 or 0, or -1 with errno.
static inline int rondo_epoll_has_events(int set) {
    struct epoll_event event;
    return epoll_wait(set, &event, 1, 0);
}

/// Arms the timer for an absolute monotonic time in nanoseconds; 0 disarms it.
static inline int rondo_timerfd_arm(int descriptor, unsigned long long nanoseconds) {
    struct itimerspec when = {
        .it_value = {.tv_sec = (time_t)(nanoseconds / 1000000000ULL),
                     .tv_nsec = (long)(nanoseconds % 1000000000ULL)}};
    return timerfd_settime(descriptor, TFD_TIMER_ABSTIME, &when, (struct itimerspec *)0);
}

/// A new loop that uses epoll and ignores `LIBEV_FLAGS`; NULL if descriptors have run out. Never libev's
/// default loop, which handles SIGCHLD.
static inline struct ev_loop *_Nullable rondo_ev_loop_new(void) {
    return ev_loop_new(EVBACKEND_EPOLL | EVFLAG_NOENV);
}

/// The callback that libev makes before it replaces its epoll set.
typedef void (*rondo_ev_fork_callback)(struct ev_loop *loop, ev_fork *watcher, int events);

static inline void rondo_ev_fork_init(ev_fork *watcher, rondo_ev_fork_callback callback) {
    ev_fork_init(watcher, callback);
}

static inline void rondo_ignore_idle(struct ev_loop *loop, ev_idle *watcher, int events) {}

/// While this watcher is started, no look at the kernel sleeps.
static inline void rondo_ev_idle_init(ev_idle *watcher) {
    ev_idle_init(watcher, rondo_ignore_idle);
}

static inline void rondo_ignore_embed(struct ev_loop *loop, ev_embed *watcher, int events) {}

/// The number of the loop's epoll set. libev 4.33 has no `ev_backend_fd`; but a watcher that embeds the loop
/// gets the number when it is started, and stopping it at once undoes everything else.
static inline int rondo_ev_epoll_descriptor(struct ev_loop *loop) {
    ev_embed watcher;
    ev_embed_init(&watcher, rondo_ignore_embed, loop);
    ev_embed_start(loop, &watcher);
    int descriptor = watcher.io.fd;
    ev_embed_stop(loop, &watcher);
    return descriptor;
}

/// The kind of file behind a descriptor number, as far as it matters to an epoll set: -1 none (errno has the
/// reason); 0 a file, a socket, a pipe, a terminal; 1 one of the kernel's own kinds, such as an epoll set, an
/// eventfd or a timerfd.
static inline int rondo_descriptor_kind(int descriptor) {
    struct stat status;
    if (fstat(descriptor, &status) == -1) return -1;
    return (status.st_mode & S_IFMT) == 0;
}

/// Removes a descriptor from an epoll set. The call has no reason to fail if the descriptor is in the set; it
/// is repeated all the same, since libev would mistake a descriptor that stays in the set for a registration
/// of its own.
///
/// Returns 0 if the descriptor is no longer in the set, otherwise the errno.
static inline int rondo_epoll_remove(int set, int descriptor) {
    struct epoll_event event = {.events = 0};
    for (int tries = 0;; tries++) {
        if (epoll_ctl(set, EPOLL_CTL_DEL, descriptor, &event) == 0 || errno == ENOENT || errno == EBADF) return 0;
        if (tries == 8) return errno;
    }
}

/// Whether an epoll set would accept a descriptor: 0, or the errno with which it is refused. The descriptor
/// is not in the set afterwards unless it was before, or unless `stays` is set: then it was added and could
/// not be removed.
static inline int rondo_epoll_refusal(int set, int descriptor, int *stays) {
    struct epoll_event event = {.events = 0};
    *stays = 0;
    if (epoll_ctl(set, EPOLL_CTL_ADD, descriptor, &event) == -1) return errno == EEXIST ? 0 : errno;
    int error = rondo_epoll_remove(set, descriptor);
    *stays = error != 0;
    return error;
}

/// Whether `set` may be an epoll set that watches a descriptor: 1; 0 if it is not an epoll set or does not
/// watch the descriptor. (The kernel looks for the descriptor before it needs memory for it, so any other
/// error leaves the answer open.)
static inline int rondo_epoll_watches(int set, int descriptor) {
    struct epoll_event event = {.events = 0};
    if (epoll_ctl(set, EPOLL_CTL_ADD, descriptor, &event) == -1)
        return errno != EBADF && errno != EINVAL && errno != EPERM && errno != ELOOP;
    rondo_epoll_remove(set, descriptor);
    return 0;
}

/// Whether `set` may be an epoll set at all: 1 or 0. The descriptor must be open; if it is in the set, it is
/// removed.
static inline int rondo_epoll_is_open(int set, int descriptor) {
    struct epoll_event event = {.events = 0};
    return epoll_ctl(set, EPOLL_CTL_DEL, descriptor, &event) == 0 || (errno != EBADF && errno != EINVAL);
}

/// `EV_ERROR` does not fit the signed type in which libev's callbacks pass it.
static const int rondo_ev_error = (int)EV_ERROR;

/// Looks at the kernel once: returns at once, or once something has been reported.
static inline void rondo_ev_poll(struct ev_loop *loop, int may_block) {
    ev_run(loop, may_block ? EVRUN_ONCE : EVRUN_NOWAIT);
}

/// Names the calling thread; the kernel keeps 15 bytes. In C because `prctl` takes variable arguments;
/// Foundation's `Thread` loses a name that is set before its `start()` has returned.
static inline void rondo_name_thread(const char *name) {
    prctl(PR_SET_NAME, (unsigned long)name, 0, 0, 0);
}

/// accept4 is declared only under _GNU_SOURCE, and Swift imports glibc without that.
int accept4(int, struct sockaddr *_Nullable, socklen_t *_Nullable, int);

/// Accepts a connection: its descriptor, non-blocking and closed on exec, or -errno.
static inline int rondo_accept(int listener, void *_Nullable address, unsigned int *_Nullable size) {
    int descriptor = accept4(listener, (struct sockaddr *)address, size, SOCK_NONBLOCK | SOCK_CLOEXEC);
    return descriptor < 0 ? -errno : descriptor;
}

/// Reads the bytes that have arrived, whatever the flags of the descriptor, which may be shared with another
/// process. Returns the number of bytes, 0 at the end, or -errno: -EAGAIN if no bytes have arrived. A kind of
/// file that does not support this is polled first; if another reader takes the bytes in between, the call
/// waits for more.
static inline long rondo_read_what_is_there(int descriptor, void *buffer, size_t count) {
    struct iovec vector = {buffer, count};
    long found = syscall(SYS_preadv2, descriptor, &vector, 1, -1L, -1L, RWF_NOWAIT);
    if (found >= 0) return found;
    if (errno != EOPNOTSUPP && errno != ENOSYS && errno != EINVAL && errno != ESPIPE) return -errno;
    struct pollfd request = {descriptor, POLLIN, 0};
    int ready = poll(&request, 1, 0);
    if (ready <= 0) return ready < 0 ? -errno : -EAGAIN;
    found = read(descriptor, buffer, count);
    return found < 0 ? -errno : found;
}

/// The kernel's number of the calling thread, which debuggers and `top` also show.
static inline int rondo_thread_number(void) {
    return (int)syscall(SYS_gettid);
}

/// libdispatch's entry points for a run loop that drains the main queue; exported, but in no header.
int _dispatch_get_main_queue_handle_4CF(void);
void _dispatch_main_queue_callback_4CF(void *_Nullable message);

/// Tells the processor that the thread is spinning on memory.
static inline void rondo_pause(void) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__) || defined(__arm__)
    __asm__ volatile("yield");
#endif
}

/// Makes the processor fetch memory that will soon be read and written into its cache; a hint without other
/// effect.
static inline void rondo_prefetch(const void *memory) {
    __builtin_prefetch(memory, 1);
}

#pragma clang assume_nonnull end

#endif
