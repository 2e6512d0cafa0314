import Rondo
import RondoLab

/// Asks for a password on the terminal of the process, which does not show it.
enum PasswordPrompt {
    /// - Throws: `CommandFailure` if there is no terminal, or no line comes from it.
    static func ask(_ prompt: String) throws(CommandFailure) -> String {
        let terminal = open("/dev/tty", O_RDWR | O_CLOEXEC)
        guard terminal >= 0 else {
            throw .usage("\(prompt) no terminal can be asked (a name with a colon behind it has no password)")
        }
        defer { close(terminal) }
        let typed = answer(prompt, on: terminal)
        Terminal(descriptor: terminal).write("\n")
        if typed.isInterrupted {
            raise(SIGINT)
            throw CommandFailure("interrupted", status: ExitStatus.ended(by: SIGINT))
        }
        guard let line = typed.line else { throw .usage("\(prompt) no line came") }
        return line
    }

    /// The line that is typed; nil if there is none.
    private static func answer(_ prompt: String, on terminal: Int32) -> (line: String?, isInterrupted: Bool) {
        var before = termios()
        tcgetattr(terminal, &before)
        var settings = before
        settings.c_lflag &= ~tcflag_t(ECHO | ISIG)
        // Ctrl-C ends the line, and not the process before the terminal shows again what is typed.
        let interrupt = withUnsafeMutableBytes(of: &settings.c_cc) { keys in
            keys[Int(VEOL)] = keys[Int(VINTR)]
            return keys[Int(VINTR)]
        }
        tcsetattr(terminal, TCSAFLUSH, &settings)
        defer { tcsetattr(terminal, TCSAFLUSH, &before) }
        Terminal(descriptor: terminal).write(prompt)
        // A terminal hands over one line at a time, which has no more bytes than this.
        var buffer = [UInt8](repeating: 0, count: 4096)
        var count = 0
        repeat { count = read(terminal, &buffer, buffer.count) } while count < 0 && errno == EINTR
        guard count > 0 else { return (nil, false) }
        var line = buffer[..<count]
        if interrupt != 0, line.last == interrupt { return (nil, true) }
        if line.last == UInt8(ascii: "\n") { line.removeLast() }
        return (String(decoding: line, as: UTF8.self), false)
    }
}
