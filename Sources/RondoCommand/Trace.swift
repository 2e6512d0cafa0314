import ArgumentParser
import Rondo
import RondoLab
import RondoTrace

/// `rondo trace`: what the run loops of any program that uses Rondo do.
struct Trace: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Record what the run loops of a program do.",
        discussion: """
            Runs PROGRAM with RONDO_TRACE set, which has any program that uses Rondo record itself, and writes what came \
            of it. `rondo trace --from FILE` reads such a file; to make one without this command, start the program with \
            RONDO_TRACE=FILE. Ends as PROGRAM does.
            """)

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
        if let from { return try show(read(from), title: "What \(name(of: from)) recorded") }
        let file = NSTemporaryDirectory() + "/rondo-trace-\(ProcessInfo.processInfo.processIdentifier)"
        defer { unlink(file) }
        let status = try runProgram(recordingInto: file)
        guard FileManager.default.fileExists(atPath: file) else {
            throw CommandFailure(
                "\(program[0]) has recorded nothing: it does not use Rondo, as far as can be seen")
        }
        try show(read(file), title: "What the run loops of \(name(of: program[0])) did")
        if status != 0 { throw ExitCode(status) }
    }

    private func name(of path: String) -> String { (path as NSString).lastPathComponent }

    /// - Returns: Its exit status, as a shell has it.
    private func runProgram(recordingInto file: String) throws -> Int32 {
        let process = Process()
        guard let path = Self.path(of: program[0]) else {
            throw CommandFailure("\(program[0]): not found, or not to be run")
        }
        process.executableURL = URL(fileURLWithPath: path)
        process.arguments = Array(program.dropFirst())
        process.environment = ProcessInfo.processInfo.environment.merging(["RONDO_TRACE": file]) { $1 }
        do {
            try process.run()
        } catch {
            throw CommandFailure("cannot start \(path): \(error.localizedDescription)")
        }
        // An interruption is for the program, which has its own mind about it; this waits for what it has recorded.
        signal(SIGINT, SIG_IGN)
        process.waitUntilExit()
        return process.terminationReason == .uncaughtSignal
            ? ExitStatus.ended(by: process.terminationStatus) : process.terminationStatus
    }

    /// Where a shell would find it.
    private static func path(of name: String) -> String? {
        let manager = FileManager.default
        if name.contains("/") { return manager.isExecutableFile(atPath: name) ? name : nil }
        let folders = ProcessInfo.processInfo.environment["PATH", default: ""].split(separator: ":")
        return folders.map { "\($0)/\(name)" }.first { manager.isExecutableFile(atPath: $0) }
    }

    private func read(_ file: String) throws -> Recording {
        let bytes: [UInt8]
        do {
            bytes = Array(try Data(contentsOf: URL(fileURLWithPath: file)))
        } catch {
            throw CommandFailure("cannot read \(file): \(error.localizedDescription)")
        }
        do throws(TraceFileError) {
            return try Recording(file: bytes)
        } catch {
            throw CommandFailure("\(file): \(error)")
        }
    }

    private func show(_ recording: Recording, title: String) throws {
        if let html { try OutputFile.write(TracePage.html(recording, title: title), to: html) }
        if let json { try OutputFile.write(recording.chromeTrace, to: json) }
        if html == nil && json == nil {
            let terminal = Terminal.standardError
            let width = terminal.isTerminal ? terminal.size.columns : 100
            let lines = TextTimeline(recording, terminal: terminal, width: width).lines
            terminal.write(lines.map { $0 + "\n" }.joined())
        }
    }
}
