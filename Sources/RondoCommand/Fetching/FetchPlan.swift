import Rondo
import RondoLab

/// What `rondo fetch` is to do: the command line, understood and found to make sense.
struct FetchPlan: Sendable {
    enum Output: Equatable, Sendable {
        case nowhere
        /// Binary data goes to a terminal only where it was asked for, by `-o -`.
        case standardOutput(evenBinary: Bool)
        case file(String)
    }

    var request: URLRequest
    /// Header fields that are not to be sent, though they would be.
    var omittedFields: [String]
    var mode: RunLoop.Mode
    var output: Output
    var printsHeads: Bool
    var followsRedirects: Bool
    var certificateAuthorities: String?
    var verifies: Bool
    /// Seconds for the whole load.
    var maximumTime: Double?
    var isVerbose: Bool
    var proxy: URLConnection.ProxyChoice
    var writeOut: WriteOut?
    /// Name and password of `-u`, for challenges that a field sent in advance does not answer.
    var user: String?
    var printsEvents: Bool
    var showsProgress: Bool

    init(_ options: Fetch) throws {
        let requestOptions = RequestOptions(options)
        request = try requestOptions.request()
        omittedFields = RequestOptions.omittedFields(requestOptions.headers)
        output = try Self.output(options, url: request.url)
        mode = RunLoop.Mode(spokenName: options.mode)
        printsHeads = options.head
        followsRedirects = options.location
        certificateAuthorities = options.cacert
        verifies = !options.insecure
        maximumTime = options.maxTime
        isVerbose = options.verbose
        proxy = try Self.proxy(options.proxy)
        writeOut = try options.writeOut.map { try WriteOut($0) }
        user = options.user
        printsEvents = options.json
        showsProgress = Self.showsProgress(options, output: output)

        guard mode != .common, !options.mode.isEmpty else {
            throw CommandFailure.usage(
                "--mode: a loop runs in one mode at a time; 'common' is a set of modes")
        }
        if let seconds = options.maxTime, !(seconds > 0) {
            throw CommandFailure.usage("--max-time has to be more than 0 seconds")
        }
        if let path = options.cacert, access(path, R_OK) != 0 {
            throw CommandFailure.usage("--cacert: cannot read \(path): \(String(cString: strerror(errno)))")
        }
    }

    private static func proxy(_ text: String?) throws -> URLConnection.ProxyChoice {
        guard let text else { return .environment }
        if text.isEmpty { return .direct }
        guard let proxy = StreamProxy(url: text) else {
            throw CommandFailure.usage("-x: no proxy of HTTP or SOCKS: \(text)")
        }
        return .by(proxy)
    }

    private static func output(_ options: Fetch, url: URL?) throws -> Output {
        switch (options.output, options.remoteName) {
        case (.some, true): throw CommandFailure.usage("-o and -O exclude each other")
        case ("-", false):
            if options.json { throw CommandFailure.usage("--json and -o - would mix on standard output") }
            return .standardOutput(evenBinary: true)
        case (let path?, false): return .file(path)
        case (nil, true):
            guard let name = url.flatMap(remoteName(of:)) else {
                throw CommandFailure.usage("-O: the path of the URL ends with no file name; use -o FILE")
            }
            return .file(name)
        case (nil, false): return options.json ? .nowhere : .standardOutput(evenBinary: false)
        }
    }

    /// The end of the path as it stands, still encoded: decoded it might hold a slash. Without dots and dashes in front,
    /// as a name that a server suggests (rule UC-26): URLs are often taken from pages.
    static func remoteName(of url: URL) -> String? {
        let path = URLComponents(url: url, resolvingAgainstBaseURL: true)?.percentEncodedPath ?? ""
        let name = path.split(separator: "/", omittingEmptySubsequences: false).last ?? ""
        let harmless = name.drop { $0 == "." || $0 == "-" }
        return harmless.isEmpty ? nil : String(harmless)
    }

    /// Progress goes to a terminal, and only where nothing else goes there at the same time.
    private static func showsProgress(_ options: Fetch, output: Output) -> Bool {
        guard !options.silent, !options.verbose, !options.head, Terminal.standardError.isTerminal else {
            return false
        }
        switch output {
        case .file: return !(options.json && Terminal.standardOutput.isTerminal)
        case .standardOutput, .nowhere: return !Terminal.standardOutput.isTerminal
        }
    }
}

extension CommandFailure {
    static func usage(_ message: String) -> CommandFailure {
        CommandFailure(message, status: ExitStatus.badUsage)
    }
}
