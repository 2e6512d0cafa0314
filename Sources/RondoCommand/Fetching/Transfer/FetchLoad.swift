import Rondo
import RondoLab

/// The use of the body of a response.
enum BodyUse {
    case output
    /// It is read to its end, and dropped: its length as it is sent is known. Decoded it may be longer than
    /// `mostDiscarded`.
    case discarded
    /// It is read and dropped. If it turns out to be longer than `mostDiscarded`, it is refused there.
    case discardedIfShort
    /// It is not read: the load is cancelled, so that no times are measured for `-w`.
    case refused

    /// The most bytes of an unwanted body that are read.
    static let mostDiscarded: Int64 = 65_536

    /// The use of an unwanted body: a short one is read to its end, so that its connection can be used again.
    ///
    /// - Parameter length: -1 if it is not known.
    static func unwanted(length: Int64) -> BodyUse {
        (0...mostDiscarded).contains(length) ? .discarded : .refused
    }

    /// The use of the body of a redirect that is followed. A body of unknown length is read only if it ends
    /// before its connection does, and the connection can be used again.
    static func ofRedirect(_ head: ReceivedHead, method: String) -> BodyUse {
        if method == "HEAD" { return .discarded }
        if let length = head.value("Content-Length") { return unwanted(length: Int64(length) ?? -1) }
        return head.value("Transfer-Encoding") != nil && head.keepsConnection ? .discardedIfShort : .refused
    }
}

/// One load of a transfer, and the delegate of its connection. On the loop's thread only.
final class FetchLoad: NSObject, URLConnectionDataDelegate {
    private let request: FetchRequest
    private let operation: FetchOperation
    private let proxy: StreamProxy?
    private let context: FetchContext
    /// Released at the end of the load.
    private var transfer: FetchTransfer?
    private let heads = HeadLog()
    private let digest: Digest?
    private var connection: URLConnection?
    private var offset = 0.0
    private var received = 0
    private var bodyUse = BodyUse.discarded
    private var hasAnswer = false
    private var speedFloor: SpeedFloor?

    init(
        _ request: FetchRequest, _ operation: FetchOperation, by proxy: StreamProxy?,
        in context: FetchContext,
        transfer: FetchTransfer
    ) {
        self.request = request
        self.operation = operation
        self.proxy = proxy
        self.context = context
        self.transfer = transfer
        digest = context.common.printsEvents ? Digest() : nil
    }

    /// - Parameter offset: Seconds since the transfer began.
    func start(_ given: URLConnection.Configuration, offset: Double) throws(FetchFailure) {
        self.offset = offset
        var configuration = given
        let (heads, isVerbose, messages) = (heads, context.common.isVerbose, context.messages)
        configuration.onDiagnostic = { diagnostic in
            if isVerbose { messages.write(DiagnosticLines.text(for: diagnostic)) }
            heads.note(diagnostic)
        }
        let urlRequest = try request.urlRequest()
        guard let connection = URLConnection(request: urlRequest, delegate: self, startImmediately: false)
        else {
            throw FetchFailure(
                .unsupportedURL, "cannot load \(request.url.text)", status: .unsupportedScheme)
        }
        connection.configuration = configuration
        connection.schedule(in: RunLoop.current, forMode: context.mode)
        self.connection = connection
        connection.start()
    }

    func cancel() {
        connection?.cancel()
        connection = nil
        transfer = nil
    }

    /// The failure of a load that is too slow. The time before its request is sent does not count.
    ///
    /// - Parameter total: The bytes that the transfer has sent and received until `now`.
    func slowness(transferred total: Int, at now: Double) -> FetchFailure? {
        guard hasAnswer || heads.isRequestSent else {
            speedFloor = nil
            return nil
        }
        if speedFloor == nil { speedFloor = SpeedFloor(operation, from: now, with: total) }
        return speedFloor?.failure(transferred: total, at: now)
    }

    // MARK: - Calls of the connection

    func connectionShouldUseCredentialStorage(_ connection: URLConnection) -> Bool { false }

    /// Answers a server's request for name and password once. In the Basic scheme they were sent already,
    /// unless another scheme was asked for. Challenges of TLS and of proxies are handled by default; all
    /// others get no credential.
    func connection(_ connection: URLConnection, willSendRequestFor challenge: URLAuthenticationChallenge) {
        report(EventLines.challenge(challenge))
        let space = challenge.protectionSpace
        switch space.authenticationMethod {
        case NSURLAuthenticationMethodServerTrust, NSURLAuthenticationMethodClientCertificate:
            challenge.sender?.performDefaultHandling(for: challenge)
            return
        default: break
        }
        if space.isProxy() {
            challenge.sender?.performDefaultHandling(for: challenge)
            return
        }
        let isWanted =
            switch operation.authentication {
            case .basic: false
            case .digest: space.authenticationMethod == NSURLAuthenticationMethodHTTPDigest
            case .any: true
            }
        guard isWanted, let credential = request.credential, challenge.previousFailureCount == 0 else {
            challenge.sender?.continueWithoutCredential(for: challenge)
            return
        }
        challenge.sender?.use(
            URLCredential(user: credential.user, password: credential.password, persistence: .none),
            for: challenge)
    }

    func connection(_ connection: URLConnection, needNewBodyStream request: URLRequest) -> Foundation
        .InputStream?
    {
        self.request.stream
    }

    func connection(_ connection: URLConnection, didCollect metrics: URLConnection.Metrics) {
        transfer?.note(metrics, offset: offset)
        // The status of a tunnel that was made is not known.
        if let last = metrics.transfers.last, hasTunnel(last) { transfer?.note(connectStatus: 200) }
        if context.common.isVerbose { context.messages.write(MetricsLines.text(for: metrics)) }
    }

    /// True if the proxy has made a tunnel: TLS with the server had begun.
    private func hasTunnel(_ last: URLConnection.Transfer) -> Bool {
        guard let proxy, proxy.kind == .httpConnect, request.url.isSecure else { return false }
        if last.requestStart != nil { return true }
        // The times are those of the last handshake, and the version is that of the last that was done: the
        // proxy's.
        return proxy.tls == nil ? last.secureStart != nil : last.tlsVersion != nil && last.secureEnd == nil
    }

    func connection(
        _ connection: URLConnection, didSendBodyData bytesWritten: Int, totalBytesWritten: Int,
        totalBytesExpectedToWrite: Int
    ) {
        transfer?.note(sent: bytesWritten)
        report(
            EventLines.sent(
                bytes: bytesWritten, total: totalBytesWritten, expected: totalBytesExpectedToWrite))
    }

    func connection(_ connection: URLConnection, didReceive response: URLResponse) {
        hasAnswer = true
        report(EventLines.response(response))
        orCancel { () throws(FetchFailure) in
            bodyUse =
                try transfer?.received(heads.take(orMakeFrom: response), response, to: request) ?? .discarded
        }
        if bodyUse == .refused { refuseBody() }
    }

    func connection(_ connection: URLConnection, didReceive data: Data) {
        received += data.count
        if let digest { data.withUnsafeBytes { digest.update($0) } }
        report(EventLines.data(length: data.count))
        switch bodyUse {
        case .output: orCancel { () throws(FetchFailure) in try transfer?.received(data) }
        case .discardedIfShort: if received > BodyUse.mostDiscarded { refuseBody() }
        case .discarded, .refused: break
        }
    }

    private func refuseBody() {
        guard transfer != nil else { return }
        connection?.cancel()
        end(.success(()))
    }

    func connectionDidFinishLoading(_ connection: URLConnection) { end(.success(())) }

    func connection(_ connection: URLConnection, didFailWithError error: any Error) {
        let cause = (error as NSError).userInfo[NSUnderlyingErrorKey] as? NSError
        if proxy?.kind == .httpConnect, let cause, cause.domain == kCFErrorDomainCFNetwork as String,
            (100..<600).contains(cause.code)
        {
            transfer?.note(connectStatus: cause.code)
        }
        let failure = FetchFailure(
            error, url: request.url, proxy: proxy, isRequestSent: heads.isRequestSent, hasAnswer: hasAnswer)
        end(.failure(failure))
    }

    // MARK: - The end

    private func end(_ result: Result<Void, FetchFailure>) {
        guard let transfer = transfer.take() else { return }
        connection = nil
        var result = result
        do throws(FetchFailure) {
            switch result {
            case .success:
                try context.report(EventLines.finish(bytes: received, sha256: digest?.finish() ?? ""))
            case .failure(let failure): try context.report(EventLines.fail(failure))
            }
        } catch {
            if case .success = result { result = .failure(error) }
        }
        transfer.ended(result, of: request)
    }

    /// Ends the load if `body` fails, because its output is not wanted or cannot be written.
    private func orCancel(_ body: () throws(FetchFailure) -> Void) {
        guard transfer != nil else { return }
        do {
            try body()
        } catch {
            connection?.cancel()
            end(.failure(error))
        }
    }

    private func report(_ event: @autoclosure () -> JSONText) {
        orCancel { () throws(FetchFailure) in try context.report(event()) }
    }
}
