// System calls about children, and the write that raises no signal.
#define _GNU_SOURCE
#include "rondo_system.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifndef SYS_pidfd_send_signal
#define SYS_pidfd_send_signal 424
#endif
#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif
#ifndef RWF_NOSIGNAL
#define RWF_NOSIGNAL 0x00000100
#endif

/// P_PIDFD by its number: glibc has the constant only from 2.36 on.
static const idtype_t by_pidfd = (idtype_t)3;

int rondo_spawn_missing(void) {
    int descriptor = (int)syscall(SYS_pidfd_open, getpid(), 0);
    // If the call fails only for lack of descriptors or memory, the kernel has it.
    if (descriptor < 0) return errno == EMFILE || errno == ENFILE || errno == ENOMEM ? 0 : errno;
    // This process is not its own child, so the call fails with ECHILD; a kernel before 5.4 fails with
    // EINVAL.
    siginfo_t information;
    int error = waitid(by_pidfd, (id_t)descriptor, &information, WEXITED | WNOHANG) < 0 ? errno : 0;
    close(descriptor);
    return error == EINVAL || error == ENOSYS ? ENOSYS : 0;
}

int rondo_collect_child(int pidfd, int *kind, int *code) {
    siginfo_t information;
    memset(&information, 0, sizeof information);
    int result;
    do result = waitid(by_pidfd, (id_t)pidfd, &information, WEXITED | WNOHANG);
    while (result < 0 && errno == EINTR);
    if (result < 0) return -1;
    if (information.si_pid == 0) return 0;
    *kind = information.si_code;
    *code = information.si_status;
    return 1;
}

void rondo_wait_for_end(int pidfd) {
    siginfo_t information;
    while (waitid(by_pidfd, (id_t)pidfd, &information, WEXITED | WNOWAIT) < 0 && errno == EINTR) {}
}

int rondo_wait_for_stop(int pidfd, int *kind, int *code) {
    siginfo_t information;
    memset(&information, 0, sizeof information);
    // A child that has ended remains to be collected.
    int result;
    do result = waitid(by_pidfd, (id_t)pidfd, &information, WSTOPPED | WCONTINUED | WEXITED | WNOWAIT);
    while (result < 0 && errno == EINTR);
    if (result < 0) return -1;
    *kind = information.si_code;
    *code = information.si_status;
    if (*kind == CLD_STOPPED || *kind == CLD_CONTINUED || *kind == CLD_TRAPPED) {
        // The child may have been continued or stopped since: what is collected here is what counts.
        memset(&information, 0, sizeof information);
        do result = waitid(by_pidfd, (id_t)pidfd, &information, WSTOPPED | WCONTINUED | WNOHANG);
        while (result < 0 && errno == EINTR);
        if (result == 0 && information.si_pid != 0) {
            *kind = information.si_code;
            *code = information.si_status;
        }
    }
    return 0;
}

int rondo_send_signal(int pidfd, int number) {
    return (int)syscall(SYS_pidfd_send_signal, pidfd, number, NULL, 0);
}

/// Writes with SIGPIPE blocked in this thread. If the signal was not pending before and is afterwards, this
/// write has raised it, and it is removed.
static ssize_t write_blocking_signal(int descriptor, const void *bytes, size_t count) {
    sigset_t signal_only, before, pending;
    sigemptyset(&signal_only);
    sigaddset(&signal_only, SIGPIPE);
    sigpending(&pending);
    int was_pending = sigismember(&pending, SIGPIPE);
    if (!was_pending) pthread_sigmask(SIG_BLOCK, &signal_only, &before);
    ssize_t result = write(descriptor, bytes, count);
    int error = errno;
    if (!was_pending) {
        if (result < 0 && error == EPIPE) {
            const struct timespec none = {0, 0};
            while (sigtimedwait(&signal_only, NULL, &none) < 0 && errno == EINTR) {}
        }
        pthread_sigmask(SIG_SETMASK, &before, NULL);
    }
    errno = error;
    return result;
}

ssize_t rondo_write_quietly(int descriptor, const void *bytes, size_t count) {
    // Kernels from 6.18 on have a flag for this: one call instead of four.
    static atomic_int has_no_flag;
    if (!atomic_load_explicit(&has_no_flag, memory_order_relaxed)) {
        struct iovec piece = {(void *)bytes, count};
        ssize_t result = pwritev2(descriptor, &piece, 1, -1, RWF_NOSIGNAL);
        if (result >= 0 || (errno != EOPNOTSUPP && errno != EINVAL && errno != ENOSYS)) return result;
        atomic_store_explicit(&has_no_flag, 1, memory_order_relaxed);
    }
    return write_blocking_signal(descriptor, bytes, count);
}

int rondo_set_nonblocking(int descriptor) {
    int flags = fcntl(descriptor, F_GETFL);
    return flags < 0 ? -1 : fcntl(descriptor, F_SETFL, flags | O_NONBLOCK);
}

int rondo_pipe(int *ends) { return pipe2(ends, O_CLOEXEC); }

char **rondo_environment(void) { return environ; }

int rondo_set_make(void) { return epoll_create1(EPOLL_CLOEXEC); }

int rondo_set_add(int set, int descriptor, uint64_t number) {
    struct epoll_event event = {.events = EPOLLIN | EPOLLONESHOT, .data.u64 = number};
    if (epoll_ctl(set, EPOLL_CTL_ADD, descriptor, &event) == 0) return 0;
    // If a removal has failed, the descriptor is still in the set, under another number.
    return errno == EEXIST ? epoll_ctl(set, EPOLL_CTL_MOD, descriptor, &event) : -1;
}

void rondo_set_remove(int set, int descriptor) {
    struct epoll_event event = {0};
    epoll_ctl(set, EPOLL_CTL_DEL, descriptor, &event);
}

int rondo_set_ready(int set, uint64_t *numbers, int count) {
    struct epoll_event events[64];
    if (count > 64) count = 64;
    int found = epoll_wait(set, events, count, 0);
    for (int i = 0; i < found; i++) numbers[i] = events[i].data.u64;
    return found < 0 ? 0 : found;
}
