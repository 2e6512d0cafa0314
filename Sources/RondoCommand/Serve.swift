import ArgumentParser
import Rondo
import RondoLab

/// `rondo serve`: files at a limited speed, for trying things out on one machine.
struct Serve: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Serve files over HTTP, slowly if wished.",
        discussion: """
            Answers GET and HEAD. /bytes/COUNT is always there: that many made-up bytes, the same each time; \
            /bytes has as many as --size says. Prints the address once it listens.
            """)

    @Option(help: "The port; 0 takes a free one.")
    var port: UInt16 = 0

    @Option(help: ArgumentHelp("The address to listen on.", valueName: "address"))
    var bind = "127.0.0.1"

    @Option(
        help: ArgumentHelp("Bytes a second on each connection, such as 500k or 2M.", valueName: "bytes"))
    var rate: Quantity?

    @Option(
        help: ArgumentHelp(
            "The folder to serve (default: the current one, or none with --size).", valueName: "folder"))
    var directory: String?

    @Option(help: ArgumentHelp("What /bytes answers with, such as 3M.", valueName: "bytes"))
    var size: Quantity?

    @Flag(help: "End when standard input does, so that no server outlives its parent.")
    var untilStdinCloses = false

    func validate() throws {
        if let rate, rate.bytes < 1 { throw ValidationError("--rate has to be at least 1 byte a second.") }
    }

    func run() throws {
        Signals.onInterruption { _ in _exit(0) }
        Signals.ignoreBrokenPipes()
        let server = FileServer(
            site: Site(root: try root(), size: size?.bytes ?? Site.usualSize), rate: rate?.bytes)
        let address: String
        do {
            address = try server.listen(address: bind, port: port)
        } catch {
            throw CommandFailure("cannot listen on \(bind) port \(port): \(error)")
        }
        Terminal.standardOutput.write("listening on http://\(address)/\n")
        if untilStdinCloses {
            do throws(SystemError) {
                try SystemThread.start(name: "standard input", Self.exitAfterStandardInput)
            } catch {
                throw CommandFailure("cannot wait for the end of standard input: \(error)")
            }
        }
        server.serve()
    }

    private func root() throws -> String? {
        guard let path = directory ?? (size == nil ? "." : nil) else { return nil }
        guard let real = Site.realPath(path) else {
            throw CommandFailure("there is no folder \(path)", status: ExitStatus.badUsage)
        }
        return real
    }

    @Sendable
    private static func exitAfterStandardInput() {
        var byte: UInt8 = 0
        while true {
            let count = read(0, &byte, 1)
            if count == 0 || (count < 0 && errno != EINTR) { _exit(0) }
        }
    }
}
