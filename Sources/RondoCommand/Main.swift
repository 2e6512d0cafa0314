import ArgumentParser
import Rondo
import RondoLab

/// The command `rondo`.
///
/// All of it is synchronous: an asynchronous `main` would run away from the main thread, whose run loop
/// the demo uses.
@main
struct RondoTool: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "rondo",
        abstract: "Loads URLs over a run loop with named modes, and shows what modes are for.",
        // The whole of it takes a look at the system, and is made when it is asked for.
        version: rondoVersion,
        subcommands: [Fetch.self, Serve.self, Demo.self, Lab.self, Trace.self])

    static func main() {
        StandardDescriptors.fill()
        if CommandLine.arguments.dropFirst() == ["--version"] {
            Terminal.standardOutput.write(Version.text + "\n")
            return
        }
        do {
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

    /// What concerns `rondo fetch`, whose command line is curl's and none of ArgumentParser's.
    ///
    /// - Returns: False: it concerns something else.
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

    /// Bad usage is 2 here, as of most commands, where ArgumentParser says 64. Help and version go out as
    /// ever.
    private static func exitForUsage(_ error: any Error) -> Never {
        guard exitCode(for: error) == .validationFailure else { exit(withError: error) }
        Terminal.standardError.write(fullMessage(for: error) + "\n")
        exit(withError: ExitCode(ExitStatus.badUsage))
    }
}
