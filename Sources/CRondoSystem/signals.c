// Signals as something that can be polled for, so that no code must run in a signal handler.
#include "rondo_system.h"

#include <sys/signalfd.h>
#include <unistd.h>

int rondo_signals_make(const sigset_t *set) {
    return signalfd(-1, set, SFD_CLOEXEC | SFD_NONBLOCK);
}

int rondo_signals_next(int signals) {
    struct signalfd_siginfo information;
    return read(signals, &information, sizeof information) == sizeof information ? (int)information.ssi_signo : 0;
}
