import Rondo
import RondoLab

// What the command line asks for, checked.
extension Fetch {
    /// The plan for these options.
    /// - Throws: `CommandFailure` for options that make no sense, by themselves or together.
    func plan() throws -> FetchPlan {
        let requestOptions = RequestOptions(
            url: url, method: method, headers: headers, data: data, head: head, user: user)
        let request = try requestOptions.request()
        let output = try planOutput(for: request.url)
        let plan = FetchPlan(
            request: request, omittedFields: RequestOptions.omittedFields(headers),
            mode: RunLoop.Mode(spokenName: mode), output: output, printsHeads: head,
            followsRedirects: location, certificateAuthorities: cacert, verifies: !insecure,
            maximumTime: maxTime, isVerbose: verbose, proxy: try planProxy(),
            writeOut: try writeOut.map { try WriteOut($0) }, user: user, printsEvents: json,
            showsProgress: showsProgress(output: output))
        try checkValues()
        return plan
    }

    private func checkValues() throws {
        guard RunLoop.Mode(spokenName: mode) != .common, !mode.isEmpty else {
            throw CommandFailure.usage(
                "--mode: a loop runs in one mode at a time; 'common' is a set of modes")
        }
        if let maxTime, !(maxTime > 0) {
            throw CommandFailure.usage("--max-time has to be more than 0 seconds")
        }
        if let cacert, access(cacert, R_OK) != 0 {
            throw CommandFailure.usage("--cacert: cannot read \(cacert): \(String(cString: strerror(errno)))")
        }
    }

    private func planProxy() throws -> URLConnection.ProxyChoice {
        guard let proxy else { return .environment }
        if proxy.isEmpty { return .direct }
        guard let way = StreamProxy(url: proxy) else {
            throw CommandFailure.usage("-x: no proxy of HTTP or SOCKS: \(proxy)")
        }
        return .by(way)
    }

    private func planOutput(for url: URL?) throws -> FetchPlan.Output {
        switch (output, remoteName) {
        case (.some, true): throw CommandFailure.usage("-o and -O exclude each other")
        case ("-", false):
            if json { throw CommandFailure.usage("--json and -o - would mix on standard output") }
            return .standardOutput(evenBinary: true)
        case (let path?, false): return .file(path)
        case (nil, true):
            guard let name = url.flatMap(FetchPlan.remoteName(of:)) else {
                throw CommandFailure.usage("-O: the path of the URL ends with no file name; use -o FILE")
            }
            return .file(name)
        case (nil, false): return json ? .nowhere : .standardOutput(evenBinary: false)
        }
    }

    /// Progress goes to a terminal, and only where nothing else goes there at the same time.
    private func showsProgress(output: FetchPlan.Output) -> Bool {
        guard !silent, !verbose, !head, Terminal.standardError.isTerminal else { return false }
        switch output {
        case .file: return !(json && Terminal.standardOutput.isTerminal)
        case .standardOutput, .nowhere: return !Terminal.standardOutput.isTerminal
        }
    }
}
