internal import CRondoSystem
import Rondo
import RondoMutex

/// A program that runs in place of this one on the same terminal. It is in the process group of this one, so
/// that it may read from the terminal and gets the signals of its keys.
enum TerminalProgram {
    private struct State {
        /// Nil when no program runs.
        var child: pid_t?
        /// When signals were passed on last.
        var passedOn: [Int32: ContinuousClock.Instant] = [:]

        /// Whether a signal that comes after the program's end is the second of one that was passed on:
        /// `timeout` sends its signal to this process and then to its group, and the program may have ended
        /// in between.
        mutating func isRepetition(_ number: Int32) -> Bool {
            guard let time = passedOn.removeValue(forKey: number) else { return false }
            return ContinuousClock.now - time < TerminalProgram.repetitionLimit
        }
    }

    /// The time within which the same signal comes again if it was sent once to this process and once to its
    /// group.
    private static let repetitionLimit = Duration.seconds(1)

    /// Runs a program to its end.
    ///
    /// Meanwhile this process does nothing at Ctrl-C and Ctrl-\, which the terminal sends to both, and passes
    /// on SIGTERM and SIGHUP, which may be sent to this process alone. Ctrl-Z stops both, as the shell
    /// expects. Once the program has ended these signals are for this process, but for a second one of those
    /// that were just passed on.
    ///
    /// - Parameters:
    ///   - words: The program, which is a path or a name that is searched in the folders of `PATH`, and its
    ///     arguments, which need not be UTF-8. They end with a null pointer. The program has the environment
    ///     of this process.
    ///   - interrupted: Gets the number of a signal for this process, on another thread.
    /// - Returns: The exit status, as a shell reports it.
    static func run(
        _ words: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>,
        interrupted: @escaping @Sendable (Int32) -> Void
    ) throws -> Int32 {
        let state = Mutex(State())
        let handled = [SIGINT, SIGQUIT, SIGTERM, SIGHUP].filter { !Signals.isIgnored($0) }
        let keys = handled.filter { $0 == SIGINT || $0 == SIGQUIT }
        // Before the start, so that no signal comes in between.
        Signals.block(keys)
        Signals.handle([SIGTERM, SIGHUP]) { number in
            state.withLock { state in
                if let child = state.child {
                    // Before the program can end by it.
                    state.passedOn[number] = .now
                    _ = kill(child, number)
                } else if !state.isRepetition(number) {
                    interrupted(number)
                }
            }
        }
        let child = try state.withLock { state in
            let child = try start(words, handling: handled)
            state.child = child
            return child
        }
        // The process is collected below, so that its number cannot belong to another process when it gets a
        // signal.
        var information = siginfo_t()
        while waitid(P_PID, id_t(child), &information, WEXITED | WNOWAIT) != 0, errno == EINTR {}
        state.withLock { $0.child = nil }
        // What the keys have sent so far was meant for the program, and is discarded.
        for key in keys {
            signal(key, SIG_IGN)
            signal(key, SIG_DFL)
        }
        Signals.handle(keys, interrupted)
        var status: Int32 = 0
        while waitpid(child, &status, 0) < 0, errno == EINTR {}
        let signal = status & 0x7f
        return signal == 0 ? status >> 8 & 0xff : ExitStatus.ended(by: signal)
    }

    private static func start(
        _ words: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>, handling signals: [Int32]
    ) throws -> pid_t {
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        // The program must not inherit the signals that this process has begun to ignore or block.
        var (blocked, byDefault) = (sigset_t(), sigset_t())
        sigemptyset(&blocked)
        sigemptyset(&byDefault)
        for number in signals + [SIGPIPE] { sigaddset(&byDefault, number) }
        posix_spawnattr_setsigmask(&attributes, &blocked)
        posix_spawnattr_setsigdefault(&attributes, &byDefault)
        posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF))

        var child: pid_t = 0
        guard let name = words[0] else { throw failure(of: "", error: ENOENT) }
        let error = posix_spawnp(&child, name, nil, &attributes, words, rondo_environment())
        guard error == 0 else { throw failure(of: String(cString: name), error: error) }
        return child
    }

    /// A failure with the status that a shell reports for a program that is not found, or cannot be run.
    private static func failure(of name: String, error: Int32) -> CommandFailure {
        switch error {
        case ENOENT: CommandFailure("\(name): there is no such program", status: 127)
        default: CommandFailure("\(name) cannot be run: \(String(cString: strerror(error)))", status: 126)
        }
    }
}
