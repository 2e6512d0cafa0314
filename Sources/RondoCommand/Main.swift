import ArgumentParser
import Rondo
import RondoLab

/// The command `rondo`.
///
/// It is synchronous: an asynchronous `main` would leave the main thread, whose run loop the demo uses.
@main
struct RondoTool: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "rondo",
        abstract: "Loads URLs over a run loop with named modes, and shows what modes are for.",
        // The full version text examines the system, so it is made only on request.
        version: rondoVersion,
        subcommands: [Fetch.self, Serve.self, Demo.self, Lab.self, Trace.self])

    static func main() {
        StandardDescriptors.fill()
        if CommandLine.arguments.dropFirst() == ["--version"] {
            Terminal.standardOutput.write(Version.text + "\n")
            return
        }
        do {
            try checkArguments()
            if try answerForFetch(Array(CommandLine.arguments.dropFirst())) { return }
            var command = try parseAsRoot()
            try command.run()
        } catch let failure as CommandFailure {
            Terminal.standardError.write("rondo: \(failure.message)\n")
            exit(withError: ExitCode(failure.status))
        } catch {
            exitForUsage(error)
        }
    }

    /// Refuses arguments that are not UTF-8: as strings they are other ones than were given. Those of a
    /// traced program are passed on as they are.
    private static func checkArguments() throws {
        for (place, word) in CommandLine.arguments.enumerated().dropFirst() {
            if word == "--", CommandLine.arguments[1] == "trace" { return }
            guard let bytes = CommandLine.unsafeArgv[place], String(validatingCString: bytes) == nil else {
                continue
            }
            // The argument itself may be a password.
            throw CommandFailure.usage("argument \(place) is not UTF-8, as it has to be")
        }
    }

    /// Handles `rondo fetch`, whose command line is curl's and not ArgumentParser's.
    ///
    /// - Returns: False if the arguments are for something else.
    private static func answerForFetch(_ words: [String]) throws -> Bool {
        switch words.first {
        case "fetch":
            let status = try Fetch.run(Array(words.dropFirst()))
            if status != 0 { exit(withError: ExitCode(status)) }
        case "help" where words.dropFirst().first == "fetch": _ = try Fetch.run(["--help"])
        case "--experimental-dump-help":
            Terminal.standardOutput.write(FetchCompletions.describing(_dumpHelp()) + "\n")
        case "--generate-completion-script":
            guard words.count == 2, let shell = CompletionShell(rawValue: words[1]) else { return false }
            Terminal.standardOutput.write(
                FetchCompletions.adding(to: completionScript(for: shell), shell: words[1]))
        default: return false
        }
        return true
    }

    /// Exits with 2 for an invalid command line, as most commands do; ArgumentParser's status is 64. Help and
    /// version exit as usual.
    private static func exitForUsage(_ error: any Error) -> Never {
        guard exitCode(for: error) == .validationFailure else { exit(withError: error) }
        Terminal.standardError.write(fullMessage(for: error) + "\n")
        exit(withError: ExitCode(ExitStatus.badUsage))
    }
}
