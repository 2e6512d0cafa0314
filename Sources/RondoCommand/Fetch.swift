import ArgumentParser
import Rondo
import RondoLab

/// `rondo fetch`: loads through `URLConnection`, with curl's options.
///
/// The grammar of curl's command line is not that of ArgumentParser: `-ofile`, `-C -`, repeated options, and
/// `-o`s that belong to neighbouring URLs. `FetchOption.all` lists the options.
struct Fetch: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Load URLs through URLConnection, on a run loop of its own, by curl's options.",
        discussion: FetchHelp.discussion)

    @Argument(parsing: .captureForPassthrough, help: ArgumentHelp("Options and URLs.", valueName: "argument"))
    var arguments: [String] = []

    func run() throws {
        let status = try Self.run(arguments)
        if status != 0 { throw ExitCode(status) }
    }

    /// - Returns: The exit status.
    /// - Throws: `CommandFailure` if the command line is invalid.
    static func run(_ arguments: [String]) throws -> Int32 {
        var commandLine: FetchCommandLine
        do {
            commandLine = try FetchCommandLine(arguments)
        } catch let failure as CommandFailure where failure.status == ExitStatus.badUsage {
            throw CommandFailure.usage(
                "\(failure.message)\nrondo: try 'rondo fetch --help' for more information")
        } catch let failure as FetchFailure {
            throw CommandFailure(failure.message, status: failure.status.rawValue)
        }
        switch commandLine.question {
        case .help: Terminal.standardOutput.write(FetchHelp.text(width: Terminal.standardOutput.size.columns))
        case .version: Terminal.standardOutput.write(Version.text + "\n")
        case nil:
            let mode = commandLine.common.mode
            if mode.isEmpty { throw CommandFailure.usage("--mode: a mode has a name, and this one is empty") }
            guard RunLoop.Mode(spokenName: mode) != .common else {
                throw CommandFailure.usage(
                    "--mode: a loop runs in one mode at a time; 'common' is a set of modes")
            }
            try commandLine.askForPasswords(PasswordPrompt.ask)
            return try FetchRun(commandLine).run()
        }
        return 0
    }
}
