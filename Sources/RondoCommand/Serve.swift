import ArgumentParser
import Rondo
import RondoLab
import RondoMutex

/// `rondo serve`: serves a folder over HTTP or HTTPS, to try downloads, resuming and caches on one machine.
struct Serve: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "serve",
        abstract: "Serve a folder over HTTP, slowly if wished.",
        discussion: """
            Lists folders, or shows their index.html; answers GET and HEAD, ranges (also several), and conditions by \
            ETag and Last-Modified. Links that lead out of the folder are not followed. /bytes/COUNT is always there: \
            that many made-up bytes, the same each time; /bytes has as many as --size says. Prints the address once it \
            listens, and a line on standard error for each answer. Ends with Ctrl-C.
            """)

    @Argument(help: "The folder to serve (default: the current one, or none with --size).")
    var folder: String?

    @Option(name: .shortAndLong, help: "The port; 0 takes a free one.")
    var port: UInt16 = 0

    @Option(help: ArgumentHelp("The address to listen on; 0.0.0.0 for all of them.", valueName: "address"))
    var bind = "127.0.0.1"

    @Option(
        help: ArgumentHelp("Bytes a second on each connection, such as 500k or 2M.", valueName: "bytes"))
    var rate: Quantity?

    @Option(help: ArgumentHelp("The folder to serve, as the argument.", valueName: "folder"))
    var directory: String?

    @Option(help: ArgumentHelp("What /bytes answers with, such as 3M.", valueName: "bytes"))
    var size: Quantity?

    @Flag(help: "Speak TLS, with a certificate that is made for this run; prints how to trust it.")
    var tls = false

    @Option(
        help: ArgumentHelp(
            "Speak TLS with the certificate and key in this PEM file; if there is none, they are made and kept there.",
            valueName: "file"))
    var certificate: String?

    @Flag(name: .shortAndLong, help: "Log no requests.")
    var quiet = false

    @Flag(help: "End when standard input does, so that no server outlives its parent.")
    var untilStdinCloses = false

    func validate() throws {
        if let rate, rate.bytes < 1 { throw ValidationError("--rate has to be at least 1 byte a second.") }
        if folder != nil, directory != nil {
            throw ValidationError("A folder is named twice: as the argument and by --directory.")
        }
    }

    func run() throws {
        let end = End()
        Signals.onInterruption { end.request(by: $0) }
        Signals.ignoreBrokenPipes()
        let site = Site(folder: try servedFolder(), size: size?.bytes ?? Site.usualSize)
        let certificate = try servedCertificate()
        defer { certificate?.discard() }
        let settings = ServedConnection.Settings(
            responder: Responder(site: site), rate: rate?.bytes, log: quiet ? nil : RequestLog())
        let server: FileServer
        do {
            server = try FileServer(settings, address: bind, port: Int(port), identity: certificate?.identity)
        } catch {
            throw CommandFailure("cannot listen on \(bind) port \(port): \(error.localizedDescription)")
        }
        server.onTrouble = { Terminal.standardError.write("rondo: \($0.localizedDescription)\n") }
        Terminal.standardOutput.write(ServeGreeting.text(bind: bind, port: server.port, certificate))
        if untilStdinCloses { try Self.watchStandardInput(end) }
        while server.isListening, !end.isRequested {
            _ = RunLoop.current.run(in: .default, for: .infinity, returnAfterSourceHandled: false)
        }
        if !server.isListening, !end.isRequested { throw CommandFailure("the server cannot go on listening") }
    }

    private func servedFolder() throws -> ServedFolder? {
        guard let path = folder ?? directory ?? (size == nil ? "." : nil) else { return nil }
        guard let folder = ServedFolder(path) else {
            throw CommandFailure("there is no folder \(path)", status: ExitStatus.badUsage)
        }
        return folder
    }

    private func servedCertificate() throws -> ServerCertificate? {
        let names = ServeGreeting.names(bind: bind)
        do {
            if let certificate { return try ServerCertificate.kept(at: certificate, names) }
            return tls ? try ServerCertificate.makeForNow(names) : nil
        } catch let error as TLSIdentityError {
            throw CommandFailure("no certificate: \(error.description)")
        }
    }

    // MARK: - The end

    /// The end that a signal, or the end of standard input, requests.
    final class End: Sendable {
        private struct State {
            var isRequested = false
            var isBySignal = false
        }

        private let loop = RunLoop.current
        private let state = Mutex(State())

        var isRequested: Bool { state.withLock { $0.isRequested } }

        /// Requests the end. Any thread. A second signal ends the process at once, because the first may wait
        /// for a disk. The end of standard input does not count: in a pipeline it comes with Ctrl-C.
        func request(by signal: Int32? = nil) {
            let wasBySignal = state.withLock { state in
                defer { state = State(isRequested: true, isBySignal: state.isBySignal || signal != nil) }
                return state.isBySignal
            }
            if let signal, wasBySignal { _exit(ExitStatus.ended(by: signal)) }
            // `stop()` alone has no effect on a loop that is about to run.
            loop.perform { RunLoop.current.stop() }
        }
    }

    private static func watchStandardInput(_ end: End) throws {
        do throws(SystemError) {
            try SystemThread.start(name: "standard input") {
                var byte: UInt8 = 0
                while true {
                    let count = read(0, &byte, 1)
                    if count == 0 || (count < 0 && errno != EINTR) { return end.request() }
                }
            }
        } catch {
            throw CommandFailure("cannot wait for the end of standard input: \(error)")
        }
    }
}

/// The text that the server prints when it listens.
enum ServeGreeting {
    static func text(bind: String, port: Int, _ certificate: ServerCertificate?) -> String {
        let url = url(bind: bind, port: port, isSecure: certificate != nil)
        var text = "listening on \(url)\n"
        if isAny(bind) { text += "and on all other addresses of this machine\n" }
        guard let certificate, let own = certificate.identity.certificates.first else { return text }
        let digits = own.sha256Fingerprint.map { byte in
            (byte < 16 ? "0" : "") + String(byte, radix: 16, uppercase: true)
        }
        return text + """
            certificate  \(certificate.path), \(certificate.origin)
            trust it by  curl --cacert \(certificate.path) \(url)
                         rondo fetch --cacert \(certificate.path) \(url)
                         a browser warns; its SHA-256 fingerprint there has to be
                         \(digits.prefix(16).joined(separator: ":"))
                         \(digits.dropFirst(16).joined(separator: ":"))

            """
    }

    /// The names that clients may use for the server, for the certificate.
    static func names(bind: String) -> [String] {
        var names = ["localhost", "127.0.0.1", "::1"]
        if isAny(bind) {
            let name = ProcessInfo.processInfo.hostName
            // A host name that cannot stand in a certificate is left out.
            if !name.isEmpty, (try? TLSIdentity(selfSignedFor: [name])) != nil { names.append(name) }
        } else if !names.contains(bind) {
            names.append(bind)
        }
        return names
    }

    private static func url(bind: String, port: Int, isSecure: Bool) -> String {
        let host: String
        switch bind {
        case "0.0.0.0": host = "127.0.0.1"
        case "::": host = "[::1]"
        default: host = bind.contains(":") ? "[\(bind)]" : bind
        }
        return "http\(isSecure ? "s" : "")://\(host):\(port)/"
    }

    private static func isAny(_ bind: String) -> Bool { bind == "0.0.0.0" || bind == "::" }
}
