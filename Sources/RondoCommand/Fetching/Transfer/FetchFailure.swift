import Rondo

/// The failure of a fetch: a code for programs, a sentence for people, and the exit status.
struct FetchFailure: Error, Equatable {
    /// The exit statuses of curl, named by their meaning.
    enum Status: Int32, Sendable {
        case unsupportedScheme = 1
        case badUsage = 2
        case malformedURL = 3
        case unknownProxy = 5
        case unknownHost = 6
        case noConnection = 7
        case strangeAnswer = 8
        case partialBody = 18
        case errorStatus = 22
        case cannotWrite = 23
        case cannotRead = 26
        case timedOut = 28
        case noRange = 33
        case noTLS = 35
        case cannotResume = 36
        case cannotReadFile = 37
        case aborted = 42
        case badInterface = 45
        case tooManyRedirects = 47
        case badOptionSyntax = 49
        case emptyAnswer = 52
        case sendFailed = 55
        case receiveFailed = 56
        case badCertificate = 58
        case badCipher = 59
        case untrustedServer = 60
        case badEncoding = 61
        case tooLarge = 63
        case cannotSendAgain = 65
        case badAuthorities = 77
        case badRevocationList = 82
        case badPin = 90
        case proxyRefused = 97
    }

    var domain = NSURLErrorDomain
    var code: Int
    var message: String
    var status: Status
    /// Whether the load exceeded the time of `-m`. The load may have had less time than that, if it began
    /// late.
    var isOutOfTotalTime = false

    init(_ code: URLError.Code, _ message: String, status: Status = .receiveFailed) {
        self.code = code.rawValue
        self.message = message
        self.status = status
    }

    /// Makes a failure from the error of a connection. Its sentence names host and cause, even if the error's
    /// sentence does not.
    ///
    /// - Parameters:
    ///   - proxy: The proxy of the request.
    ///   - isRequestSent: True if the connection was open, so that TLS had made its handshake.
    ///   - hasAnswer: True if bytes of a response had arrived.
    init(
        _ error: any Error, url: FetchURL?, proxy: StreamProxy? = nil, isRequestSent: Bool = false,
        hasAnswer: Bool = false
    ) {
        let failure = URLErrors.failure(of: error)
        let error = error as NSError
        domain = error.domain
        code = error.code
        // TLS with the proxy has options of its own.
        let isOfProxy = if case .channel(.proxy)? = failure { true } else { false }
        var text = Self.inOptions(error.localizedDescription, prefix: isOfProxy ? "--proxy-" : "--")
        let isOfOptions = text.hasPrefix("--")
        if let host = url?.host, !host.isEmpty, !isOfOptions, !text.contains(host), proxy == nil {
            text = "\(host): \(text)"
        }
        let cause = error.userInfo[NSUnderlyingErrorKey] as? NSError
        // A sentence of the library's own contains the cause already, in other words.
        if error.userInfo[NSLocalizedDescriptionKey] == nil, let cause,
            let reason = cause.userInfo[NSLocalizedDescriptionKey] as? String, !text.contains(reason)
        {
            text += " (\(reason))"
        }
        message = proxy.map { Self.naming($0, in: text, of: failure, url) } ?? text
        if case .exceededTotalTime = failure { isOutOfTotalTime = true }
        status =
            failure.flatMap {
                Self.status(of: $0, url, proxy: proxy, isRequestSent: isRequestSent, hasAnswer: hasAnswer)
            } ?? Self.status(of: URLError.Code(rawValue: error.code) ?? .unknown)
    }

    /// The status of failures that have more statuses than codes; nil: that of its code.
    private static func status(
        of failure: LoadFailure, _ url: FetchURL?, proxy: StreamProxy?, isRequestSent: Bool, hasAnswer: Bool
    ) -> Status? {
        switch failure {
        case .channel(let error): status(of: error, url, proxy: proxy, isRequestSent: isRequestSent)
        case .http(let failure):
            switch failure.kind {
            case .closedEarly, .truncatedBody: hasAnswer ? .partialBody : .emptyAnswer
            case .notHTTP: .unsupportedScheme
            case .unreadableBody: .receiveFailed
            case .invalidRequest, .unreadable, .contradictory: nil
            }
        case .timedOut, .exceededTotalTime, .tooManyRedirects, .redirectWithoutLocation, .unsupportedRedirect,
            .canonicalRequestRefused, .unsupportedURL, .impossiblePort, .unusableResponse, .invalidDataURL,
            .unsupportedProxy, .noResponse, .program, .cancelled, .authenticationCancelled,
            .failedMutualAuthentication, .bodyStreamMissing, .unusableResumeData, .bodyStreamFailed,
            .bodyTooShort, .bodyTooLong, .file, .collectedTooMuch, .tooLongLine, .errorStatus, .content,
            .notInCache, .multipart, .noRunLoop, .upgrade:
            nil
        }
    }

    private static func status(
        of error: ChannelError, _ url: FetchURL?, proxy: StreamProxy?, isRequestSent: Bool
    ) -> Status? {
        switch error {
        case .resolve(let error):
            error.kind != .tooManyLookups && error.host == proxy?.host ? .unknownProxy : nil
        case .connect(_, _, let errors) where errors.contains(where: { $0.operation == .bind }):
            .badInterface
        // The server has accepted the connection, and reset it where the handshake would begin.
        case .connect(_, _, let errors) where errors.last?.code == ECONNRESET:
            url?.isSecure ?? false && proxy == nil ? .noTLS : nil
        case .connect: nil
        case .broken(let host, let port, _)
        where host == proxy?.host && port == proxy?.port && proxy?.kind != .httpConnect:
            .proxyRefused
        case .negotiation: proxy?.kind == .httpConnect ? .receiveFailed : .proxyRefused
        case .tls(let error): status(of: error, isRequestSent: isRequestSent)
        case .proxy(_, let error): status(of: error, url, proxy: proxy, isRequestSent: isRequestSent)
        case .timedOut, .evicted, .broken: nil
        }
    }

    private static func status(of error: TLSError, isRequestSent: Bool) -> Status? {
        switch error.reason {
        case .certificate(let problem): problem.kind == .keyNotPinned ? .badPin : nil
        case .settings(_, .ciphers): .badCipher
        case .settings(_, .authorities): .badAuthorities
        case .settings(_, .revocationLists): .badRevocationList
        case .certificateMissing, .certificateRequired, .protocolVersion, .alert, .notTLS,
            .protocolViolation:
            isRequestSent ? .receiveFailed : .noTLS
        case .settings(_, .other), .closedDuringHandshake, .system: nil
        }
    }

    private static func status(of code: URLError.Code) -> Status {
        switch code {
        case .unsupportedURL: .unsupportedScheme
        case .badURL: .malformedURL
        case .cannotFindHost, .dnsLookupFailed: .unknownHost
        case .cannotConnectToHost, .notConnectedToInternet, .resourceUnavailable: .noConnection
        case .timedOut: .timedOut
        case .httpTooManyRedirects: .tooManyRedirects
        case .cannotParseResponse, .badServerResponse: .strangeAnswer
        case .secureConnectionFailed: .noTLS
        case .serverCertificateUntrusted, .serverCertificateHasBadDate, .serverCertificateNotYetValid,
            .serverCertificateHasUnknownRoot:
            .untrustedServer
        case .cannotDecodeRawData, .cannotDecodeContentData: .badEncoding
        case .dataLengthExceedsMaximum: .tooLarge
        case .requestBodyStreamExhausted: .cannotSendAgain
        case .fileDoesNotExist, .fileIsDirectory, .noPermissionsToReadFile: .cannotReadFile
        case .cannotCreateFile, .cannotWriteToFile, .cannotCloseFile: .cannotWrite
        default: .receiveFailed
        }
    }

    /// Names the proxy in a sentence about its connection, which the library treats like any other, and the
    /// option that would help.
    private static func naming(
        _ proxy: StreamProxy, in text: String, of failure: LoadFailure?, _ url: FetchURL?
    ) -> String {
        if case .channel(.broken(let host, let port, _))? = failure, host == proxy.host, port == proxy.port {
            return text.replacingOccurrences(of: "the connection to ", with: "the connection to the proxy ")
        }
        if case .channel(.negotiation(let error))? = failure, error.kind == .authentication {
            return text + " (-U)"
        }
        // The proxy has answered, for the server or not.
        guard case .http(let error)? = failure, let url, !url.isSecure, proxy.kind == .httpConnect else {
            return text
        }
        let way = "through the proxy \(proxy.host), port \(proxy.port)"
        let named =
            text.hasPrefix(url.host + ": ")
            ? "\(url.host), \(way)\(text.dropFirst(url.host.count))" : "\(way): \(text)"
        return error.kind == .notHTTP ? named + " Check the proxy's kind and port." : named
    }

    /// Replaces the names of the library's settings by the names of options, or drops the advice if there is
    /// no such option.
    ///
    /// - Parameter prefix: That of the options which TLS with the server and with the proxy both have. Those
    ///   without a prefix here are the server's alone.
    private static func inOptions(_ sentence: String, prefix: String) -> String {
        sentence
            .replacing(/TLSSettings\.certificateAuthorities \(\.file “(.*)”\)/) {
                "\(prefix)cacert: \($0.1)"
            }
            .replacing(/TLSSettings\.certificateAuthorities \(\.directory “(.*)”\)/) {
                "\(prefix)capath: \($0.1)"
            }
            .replacing(/TLSSettings\.revocationLists \(“(.*)”\)/) { "--crlfile: \($0.1)" }
            .replacingOccurrences(of: "TLSSettings.certificateAuthorities", with: "\(prefix)cacert")
            .replacingOccurrences(of: "TLSSettings.identity", with: "\(prefix)cert")
            .replacingOccurrences(of: "TLSSettings.pinnedKeys", with: "--pinnedpubkey")
            .replacingOccurrences(of: "TLSSettings.revocationLists", with: "--crlfile")
            .replacingOccurrences(of: "TLSSettings.ciphers", with: "--ciphers")
            .replacingOccurrences(of: "TLSSettings.cipherSuites", with: "--tls13-ciphers")
            .replacingOccurrences(of: "; see TLSSettings.minimumVersion", with: "")
            .replacingOccurrences(
                of: ", and no code took the connection over: "
                    + "a session's delegate does so by the answer becomeStream.",
                with: ", which is not spoken here."
            )
            .replacingOccurrences(
                of: " (totalTimeout, or timeoutIntervalForResource of a session)", with: " (--max-time)")
    }
}
