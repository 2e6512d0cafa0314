// Making a child, from its birth to the start of its program.
//
// The child is made as glibc's posix_spawn makes one: it shares the parent's memory (CLONE_VM), and the
// calling thread waits until the program runs (CLONE_VFORK), so nothing is copied, however large the parent
// is. posix_spawn itself returns the pidfd only from glibc 2.39 on, and cannot tell a missing program from a
// missing working directory. (Asking for a pidfd afterwards, by pidfd_open, fails if no descriptor is left,
// and the child is then already running.)
//
// Between its birth and the start of its program the child may only make system calls. Other threads of the
// parent may hold locks, and everything that the child writes changes the parent's memory. So the child makes
// its system calls by `syscall`: glibc's functions, and those that a sanitizer puts in their place, keep
// records of their own in that memory.
#define _GNU_SOURCE
#include "rondo_system.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef CLONE_PIDFD
#define CLONE_PIDFD 0x00001000
#endif
#ifndef SYS_close_range
#define SYS_close_range 436
#endif

// The records that sanitizers make in each function belong to the waiting thread, so the child's functions
// make none.
#define IN_CHILD __attribute__((disable_sanitizer_instrumentation, no_stack_protector, noinline))

// glibc's `clone` by its other name, which sanitizers do not replace: their replacement starts a new process
// in its records, which here are the parent's.
int __clone(int (*function)(void *), void *stack, int flags, void *argument, ...);

enum {
    signal_count = 64,
    /// For the child's steps; glibc's functions for a system call need a few hundred bytes.
    stack_size = 32 * 1024,
    listing_size = 2048,
};

/// The kernel's own `struct sigaction`, with room to spare; zeros mean the default action.
struct kernel_action {
    void (*handler)(int);
    unsigned long others[7];
};

struct birth {
    const struct rondo_spawn *spawn;
    pid_t parent;
    /// Written by the child.
    enum rondo_spawn_step step;
    int error;
};

IN_CHILD static int reset_signals(uint64_t ignored) {
    for (int number = 1; number <= signal_count; number++) {
        if (number == SIGKILL || number == SIGSTOP) continue;
        struct kernel_action action = {0};
        if (ignored >> (number - 1) & 1) action.handler = SIG_IGN;
        syscall(SYS_rt_sigaction, number, &action, NULL, sizeof(uint64_t));
    }
    return 0;
}

IN_CHILD static int unblock_signals(void) {
    uint64_t none = 0;
    return (int)syscall(SYS_rt_sigprocmask, SIG_SETMASK, &none, NULL, sizeof none);
}

IN_CHILD static int enter_group(enum rondo_spawn_group group) {
    switch (group) {
    case rondo_spawn_group_parents: return 0;
    case rondo_spawn_group_own: return (int)syscall(SYS_setpgid, 0, 0);
    case rondo_spawn_group_session: return (int)syscall(SYS_setsid);
    }
    return 0;
}

IN_CHILD static int follow_parent(const struct birth *birth) {
    if (!birth->spawn->dies_with_thread) return 0;
    if (syscall(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0) return -1;
    // The parent may already have ended.
    if (syscall(SYS_getppid) != birth->parent) {
        errno = ESRCH;
        return -1;
    }
    return 0;
}

/// Replaces close_range, which kernels have from 5.9 on, by closing the descriptors listed in /proc/self/fd.
IN_CHILD static int close_listed(unsigned first, unsigned last) {
    struct entry {
        uint64_t inode;
        int64_t offset;
        unsigned short length;
        unsigned char type;
        char name[];
    };
    long folder = syscall(SYS_openat, AT_FDCWD, "/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0) return -1;
    _Alignas(8) char listing[listing_size];
    long length;
    while ((length = syscall(SYS_getdents64, folder, listing, sizeof listing)) > 0) {
        for (long at = 0; at < length; at += ((struct entry *)(listing + at))->length) {
            const char *name = ((struct entry *)(listing + at))->name;
            unsigned number = 0;
            int is_number = *name != 0;
            for (; *name; name++) {
                if (*name < '0' || *name > '9') is_number = 0;
                number = number * 10 + (unsigned)(*name - '0');
            }
            if (is_number && number >= first && number <= last && number != (unsigned)folder)
                syscall(SYS_close, number);
        }
    }
    syscall(SYS_close, folder);
    return length < 0 ? -1 : 0;
}

IN_CHILD static int close_range_of(unsigned first, unsigned last) {
    if (syscall(SYS_close_range, first, last, 0) == 0) return 0;
    return errno == ENOSYS || errno == EPERM ? close_listed(first, last) : -1;
}

/// Whether the number of a source is a target that is replaced before the source becomes its own target.
IN_CHILD static int is_replaced_early(const struct rondo_spawn *spawn, int index) {
    int source = spawn->sources[index];
    if (source < 0 || source == spawn->targets[index]) return 0;
    for (int i = 0; i < index && spawn->targets[i] <= source; i++) {
        if (spawn->targets[i] == source) return spawn->sources[i] != source;
    }
    return 0;
}

/// Whether `number` is a target, or a source, which may be closed and must then not become another file.
IN_CHILD static int is_named(const struct rondo_spawn *spawn, long number) {
    for (int i = 0; i < spawn->descriptor_count; i++) {
        if (spawn->targets[i] == number || spawn->sources[i] == number) return 1;
    }
    return 0;
}

/// Gives each source whose number will be replaced too early another number that is free: any, since those
/// behind the largest target may be beyond the limit of descriptors.
IN_CHILD static int move_sources(const struct rondo_spawn *spawn) {
    // All free numbers below it are named.
    long next = STDERR_FILENO + 1;
    for (int i = 0; i < spawn->descriptor_count; i++) {
        if (!is_replaced_early(spawn, i)) continue;
        long moved;
        for (;;) {
            moved = syscall(SYS_fcntl, spawn->sources[i], F_DUPFD_CLOEXEC, next);
            if (moved < 0) {
                // The kernel's word for a number at the limit.
                if (errno == EINVAL) errno = EMFILE;
                return -1;
            }
            next = moved + 1;
            if (!is_named(spawn, moved)) break;
            syscall(SYS_close, moved);
        }
        spawn->sources[i] = (int)moved;
    }
    return 0;
}

/// Leaves the child with the descriptors of `spawn` and no others. (The child's table is its own, a copy of
/// the parent's.)
IN_CHILD static int place_descriptors(const struct rondo_spawn *spawn) {
    int count = spawn->descriptor_count;
    if (move_sources(spawn) < 0) return -1;
    for (int i = 0; i < count; i++) {
        int source = spawn->sources[i], target = spawn->targets[i];
        if (source < 0) {
            syscall(SYS_close, target);
        } else if (source != target) {
            if (syscall(SYS_dup3, source, target, 0) < 0) return -1;
        } else if (syscall(SYS_fcntl, target, F_SETFD, 0) < 0) {
            // For example, a parent without a standard input has a child without one.
            if (errno != EBADF || target > STDERR_FILENO) return -1;
        }
    }
    unsigned next = 0;
    for (int i = 0; i < count; i++) {
        unsigned target = (unsigned)spawn->targets[i];
        if (target > next && close_range_of(next, target - 1) < 0) return -1;
        next = target + 1;
    }
    return close_range_of(next, ~0u);
}

/// Executes the first of the files that can be executed. If none can, errno is that of a file that exists, if
/// there is one.
IN_CHILD static void become_program(const struct rondo_spawn *spawn) {
    int found = ENOENT;
    for (const char *const *path = spawn->paths; *path; path++) {
        syscall(SYS_execve, *path, spawn->arguments, spawn->environment);
        switch (errno) {
        case ENOENT:
        case ENOTDIR:
            break;
        case EACCES:
        case ESTALE:
        case ENODEV:
        case ETIMEDOUT:
            found = errno;
            break;
        default: return;
        }
    }
    errno = found;
}

IN_CHILD static int begin_child(void *argument) {
    struct birth *birth = argument;
    const struct rondo_spawn *spawn = birth->spawn;
    reset_signals(spawn->ignored_signals);
    birth->step = rondo_spawn_step_group;
    if (enter_group(spawn->group) < 0) goto failed;
    birth->step = rondo_spawn_step_parent;
    if (follow_parent(birth) < 0) goto failed;
    birth->step = rondo_spawn_step_directory;
    if (spawn->directory && syscall(SYS_chdir, spawn->directory) < 0) goto failed;
    birth->step = rondo_spawn_step_descriptors;
    if (place_descriptors(spawn) < 0) goto failed;
    if (unblock_signals() < 0) goto failed;
    birth->step = rondo_spawn_step_program;
    become_program(spawn);
failed:
    birth->error = errno;
    // The child must not return: its stack belongs to the parent.
    for (;;) syscall(SYS_exit_group, 127);
}

IN_CHILD pid_t rondo_spawn(const struct rondo_spawn *spawn, int *pidfd, enum rondo_spawn_step *step) {
    struct birth birth = {.spawn = spawn, .parent = getpid(), .step = rondo_spawn_step_birth, .error = 0};
    _Alignas(64) char stack[stack_size];
    // All signals are blocked, because a handler of the parent's that ran in the child would change the
    // parent's memory. By system call: glibc's function does not block two signals that glibc uses itself.
    uint64_t all = ~(uint64_t)0, before = 0;
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, &before, sizeof all);
    int descriptor = -1;
    pid_t pid = __clone(
        begin_child, stack + sizeof stack, CLONE_VM | CLONE_VFORK | CLONE_PIDFD | SIGCHLD, &birth, &descriptor);
    int error = errno;
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &before, NULL, sizeof before);
    if (pid > 0 && birth.error == 0) {
        *pidfd = descriptor;
        return pid;
    }
    *step = birth.step;
    if (pid > 0) {
        // The child has ended, or is about to.
        siginfo_t information;
        while (waitid((idtype_t)3 /* P_PIDFD */, (id_t)descriptor, &information, WEXITED) < 0 && errno == EINTR) {}
        close(descriptor);
        error = birth.error;
    }
    errno = error;
    return -1;
}
