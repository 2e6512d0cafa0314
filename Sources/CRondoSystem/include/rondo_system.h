// What Swift cannot do itself for child processes: the steps between the birth of a child and its program, and system calls
// that have no function in glibc 2.36, or whose results are macros.
#ifndef RONDO_SYSTEM_H
#define RONDO_SYSTEM_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#pragma clang assume_nonnull begin

/// The step of a child on its way to its program.
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

/// A child to be made.
struct rondo_spawn {
    /// The files that may hold the program, in the order in which they are tried; ends with NULL.
    const char *_Nullable const *_Nonnull paths;
    char *_Nullable const *_Nonnull arguments;
    char *_Nullable const *_Nonnull environment;
    /// NULL: the parent's.
    const char *_Nullable directory;
    /// The descriptors of the child, in ascending order of their numbers there: 0 to 2 and others.
    const int *targets;
    /// The descriptor of the parent that becomes each of them; -1: the child has none of that number. Changed by the call.
    int *sources;
    int descriptor_count;
    enum rondo_spawn_group group;
    /// The kernel kills the child when the calling thread ends.
    int dies_with_thread;
    /// The signals that the child ignores: bit n - 1 stands for signal n.
    uint64_t ignored_signals;
};

/// Makes a child and returns when its program runs, or with the reason why it does not.
///
/// In the child no signal is blocked, and each has its default action, except those that are to be ignored.
///
/// - Returns: The process's number, and in `pidfd` its descriptor, which is close-on-exec; or -1, with errno and `step` set,
///   when no child is left.
pid_t rondo_spawn(const struct rondo_spawn *spawn, int *pidfd, enum rondo_spawn_step *step);

/// Whether the kernel has what children need: 0, or the errno of the call that is missing.
int rondo_spawn_missing(void);

/// Collects the child behind `pidfd` if it has ended.
///
/// - Parameters:
///   - code: Set to the exit code, or to the number of the signal that has ended it.
///   - kind: Set to `CLD_EXITED`, `CLD_KILLED` or `CLD_DUMPED`.
/// - Returns: 1 if it was collected, 0 if it runs, -1 with errno set.
int rondo_collect_child(int pidfd, int *kind, int *code);

/// Waits until the child behind `pidfd` has ended, and does not collect it. Returns at once where that cannot be known: then
/// it cannot be collected either.
void rondo_wait_for_end(int pidfd);

/// Waits until the child behind `pidfd` is stopped, continued or has ended, and takes note of the first two. It is not
/// collected.
///
/// - Parameter kind: Set to `CLD_STOPPED`, `CLD_CONTINUED`, or one of the ends.
/// - Returns: 0, or -1 with errno set.
int rondo_wait_for_stop(int pidfd, int *kind, int *code);

/// Sends a signal to the process behind `pidfd`, and to no other.
int rondo_send_signal(int pidfd, int number);

/// `write`, which raises no SIGPIPE, and takes none away that was pending.
ssize_t rondo_write_quietly(int descriptor, const void *bytes, size_t count);

/// Sets O_NONBLOCK, which belongs to the open file, of which the caller must have the only descriptor.
int rondo_set_nonblocking(int descriptor);

/// A pipe, both ends close-on-exec.
int rondo_pipe(int *ends);

/// An epoll set that reports each descriptor once.
int rondo_set_make(void);

/// Adds a descriptor under a number of the caller's, or gives one that is in the set the new number; it will be reported
/// once from now on. -1 with errno set where the kernel refuses it.
int rondo_set_add(int set, int descriptor, uint64_t number);

/// Removes a descriptor. Where that fails it may be reported once more, under its old number.
void rondo_set_remove(int set, int descriptor);

/// The numbers of at most `count` descriptors that are ready. It does not wait. Returns how many.
int rondo_set_ready(int set, uint64_t *numbers, int count);

/// `environ`: the strings "NAME=value" as they are now, until the program changes them.
char *_Nullable *_Nullable rondo_environment(void);

#pragma clang assume_nonnull end

#endif
