import ArgumentParser
import Rondo
import RondoLab

/// `rondo demo`: the scrolling experiment against a server of its own.
struct Demo: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "demo",
        abstract: "Show what run loop modes are for: two loads, one loop, and a user who scrolls.",
        discussion: """
            Starts a slow server on this machine and loads the same file twice on one run loop: A scheduled \
            in the default mode, B in the common modes, while the loop runs in default and in tracking by \
            turns. Ends with 0 if the counts are as documented, else with 1.
            """)

    @Flag(help: "Print the table as JSON, and nothing else.")
    var json = false

    @Option(help: ArgumentHelp("The size of the file, such as 6M.", valueName: "bytes"))
    var size = Quantity(bytes: 6_000_000)

    @Option(help: ArgumentHelp("What the server sends a second, such as 1M.", valueName: "bytes"))
    var rate = Quantity(bytes: 1_000_000)

    @Option(help: ArgumentHelp("How long the loop stays in a mode.", valueName: "seconds"))
    var span = 0.7

    func validate() throws {
        guard size.bytes > 0, rate.bytes > 0 else { throw ValidationError("Sizes and rates are at least 1.") }
        guard span >= 0.05, span <= 60 else { throw ValidationError("--span has to be 0.05 to 60 seconds.") }
    }

    func run() throws {
        let server = try ServerProcess(size: size.bytes, rate: rate.bytes)
        defer { server.stop() }
        var plan = ScrollingDemo.Plan(
            url: server.url.appendingPathComponent("bytes"), size: size.bytes, rate: rate.bytes)
        plan.span = span
        // Half of the time is tracking; the rest of the limit is for a busy machine.
        plan.limit = 20 + 4 * Double(size.bytes) / Double(rate.bytes)

        let report: ScrollingReport
        do {
            report = try ScrollingDemo(plan: plan, terminal: .standardOutput, silent: json).run()
        } catch let failure as ScrollingDemo.Failure {
            throw CommandFailure(failure.description)
        }
        if json { Terminal.standardOutput.write(report.json.text + "\n") }
        if !report.isAsDocumented { throw ExitCode(ExitStatus.failed) }
    }
}
