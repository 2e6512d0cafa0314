import ArgumentParser
import Rondo
import RondoLab
import RondoTrace

/// `rondo lab`: experiments with run loops.
struct Lab: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "lab",
        abstract: "Watch run loops at work: experiments with a question, a run, and a verdict.",
        discussion: """
            Each experiment runs on this machine, with a server of its own on 127.0.0.1, and is recorded. Its verdict is \
            computed from the recorded events.
            """,
        subcommands: [List.self, Run.self, Report.self, Serve.self, Cost.self])

    struct List: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "list", abstract: "List the experiments.")

        func run() {
            let terminal = Terminal.standardOutput
            let width = Experiment.all.map(\.name.count).max() ?? 0
            for experiment in Experiment.all {
                terminal.write(
                    "\(terminal.tinted(experiment.name.padded(width), .accent))  \(experiment.title)\n")
            }
            // Only for people: programs that read the list expect lines of one kind.
            if terminal.isTerminal {
                terminal.write(
                    "\nNew to run loops? Begin with: rondo lab run \(Experiment.all[0].name) --quiz\n")
            }
        }
    }

    struct Run: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "run",
            abstract: "Run one experiment.",
            discussion: "Ends with 0 if the behaviour is as documented, else with 1.")

        @Argument(
            help: "Its name, as `rondo lab list` prints it.",
            completion: .list(Experiment.all.map(\.name)))
        var name: String

        @Flag(
            inversion: .prefixedNo,
            help: "Ask for a prediction first; on a terminal that is the default, and may be skipped.")
        var quiz: Bool?

        @Flag(help: "Show the code that ran.")
        var code = false

        @Option(
            help: ArgumentHelp("Write a page with the timeline; opens in any browser.", valueName: "file"))
        var html: String?

        @Option(
            help: ArgumentHelp(
                "Write Chrome trace events, which Perfetto and speedscope open.", valueName: "file"))
        var json: String?

        @Option(help: ArgumentHelp("Save the recording, for `rondo trace --from`.", valueName: "file"))
        var save: String?

        func validate() throws {
            guard Experiment.named(name) == nil else { return }
            throw ValidationError(
                "There is no experiment \(name). There are: \(Experiment.all.map(\.name).joined(separator: ", "))."
            )
        }

        func run() throws {
            guard let experiment = Experiment.named(name) else { return }
            try OutputFile.check(html, json, save)
            // Standard output is for the result alone, where one goes there.
            let terminal: Terminal = [html, json, save].contains("-") ? .standardError : .standardOutput
            let view = ExperimentView(terminal: terminal)
            view.begin(experiment)
            var prediction: Int?
            let isAtTerminal = terminal.isTerminal && isatty(STDIN_FILENO) == 1
            if quiz ?? isAtTerminal {
                prediction = view.ask(experiment, maySkip: quiz == nil) { readLine() }
                if prediction == nil, quiz == true { throw CommandFailure("no prediction was made") }
            }
            let outcome: Outcome
            do {
                outcome = try Runner.run(experiment, watching: view.live())
            } catch let failure as StageFailure {
                throw CommandFailure(failure.description)
            }
            view.end(outcome, prediction: prediction, showsCode: code)
            if let html { try OutputFile.write(ReportPage.html([outcome]), to: html) }
            if let json { try OutputFile.write(outcome.recording.chromeTrace, to: json) }
            if let save { try OutputFile.write(outcome.recording.file, to: save) }
            if !outcome.verdict.isAsDocumented { throw ExitCode(ExitStatus.failed) }
        }
    }

    struct Report: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "report",
            abstract: "Run all experiments and write one page.",
            discussion: "Ends with 0 if all are as documented, else with 1.")

        @Option(name: .shortAndLong, help: ArgumentHelp("Where to write the page.", valueName: "file"))
        var output = "rondo-lab.html"

        func run() throws {
            try OutputFile.check(output)
            let terminal: Terminal = output == "-" ? .standardError : .standardOutput
            var outcomes: [Outcome] = []
            var notRun: [(Experiment, String)] = []
            let width = Experiment.all.map(\.name.count).max() ?? 0
            for experiment in Experiment.all {
                terminal.write("\(experiment.name.padded(width))  ")
                do {
                    let outcome = try Runner.run(experiment)
                    outcomes.append(outcome)
                    let isGood = outcome.verdict.isAsDocumented
                    terminal.write(terminal.tinted(outcome.verdict.words, isGood ? .good : .bad) + "\n")
                    for check in outcome.verdict.checks where !check.holds {
                        terminal.write("    \(check.expected): \(check.seen)\n")
                    }
                } catch let failure as StageFailure {
                    notRun.append((experiment, failure.description))
                    terminal.write(terminal.tinted("not carried out: \(failure)", .bad) + "\n")
                }
            }
            try OutputFile.write(ReportPage.html(outcomes, notRun: notRun), to: output)
            terminal.write("\nwritten to \(output)\n")
            let isGood = notRun.isEmpty && outcomes.allSatisfy(\.verdict.isAsDocumented)
            if !isGood { throw ExitCode(ExitStatus.failed) }
        }
    }

    struct Serve: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "serve",
            abstract: "Serve what the experiments load, for their code in a program of yours.",
            discussion:
                "Give the address that it prints to the program as its first argument. Ends with Ctrl-C.")

        func run() throws {
            do {
                let server = try LabServer()
                Terminal.standardOutput.write(server.address + "\n")
                while true { pause() }
            } catch {
                throw CommandFailure(error.description)
            }
        }
    }

    struct Cost: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "cost",
            abstract: "Measure what recording costs a run loop on this machine.")

        func run() {
            let cost = RecorderCost.measure()
            let whole = { (value: Double) in TextFormats.fixed(value, digits: 0) }
            Terminal.standardOutput.write(
                """
                a pass that serves one source: \(whole(cost.passWithout)) ns, recorded \(whole(cost.passWith)) ns
                events a pass: \(TextFormats.fixed(cost.eventsPerPass, digits: 1))
                an event costs \(whole(cost.nanosecondsPerEvent)) ns

                """)
        }
    }
}
