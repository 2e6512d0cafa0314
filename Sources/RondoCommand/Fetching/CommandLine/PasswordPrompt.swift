internal import CRondoSystem
import Rondo
import RondoLab

/// Asks for a password on the terminal of the process, which does not show it.
enum PasswordPrompt {
    private enum Answer {
        case line(String)
        /// No line came.
        case none
        case signal(Int32)
    }

    /// What ends or stops a program at a terminal.
    private static let signals = [SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP]

    /// - Throws: `CommandFailure` if there is no terminal, or no line comes from it.
    static func ask(_ prompt: String) throws(CommandFailure) -> String {
        let terminal = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NONBLOCK)
        guard terminal >= 0 else {
            throw .usage("\(prompt) there is no terminal to ask on (NAME: has no password)")
        }
        defer { close(terminal) }
        while true {
            let answer = Self.answer(prompt, on: terminal)
            Terminal(descriptor: terminal).write("\n")
            switch answer {
            case .line(let line): return line
            case .none: throw .usage("\(prompt) no line came")
            case .signal(let number):
                raise(number)
                // A process that was stopped goes on here, and asks again.
                if number != SIGTSTP {
                    throw CommandFailure("interrupted", status: ExitStatus.ended(by: number))
                }
            }
        }
    }

    /// The line that is typed, or a signal that came before. Afterwards the terminal is as it was.
    private static func answer(_ prompt: String, on terminal: Int32) -> Answer {
        var mask = sigset_t()
        pthread_sigmask(SIG_BLOCK, nil, &mask)
        var awaited = sigset_t()
        sigemptyset(&awaited)
        // One that is blocked does not end or stop the process, wherever it comes.
        for number in signals where sigismember(&mask, number) == 0 && !Signals.isIgnored(number) {
            sigaddset(&awaited, number)
        }
        let pending = rondo_signals_make(&awaited)
        guard pending >= 0 else { return .none }
        defer { close(pending) }
        // A signal must not end or stop the process before the terminal shows again what is typed.
        pthread_sigmask(SIG_BLOCK, &awaited, nil)
        defer { pthread_sigmask(SIG_SETMASK, &mask, nil) }

        var before = termios()
        tcgetattr(terminal, &before)
        var settings = before
        settings.c_lflag &= ~tcflag_t(ECHO)
        settings.c_lflag |= tcflag_t(ICANON)
        settings.c_iflag |= tcflag_t(ICRNL)
        tcsetattr(terminal, TCSAFLUSH, &settings)
        defer { tcsetattr(terminal, TCSAFLUSH, &before) }
        Terminal(descriptor: terminal).write(prompt)

        // A terminal hands over one line at a time, which has no more bytes than this.
        var buffer = [UInt8](repeating: 0, count: 4096)
        var count = 0
        repeat {
            var entries = [terminal, pending].map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
            poll(&entries, nfds_t(entries.count), -1)
            let number = rondo_signals_next(pending)
            if number > 0 { return .signal(number) }
            // EAGAIN: a key of a signal has taken back the line that poll found.
            count = read(terminal, &buffer, buffer.count)
        } while count < 0 && (errno == EAGAIN || errno == EINTR)
        guard count > 0 else { return .none }
        var line = buffer[..<count]
        if line.last == UInt8(ascii: "\n") { line.removeLast() }
        return .line(String(decoding: line, as: UTF8.self))
    }
}
