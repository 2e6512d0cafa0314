import Rondo
import RondoHTTP
import RondoLab

/// One URL from its first request to the end of its output, with retries and redirects. On the loop's thread
/// only.
///
/// Redirects are followed here and not by the library, because users expect curl's rules: the method of `-X`
/// is kept, a redirect without a usable Location is a response, and cookies and fields of the command line
/// are sent where curl sends them.
final class FetchTransfer {
    /// The state of one attempt: each begins with a new one.
    private struct Attempt {
        /// The seconds from the start of the transfer to the start of the attempt.
        let start: Double
        /// Body bytes sent.
        var sentSize = 0
        /// A failure that is reported although the load succeeds.
        var pendingFailure: FetchFailure?
        /// The part of a file that is output; nil means the whole file.
        var window: Range<Int>?
        /// The position of the next byte in the file.
        var position = 0
    }

    /// The target of a redirect, by the Location of a response.
    private struct Redirect {
        let target: Result<FetchURL, FetchFailure>
        /// For `%{redirect_url}`, also of a target that is not loaded.
        let text: String

        init(to location: String, from request: FetchRequest, _ operation: FetchOperation) {
            do throws(FetchFailure) {
                let url = try request.url.following(location, keepsDots: operation.keepsDots)
                target = .success(url)
                text = url.text
            } catch {
                target = .failure(error)
                text = request.url.destination(of: location)
            }
        }

        /// Nil if the target is not loaded.
        var url: FetchURL? { if case .success(let url) = target { url } else { nil } }
    }

    let job: TransferJob
    private let context: FetchContext
    private let progress: ProgressBar?
    private let stopwatch = Stopwatch()
    private var whenOver: (() -> Void)?

    private var output = BodySink(.nowhere)
    private var first: FetchRequest?
    private var load: FetchLoad?
    /// Where the current load has been redirected, if that is followed.
    private var redirect: FetchURL?
    /// The proxy of the current load.
    private var proxy: StreamProxy?
    private var pause: Timer?
    private var offset: Int64 = 0
    private var attempt: Attempt
    private(set) var record = TransferRecord()
    /// Nil while the transfer runs.
    private(set) var outcome: Result<Void, FetchFailure>?

    private var operation: FetchOperation { job.operation }

    /// The most loads whose times are recorded; the last load always is.
    private static let maximumLoads = 100

    init(_ job: TransferJob, in context: FetchContext, progress: ProgressBar?) {
        self.job = job
        self.context = context
        self.progress = progress
        attempt = Attempt(start: 0)
        record.number = job.number
        record.urlText = job.url
        record.effectiveURL = job.url
    }

    // MARK: - Start

    /// Begins the transfer. `whenOver` is called at its end, perhaps before this returns.
    func start(whenOver: @escaping () -> Void) {
        self.whenOver = whenOver
        do {
            try context.makeFiles(of: operation)
            let url = try FetchURL(
                job.url, defaultScheme: operation.defaultScheme, keepsDots: operation.keepsDots)
            record.effectiveURL = url.textWithUser
            record.scheme = url.scheme.uppercased()
            try ConnectText.check(operation.connect)
            guard operation.protocols.contains(url.scheme),
                FetchOperation.loadedSchemes.contains(url.scheme)
            else {
                throw FetchFailure(
                    .unsupportedURL, "\(url.scheme) is not loaded: only http, https and file URLs are",
                    status: .unsupportedScheme)
            }
            if job.upload != nil, !url.isWeb {
                throw FetchFailure(
                    .unsupportedURL, "-T: nothing is written to \(url.scheme) URLs",
                    status: .unsupportedScheme)
            }
            let output = try OutputPlan(job, url: url, printsEvents: context.common.printsEvents)
            offset = try output.resumptionOffset(operation)
            self.output = BodySink(
                output.place(appending: offset > 0), createsFolders: output.createsFolders)
            let request = try FetchRequest(url, operation, upload: job.upload, offset: offset)
            first = request
            send(request)
        } catch {
            // There is no request that could be sent again.
            end(.failure(Self.failure(error)), mayRetry: false)
        }
    }

    static func failure(_ error: any Error) -> FetchFailure {
        if let failure = error as? FetchFailure { return failure }
        guard let failure = error as? CommandFailure else {
            return FetchFailure(.cannotOpenFile, error.localizedDescription, status: .cannotRead)
        }
        return FetchFailure(
            .cannotOpenFile, failure.message,
            status: FetchFailure.Status(rawValue: failure.status) ?? .badUsage)
    }

    private func send(_ request: FetchRequest) {
        redirect = nil
        record.method = request.method
        record.referer = request.referer
        record.effectiveURL = request.url.textWithUser
        record.scheme = request.url.scheme.uppercased()
        do {
            let cookies = context.cookies(of: operation, number: job.operationNumber)
            let mayTellCookies = request.isAtOrigin || operation.trustsRedirects
            let field =
                cookies?.field(for: request.url, and: mayTellCookies ? operation.cookies : [])
                ?? (operation.cookies.isEmpty || !mayTellCookies
                    ? nil : operation.cookies.joined(separator: ";"))
            proxy = try operation.proxy(for: request.url)
            var configuration = try operation.configuration(for: request, by: proxy, cookies: field)
            configuration.totalTimeout = try timeLeft()
            let load = FetchLoad(request, operation, by: proxy, in: context, transfer: self)
            self.load = load
            try load.start(configuration, offset: stopwatch.elapsed)
        } catch {
            let failure = Self.failure(error)
            // Only the time begins anew with another attempt.
            end(.failure(failure), mayRetry: failure.status == .timedOut)
        }
    }

    /// The seconds left of the limit of -m.
    private func timeLeft() throws(FetchFailure) -> Double? {
        guard let total = operation.totalTimeout else { return nil }
        let left = total - (stopwatch.elapsed - attempt.start)
        if left > 0 { return left }
        throw outOfTime(total)
    }

    private func outOfTime(_ total: Double) -> FetchFailure {
        // The number as the user typed it: with all digits and without an exponent.
        let limit = Decimal(string: "\(total)")?.description ?? ""
        let way = proxy.map { ", through the proxy \($0.host), port \($0.port)" } ?? ""
        let place = (first?.url.host ?? job.url) + way
        return FetchFailure(
            .timedOut,
            "\(place): not finished within the \(limit) s of --max-time; \(record.bodySize) bytes had come",
            status: .timedOut)
    }

    /// Ends the transfer before its end, unless it has ended.
    func abort(_ reason: String) {
        load?.cancel()
        end(.failure(FetchFailure(.cancelled, reason, status: .aborted)), mayRetry: false)
    }

    // MARK: - Calls of the load

    /// Takes a response.
    ///
    /// - Returns: What becomes of its body.
    func received(_ heads: [ReceivedHead], _ response: URLResponse, to request: FetchRequest)
        throws(FetchFailure) -> BodyUse
    {
        guard let head = heads.last else {
            return try receivedContent(response)
        }
        record.head = head
        record.status = head.status
        for each in heads {
            record.headSize += each.text.utf8.count
            context.cookies(of: operation, number: job.operationNumber)?
                .receive(each.cookies, from: request.url)
        }
        let text = heads.map(\.text).joined()
        try checkTunnel(head, request)
        if let path = operation.headPath { try context.write(heads: text, to: path) }
        let location = (300..<400).contains(head.status) ? head.location : nil
        let next = location.flatMap { $0.isEmpty ? nil : Redirect(to: $0, from: request, operation) }
        let isFailure = head.status >= 400 && operation.fails
        if let url = next?.url { try report(head, to: url, from: request) }
        try printHeads(text, head)
        if isFailure {
            // A short body is read to its end, for the values of -w.
            guard unwanted(response) == .discarded else { throw errorStatus(head) }
            attempt.pendingFailure = errorStatus(head)
            return .discarded
        }
        if let next, operation.followsRedirects {
            redirect = try followed(next, from: request)
            return .ofRedirect(head, method: request.method)
        }
        record.redirectURL = next?.text
        if operation.asksForHead {
            try context.saveETag(of: head, operation)
            return request.method == "HEAD" ? .discarded : unwanted(response)
        }
        return try startBody(head, response, of: request)
    }

    private func unwanted(_ response: URLResponse) -> BodyUse {
        .unwanted(length: response.expectedContentLength)
    }

    private func receivedContent(_ response: URLResponse) throws(FetchFailure) -> BodyUse {
        let length = response.expectedContentLength
        progress?.begin(expected: length >= 0 ? Int(length) : nil)
        guard operation.asksForHead else {
            attempt.window = try FileWindow.of(operation.range, offset: offset, size: max(0, Int(length)))
            try output.open()
            return .output
        }
        var text = length >= 0 ? "Content-Length: \(length)\r\nAccept-ranges: bytes\r\n" : ""
        var status = stat()
        if let path = response.url?.path, response.url?.isFileURL ?? false, stat(path, &status) == 0 {
            let date = Date(timeIntervalSince1970: Double(status.st_mtim.tv_sec))
            text += "Last-Modified: \(HTTPDate.format(date))\r\n"
        }
        try output.write(Data(text.utf8))
        return .discardedIfShort
    }

    private func report(
        _ head: ReceivedHead, to next: FetchURL, from request: FetchRequest
    ) throws(FetchFailure) {
        try context.report(
            EventLines.redirect(
                to: next.text, from: request.url.text, status: head.status, method: request.method,
                followed: operation.followsRedirects))
    }

    /// Fails if a proxy has asked for a password instead of making a tunnel.
    private func checkTunnel(_ head: ReceivedHead, _ request: FetchRequest) throws(FetchFailure) {
        guard head.status == 407, request.url.isSecure, let proxy, proxy.kind == .httpConnect else { return }
        record.connectStatus = head.status
        record.status = 0
        let verb = proxy.userName == nil ? "wants a" : "does not accept the"
        throw FetchFailure(
            .cannotConnectToHost,
            "the proxy \(proxy.host), port \(proxy.port), makes no tunnel to \(request.url.authority): "
                + "it \(verb) user name and password (407; -U)",
            status: .receiveFailed)
    }

    private func errorStatus(_ head: ReceivedHead) -> FetchFailure {
        let isProxys = head.status == 407 && proxy?.kind == .httpConnect
        return FetchFailure(
            .badServerResponse,
            "\(record.effectiveURL): the \(isProxys ? "proxy answered 407 (-U)" : "server answered \(head.status)")",
            status: .errorStatus)
    }

    private func printHeads(_ text: String, _ head: ReceivedHead) throws(FetchFailure) {
        guard operation.printsHeads || operation.asksForHead else { return }
        try output.write(Data((output.isTerminal ? TerminalText.harmless(text) : text).utf8))
    }

    private func followed(_ next: Redirect, from request: FetchRequest) throws(FetchFailure) -> FetchURL {
        if let maximum = operation.maximumRedirects, record.redirectCount >= maximum {
            record.redirectURL = next.text
            throw FetchFailure(
                .httpTooManyRedirects, "\(request.url.host): more than \(maximum) redirects (--max-redirs)",
                status: .tooManyRedirects)
        }
        let url = try next.target.get()
        guard operation.redirectProtocols.contains(url.scheme), operation.protocols.contains(url.scheme)
        else {
            throw FetchFailure(
                .unsupportedURL, "a redirect leads to \(url.text), which is not followed",
                status: .unsupportedScheme)
        }
        return url
    }

    private func startBody(
        _ head: ReceivedHead, _ response: URLResponse, of request: FetchRequest
    ) throws(FetchFailure) -> BodyUse {
        if offset > 0, !request.isUpload {
            if head.status == 416 { return unwanted(response) }
            if head.firstPosition != offset {
                // The file is complete if the document has this length. A part (206) belongs to a longer
                // document.
                if head.status != 206, response.expectedContentLength == offset { return unwanted(response) }
                // Neither the page of an error nor another part is appended to the file.
                throw noRest("the response does not begin at byte \(offset)", request)
            }
            // The part begins at that byte of the coded content, and the file has decoded content.
            if operation.decodes, head.hasCoding {
                throw noRest("the response is a part of coded content (--compressed)", request)
            }
        }
        if let maximum = operation.maximumSize, maximum > 0, response.expectedContentLength > maximum {
            throw FetchFailure(
                .dataLengthExceedsMaximum, "the body is larger than \(maximum) bytes (--max-filesize)",
                status: .tooLarge)
        }
        if isUnwanted(head) {
            record.status = 304
            return unwanted(response)
        }
        if operation.usesSuggestedNames, job.output == .remoteName, let name = head.suggestedName {
            let existing = operation.overwrites.map { $0 ? BodySink.Existing.replaced : .kept } ?? .refused
            // The rest of a file takes the place of none.
            output.rename(to: OutputPlan.inFolder(name, operation), offset > 0 ? .refused : existing)
        }
        try context.saveETag(of: head, operation)
        progress?.begin(
            expected: response.expectedContentLength >= 0 ? Int(response.expectedContentLength) : nil)
        return .output
    }

    private func noRest(_ reason: String, _ request: FetchRequest) -> FetchFailure {
        FetchFailure(
            .cannotDecodeContentData, "\(request.url.host): \(reason): cannot resume (-C)", status: .noRange)
    }

    /// True if the document does not match the time of -z, although the server has sent it.
    private func isUnwanted(_ head: ReceivedHead) -> Bool {
        guard let condition = operation.timeCondition, operation.range == nil, head.status == 200,
            let modified = head.value("Last-Modified").flatMap(TimeText.date)
        else { return false }
        switch condition {
        case .modifiedSince(let date): return modified <= date
        case .unmodifiedSince(let date): return modified > date
        }
    }

    func received(_ given: Data) throws(FetchFailure) {
        var data = given
        if let window = attempt.window {
            let position = attempt.position
            let wanted = window.clamped(to: position..<position + given.count)
            data = given.dropFirst(wanted.lowerBound - position).prefix(wanted.count)
            attempt.position += given.count
        }
        record.bodySize += data.count
        progress?.note(received: record.bodySize)
        if let maximum = operation.maximumSize, maximum > 0, record.bodySize > maximum {
            throw FetchFailure(
                .dataLengthExceedsMaximum, "the body is larger than \(maximum) bytes (--max-filesize)",
                status: .tooLarge)
        }
        try output.write(data)
    }

    /// The load has ended.
    func ended(_ result: Result<Void, FetchFailure>, of request: FetchRequest) {
        if case .input(let input) = request.body, case .failure(let failure) = result,
            [.unknownHost, .unknownProxy, .noConnection].contains(failure.status)
        {
            // Nothing of a body has been read.
            input.giveBack()
        }
        if case .success = result, let redirect, let first {
            record.redirectCount += 1
            do {
                return send(
                    try request.redirected(to: redirect, status: record.status, first: first, operation))
            } catch {
                return end(.failure(Self.failure(error)))
            }
        }
        if let pending = attempt.pendingFailure.take() { return end(.failure(pending)) }
        if case .failure(let failure) = result, failure.isOutOfTotalTime,
            let total = operation.totalTimeout
        {
            return end(.failure(outOfTime(total)))
        }
        if case .success = result, operation.failsWithBody, let head = record.head, head.status >= 400 {
            return end(.failure(errorStatus(head)))
        }
        end(result)
    }

    func note(_ metrics: URLConnection.Metrics, offset: Double) {
        if record.loads.count == Self.maximumLoads { record.loads.removeLast() }
        record.loads.append((metrics, offset))
    }
    func note(connectStatus: Int) { record.connectStatus = connectStatus }
    func note(sent count: Int) { attempt.sentSize += count }

    /// Called at intervals while the transfer runs.
    func tick() {
        progress?.tick()
        guard outcome == nil, let load,
            let failure = load.slowness(
                transferred: record.bodySize + attempt.sentSize, at: stopwatch.elapsed)
        else { return }
        load.cancel()
        end(.failure(failure))
    }

    // MARK: - The end

    private func end(_ result: Result<Void, FetchFailure>, mayRetry: Bool = true) {
        guard outcome == nil else { return }
        load = nil
        if mayRetry, let delay = delayBeforeRetry(result) { return retry(after: delay, result) }
        var result = result
        do throws(FetchFailure) {
            // After a successful transfer there is a file, even if it is empty.
            if case .success = result, !isUnmet { try output.open() }
            try output.close()
        } catch {
            if case .success = result { result = .failure(error) }
        }
        progress?.end()
        record.duration = stopwatch.elapsed
        record.fileName = output.path
        if case .failure(let failure) = result {
            (record.failure, record.exitStatus) = (failure.message, failure.status.rawValue)
            if operation.removesOnError { output.remove() }
        } else if operation.setsRemoteTime {
            setRemoteTime()
        }
        outcome = result
        whenOver.take()?()
    }

    /// True if nothing had to be loaded, because of -z, --etag-compare or a field of the user's: no file is
    /// made.
    private var isUnmet: Bool { record.status == 304 }

    private func setRemoteTime() {
        guard let path = output.path,
            let date = record.head?.value("Last-Modified").flatMap(TimeText.date)
        else {
            return
        }
        let time = timeval(tv_sec: Int(date.timeIntervalSince1970), tv_usec: 0)
        // The content of the file is right even if its time cannot be set.
        _ = utimes(path, [time, time])
    }

    // MARK: - Retries

    /// The seconds before a retry; nil if there is none.
    private func delayBeforeRetry(_ result: Result<Void, FetchFailure>) -> Double? {
        guard record.retries < operation.retries else { return nil }
        let transient = [408, 429, 500, 502, 503, 504].contains(record.status)
        switch result {
        case .success: if !transient { return nil }
        case .failure(let failure):
            switch failure.status {
            case .timedOut, .unknownHost, .unknownProxy: break
            case .noConnection where operation.retriesRefusals: break
            case .errorStatus where transient: break
            default: if !operation.retriesAllErrors { return nil }
            }
        }
        if case .input(let input) = first?.body, !input.canBeSent {
            context.messages.warn("no retry: \(input.name) was read, and cannot be sent again")
            return nil
        }
        return RetryDelay.seconds(
            operation, retries: record.retries,
            retryAfter: transient ? record.head?.value("Retry-After") : nil, elapsed: stopwatch.elapsed)
    }

    private func retry(after delay: Double, _ result: Result<Void, FetchFailure>) {
        record.retries += 1
        if case .failure(let failure) = result { context.messages.tell(failure) }
        let problem =
            if case .failure(let failure) = result { failure.message } else { "status \(record.status)" }
        let left = operation.retries - record.retries
        context.messages.warn(
            "\(problem); trying again in \(Int(delay)) s, \(left) more times after that")
        pause = Timer.scheduled(after: delay, in: context.mode) { [weak self] in self?.tryAgain() }
    }

    private func tryAgain() {
        pause = nil
        attempt = Attempt(start: stopwatch.elapsed)
        record.beginAttempt()
        output.restart()
        progress?.restart()
        if let first { send(first) }
    }
}
