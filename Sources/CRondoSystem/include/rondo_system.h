// The parts of child processes that Swift cannot do itself: the steps between the birth of a child and the
// start of its program, and system calls that have no function in glibc 2.36, or in Swift's module of it, or
// whose results are macros. Also a number for each thread.
#ifndef RONDO_SYSTEM_H
#define RONDO_SYSTEM_H

#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#pragma clang assume_nonnull begin

/// The steps of a child before its program starts.
enum rondo_spawn_step {
    rondo_spawn_step_birth,
    rondo_spawn_step_group,
    rondo_spawn_step_parent,
    rondo_spawn_step_directory,
    rondo_spawn_step_descriptors,
    rondo_spawn_step_program,
};

enum rondo_spawn_group {
    rondo_spawn_group_parents,
    rondo_spawn_group_own,
    rondo_spawn_group_session,
};

/// The description of a child to be made.
struct rondo_spawn {
    /// The files that may contain the program, in the order in which they are tried; ends with NULL.
    const char *_Nullable const *_Nonnull paths;
    char *_Nullable const *_Nonnull arguments;
    char *_Nullable const *_Nonnull environment;
    /// NULL: the parent's directory.
    const char *_Nullable directory;
    /// The descriptor numbers in the child, in ascending order: 0 to 2 and others.
    const int *targets;
    /// For each of them, the parent's descriptor that becomes it; -1: the child has no descriptor of that
    /// number. Changed by the call.
    int *sources;
    int descriptor_count;
    enum rondo_spawn_group group;
    /// Whether the kernel kills the child when the calling thread ends.
    int dies_with_thread;
    /// The signals that the child ignores: bit n - 1 stands for signal n.
    uint64_t ignored_signals;
};

/// Makes a child, and returns when its program runs, or with the reason why it does not.
///
/// In the child no signal is blocked, and each has its default action, except the ignored ones.
///
/// - Returns: The process's number, and in `pidfd` its descriptor, which is close-on-exec; or -1, with errno
///   and `step` set, and then no child is left.
pid_t rondo_spawn(const struct rondo_spawn *spawn, int *pidfd, enum rondo_spawn_step *step);

/// Whether the kernel has the system calls that children need: 0, or the errno of a missing call.
int rondo_spawn_missing(void);

/// Collects the child behind `pidfd` if it has ended.
///
/// - Parameters:
///   - code: Set to the exit code, or to the number of the signal that ended the child.
///   - kind: Set to `CLD_EXITED`, `CLD_KILLED` or `CLD_DUMPED`.
/// - Returns: 1 if the child was collected, 0 if it still runs, -1 with errno set.
int rondo_collect_child(int pidfd, int *kind, int *code);

/// Waits until the child behind `pidfd` has ended, and does not collect it. If the wait is not possible, it
/// returns at once; the child can then not be collected either.
void rondo_wait_for_end(int pidfd);

/// Waits until the child behind `pidfd` is stopped, is continued or has ended, and consumes the report of a
/// stop or continuation. A child that has ended is not collected.
///
/// - Parameter kind: Set to `CLD_STOPPED`, `CLD_CONTINUED`, or one of the values for an end.
/// - Returns: 0, or -1 with errno set.
int rondo_wait_for_stop(int pidfd, int *kind, int *code);

/// Sends a signal to the process behind `pidfd`, and to no other.
int rondo_send_signal(int pidfd, int number);

/// Does the same as `write` without raising SIGPIPE, and without removing a SIGPIPE that was pending.
ssize_t rondo_write_quietly(int descriptor, const void *bytes, size_t count);

/// A number of the calling thread, which no other thread of the process has or will have: `pthread_self()`
/// returns that of a thread that has ended, as a rule.
uint64_t rondo_thread_serial(void);

/// Sets O_NONBLOCK. The flag belongs to the open file, so the caller's descriptor must be the only one for
/// it.
int rondo_set_nonblocking(int descriptor);

/// A pipe, both ends close-on-exec.
int rondo_pipe(int *ends);

/// Makes an epoll set that reports each descriptor once.
int rondo_set_make(void);

/// Adds a descriptor under a number that the caller chooses, or changes the number of one already in the set;
/// it will be reported once from now on. Returns -1 with errno set if the kernel refuses.
int rondo_set_add(int set, int descriptor, uint64_t number);

/// Removes a descriptor. If that fails, it may be reported once more, under its old number.
void rondo_set_remove(int set, int descriptor);

/// Stores the numbers of at most `count` ready descriptors, without waiting. Returns how many.
int rondo_set_ready(int set, uint64_t *numbers, int count);

/// A descriptor that is readable while a signal of `set` is pending, close-on-exec; -1 with errno set if
/// there is none. The signals must be blocked.
int rondo_signals_make(const sigset_t *set);

/// Takes a pending signal, and returns its number; 0 if there is none.
int rondo_signals_next(int signals);

/// `environ`: the present strings "NAME=value", valid until the program changes them.
char *_Nullable *_Nullable rondo_environment(void);

#pragma clang assume_nonnull end

#endif
