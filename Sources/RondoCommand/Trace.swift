import ArgumentParser
import Rondo
import RondoLab
import RondoTrace

/// `rondo trace`: records the run loops of any program that uses Rondo.
struct Trace: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "trace",
        abstract: "Record what the run loops of a program do.",
        discussion: """
            Runs PROGRAM with RONDO_TRACE set, which has any program that uses Rondo record itself, and writes what came \
            of it: without --html and --json a timeline, on standard error, since standard output is PROGRAM's. Ends as \
            PROGRAM does. `rondo trace --from FILE` reads such a file, and prints the timeline on standard output; to make \
            one without this command, start the program with RONDO_TRACE=FILE.
            """)

    /// The most members that are named where no loop was run.
    private static let maximumNamed = 8
    /// The most characters of a label there.
    private static let maximumLabel = 40

    @Option(help: ArgumentHelp("Write a page with the timeline; opens in any browser.", valueName: "file"))
    var html: String?

    @Option(
        help: ArgumentHelp(
            "Write Chrome trace events, which Perfetto and speedscope open.", valueName: "file"))
    var json: String?

    @Option(help: ArgumentHelp("Read a recording that was made before, and run nothing.", valueName: "file"))
    var from: String?

    @Argument(parsing: .postTerminator, help: "After --: the program and its arguments.")
    var program: [String] = []

    func validate() throws {
        guard (from == nil) != program.isEmpty else {
            throw ValidationError("Give a program after --, or a recording with --from, and not both.")
        }
    }

    func run() throws {
        try OutputFile.check(html, json)
        if let from {
            return try show(
                read(from), called: from, title: "What \(name(of: from)) recorded", on: .standardOutput)
        }
        let folder = try Self.makeFolder()
        var isKept = false
        // If this fails, the folder remains where temporary files are removed anyway.
        defer { if !isKept { try? FileManager.default.removeItem(atPath: folder) } }
        let file = folder + "/recording"
        setenv("RONDO_TRACE", file, 1)
        let status = try TerminalProgram.run(
            // The last words of the command line, as they were given.
            CommandLine.unsafeArgv + (Int(CommandLine.argc) - program.count),
            interrupted: { Self.end(by: $0, keeping: file, in: folder) })
        // From here on a closed reader must not end this process, which has the recording and the status.
        Signals.ignoreBrokenPipes()
        let failed = status == 0 ? ExitStatus.failed : status
        guard Self.hasRecorded(into: file) else {
            throw CommandFailure(
                "\(program[0]): nothing was recorded: perhaps it does not use Rondo, asked for no loop, or ran without RONDO_TRACE",
                status: failed)
        }
        do {
            try show(
                read(file), called: "the recording of \(program[0])",
                title: "What the run loops of \(name(of: program[0])) did", on: .standardError)
        } catch let failure as CommandFailure {
            // The program need not run again.
            isKept = true
            throw CommandFailure(
                "\(failure.message)\nrondo: \(Self.keptWords(file))", status: failed)
        }
        if status != 0 { throw ExitCode(status) }
    }

    /// Ends this process at once, because it may be writing to a pipe that nothing reads. A recording is
    /// kept.
    private static func end(by signal: Int32, keeping file: String, in folder: String) -> Never {
        var output = pollfd(fd: STDERR_FILENO, events: Int16(POLLOUT), revents: 0)
        if !hasRecorded(into: file) {
            _ = rmdir(folder)
        } else if poll(&output, 1, 0) > 0 {
            Terminal.standardError.write("rondo: \(keptWords(file))\n")
        }
        _exit(ExitStatus.ended(by: signal))
    }

    /// Whether there is the file or, where the program was killed while it was renamed, the earlier one.
    private static func hasRecorded(into file: String) -> Bool {
        [file, file + ".1"].contains { FileManager.default.fileExists(atPath: $0) }
    }

    private static func keptWords(_ file: String) -> String {
        "the recording is kept; read it by rondo trace --from \(file)"
    }

    /// Makes a folder for the recording that other users cannot write to.
    private static func makeFolder() throws -> String {
        var template = Array(
            (NSTemporaryDirectory() as NSString).appendingPathComponent("rondo-trace-XXXXXX").utf8CString)
        guard mkdtemp(&template) != nil else {
            throw CommandFailure(
                "cannot make a folder for the recording: \(String(cString: strerror(errno)))")
        }
        return String(decoding: template.dropLast().map(UInt8.init(bitPattern:)), as: UTF8.self)
    }

    private func name(of path: String) -> String { (path as NSString).lastPathComponent }

    private func read(_ file: String) throws -> Recording {
        // Most recordings fit into one file. The other one is beside the file itself, and not beside a
        // symbolic link.
        let path = URL(fileURLWithPath: file).resolvingSymlinksInPath().path + ".1"
        let isContinuing = FileManager.default.fileExists(atPath: path)
        var bytes: [UInt8] = []
        do throws(Unreadable) {
            // A program that was killed while it renamed the file has left the earlier one alone.
            if !isContinuing || FileManager.default.fileExists(atPath: file) {
                bytes = try contents(of: file)
            }
        } catch {
            throw CommandFailure("cannot read \(file): \(error.reason)")
        }
        var earlier: [UInt8]?
        if isContinuing {
            do throws(Unreadable) {
                earlier = try contents(of: path)
            } catch {
                Terminal.standardError.write(
                    "rondo: cannot read \(path), which may have the beginning: \(error.reason)\n")
            }
        }
        if bytes.isEmpty, earlier != nil {
            Terminal.standardError.write("rondo: there is nothing in \(file): \(path) is read\n")
        }
        do throws(TraceFileError) {
            return try Recording(file: bytes, continuing: earlier)
        } catch {
            throw CommandFailure("\(file): \(error)")
        }
    }

    /// Why a file cannot be read.
    private struct Unreadable: Error {
        let reason: String
    }

    /// The bytes of a regular file: Foundation reads no other one, and calls that a lack of permission.
    private func contents(of path: String) throws(Unreadable) -> [UInt8] {
        var status = stat()
        guard stat(path, &status) == 0, access(path, R_OK) == 0 else {
            throw Unreadable(reason: String(cString: strerror(errno)))
        }
        guard status.st_mode & S_IFMT == S_IFREG else { throw Unreadable(reason: "it is not a regular file") }
        do {
            return Array(try Data(contentsOf: URL(fileURLWithPath: path)))
        } catch {
            throw Unreadable(reason: error.localizedDescription)
        }
    }

    /// - Parameter name: The words for the recording in messages.
    private func show(
        _ recording: Recording, called name: String, title: String, on terminal: Terminal
    ) throws {
        if !recording.isComplete {
            Terminal.standardError.write(
                "rondo: \(name) breaks off: its program was killed, still runs, or could not write on\n")
        }
        if let html { try OutputFile.write(TracePage.html(recording, title: title), to: html) }
        if let json { try OutputFile.write(recording.chromeTrace, to: json) }
        if html == nil && json == nil {
            let width = terminal.isTerminal ? terminal.size.columns : 100
            let lines = TextTimeline(recording, terminal: terminal, width: width).lines
            let text = lines.map { $0 + "\n" }.joined()
            // That nothing can be written to standard error could not be said.
            if terminal.descriptor == STDERR_FILENO {
                terminal.write(text)
            } else {
                try OutputFile.write(text, to: "-")
            }
        }
        if !recording.hasRun {
            Terminal.standardError.write("rondo: \(Self.words(withoutRun: recording))\n")
        }
    }

    /// Why there is nothing to see. A run in a mode that is empty begins no pass, and is not recorded.
    private static func words(withoutRun recording: Recording) -> String {
        var scheduled: [String] = []
        var known: Set<String> = []
        for record in recording.records where record.loop != 0 && record.mode != 0 {
            guard record.kind == .add || record.kind == .perform || record.kind == .enqueue else { continue }
            let label = recording.name(record)
            let short = label.count > maximumLabel ? label.prefix(maximumLabel) + "…" : label[...]
            let member =
                record.kind == .perform
                ? "a block" : label.isEmpty ? "a member without a label" : "“\(short)”"
            let words = "\(member) in \(recording.modeName(record)) of \(recording.loopName(record.loop))"
            if known.insert(words).inserted { scheduled.append(words) }
        }
        guard !scheduled.isEmpty else { return "no run loop has begun a pass, and nothing was added to one" }
        let more = scheduled.count - maximumNamed
        let end = more > 0 ? ["and \(more) more"] : []
        let list = (Array(scheduled.prefix(maximumNamed)) + end).joined(separator: ", ")
        let words = "no run loop has begun a pass, so that nothing was called of what was added: \(list)"
        return TerminalText.harmless(words, keeping: [])
            + "; have the thread run its loop in such a mode, as by RunLoop.current.run() in default"
    }
}
