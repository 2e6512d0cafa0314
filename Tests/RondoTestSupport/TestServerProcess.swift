internal import RondoCore
internal import RondoMutex

/// Another program, for as long as a test needs it: a server that says on its output where it listens.
///
/// Not Foundation's `Process`, which turns the calling thread's run loop and keeps descriptors of its own.
/// The program runs under `timeout`, so that it ends even if the test process is killed.
package final class TestServerProcess {
    package struct Failure: Error, CustomStringConvertible {
        package let description: String
    }

    /// The longest that a program lives, and that a test waits for a line, in seconds. Only a failure gets
    /// there.
    package static let lifetime = 120, patience = 30

    /// The lines of squid's configuration by which it logs and stores nothing, and ends at once when told to.
    package static let quietSquid = """
        access_log none
        cache_log /dev/null
        cache deny all
        netdb_filename none
        shutdown_lifetime 0 seconds
        coredump_dir /tmp
        """

    private let process: pid_t
    private var input: Int32
    private let output: Int32
    private var unread: [UInt8] = []
    /// All lines that were read so far; what a failing test wants to see.
    package private(set) var lines: [String] = []
    private var ended = false

    /// One program is started at a time, or it would inherit pipes of another that are not yet marked as
    /// close-on-exec, and hold them open.
    private static let starting = Mutex(())

    /// Starts a program found in PATH; its standard error joins its output.
    package convenience init(_ arguments: [String]) throws {
        let started = try Self.starting.withLock { _ in try Self.start(arguments) }
        self.init(started)
    }

    private init(_ started: Started) {
        process = started.process
        input = started.input
        output = started.output
    }

    private struct Started {
        let process: pid_t
        let input: Int32
        let output: Int32
    }

    private static func start(_ arguments: [String]) throws -> Started {
        var toProgram: [Int32] = [-1, -1]
        var fromProgram: [Int32] = [-1, -1]
        guard pipe(&toProgram) == 0, pipe(&fromProgram) == 0 else { throw Failure(description: "no pipe") }
        for end in toProgram + fromProgram { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        defer {
            _ = close(toProgram[0])
            _ = close(fromProgram[1])
        }
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_adddup2(&actions, toProgram[0], 0)
        posix_spawn_file_actions_adddup2(&actions, fromProgram[1], 1)
        posix_spawn_file_actions_adddup2(&actions, fromProgram[1], 2)
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        // A process group of its own: `timeout` and the program under it are ended together. No signal
        // blocked, as most are in Dispatch's threads: `timeout` waits for one. None of the terminal's ignored, as
        // they are where the tests run in the background.
        let flags = POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF
        posix_spawnattr_setflags(&attributes, Int16(flags))
        var (none, byDefault) = (sigset_t(), sigset_t())
        sigemptyset(&none)
        sigemptyset(&byDefault)
        for number in [SIGINT, SIGQUIT, SIGTERM, SIGHUP] { sigaddset(&byDefault, number) }
        posix_spawnattr_setsigmask(&attributes, &none)
        posix_spawnattr_setsigdefault(&attributes, &byDefault)
        let all = ["timeout", "--foreground", String(lifetime)] + arguments
        let words = all.map { strdup($0) } + [nil]
        defer { words.forEach { free($0) } }
        var process = pid_t()
        let code = posix_spawnp(&process, "timeout", &actions, &attributes, words, environ)
        guard code == 0 else {
            _ = close(toProgram[1])
            _ = close(fromProgram[0])
            throw Failure(
                description: "\(arguments[0]) could not be started: \(String(cString: strerror(code)))")
        }
        return Started(process: process, input: toProgram[1], output: fromProgram[0])
    }

    deinit { terminate() }

    /// Ends the program and waits until it is gone.
    package func terminate() {
        closeInput()
        guard !ended else { return }
        ended = true
        kill(-process, SIGKILL)
        var status: Int32 = 0
        while waitpid(process, &status, 0) < 0, errno == EINTR {}
        _ = close(output)
    }

    /// Whether the program has ended by itself; it is looked at and left as it is.
    package var hasEnded: Bool {
        var information = siginfo_t()
        return !ended && waitid(P_PID, id_t(process), &information, WEXITED | WNOHANG | WNOWAIT) == 0
            && information.si_signo == SIGCHLD
    }

    /// Ends the standard input of the program.
    package func closeInput() {
        if input >= 0 { _ = close(input) }
        input = -1
    }

    /// Writes a line to the program's standard input.
    package func tell(_ line: String) {
        let bytes = Array((line + "\n").utf8)
        _ = write(input, bytes, bytes.count)
    }

    /// Waits for a line that begins with `prefix` and answers what follows.
    package func line(after prefix: String) throws -> String {
        while let line = try nextLine() {
            lines.append(line)
            if line.hasPrefix(prefix) { return String(line.dropFirst(prefix.count)) }
        }
        throw Failure(description: "the program ended before it said “\(prefix)”: \(lines)")
    }

    /// Waits for the line that names the port: "ACCEPT 127.0.0.1:4711", "PORT 4711".
    package func port(after prefix: String) throws -> UInt16 {
        let text = try line(after: prefix)
        guard let port = UInt16(text.split(separator: ":").last ?? "") else {
            throw Failure(description: "no port in “\(text)”")
        }
        return port
    }

    /// Runs a program to its end and answers its output; an exit status other than 0 is an error.
    @discardableResult
    package static func run(_ arguments: [String]) throws -> String {
        let program = try TestServerProcess(arguments)
        program.closeInput()
        while let line = try program.nextLine() { program.lines.append(line) }
        let text = program.lines.joined(separator: "\n")
        var status: Int32 = 0
        while waitpid(program.process, &status, 0) < 0, errno == EINTR {}
        program.ended = true
        _ = close(program.output)
        guard status == 0 else { throw Failure(description: "\(arguments.joined(separator: " ")): \(text)") }
        return text
    }

    private func nextLine() throws -> String? {
        while true {
            if let end = unread.firstIndex(of: UInt8(ascii: "\n")) {
                defer { unread.removeFirst(end + 1) }
                return String(decoding: unread[..<end], as: UTF8.self)
            }
            var entry = pollfd(fd: output, events: Int16(POLLIN), revents: 0)
            let ready = poll(&entry, 1, Int32(Self.patience) * 1_000)
            if ready < 0, errno == EINTR { continue }
            guard ready > 0 else { throw Failure(description: "the program is silent: \(lines)") }
            var bytes = [UInt8](repeating: 0, count: 4_096)
            let count = read(output, &bytes, bytes.count)
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { return nil }
            unread += bytes.prefix(count)
        }
    }

}
