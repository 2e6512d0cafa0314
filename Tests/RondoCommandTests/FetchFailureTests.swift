import Rondo
import RondoHTTP
import Testing

@testable import RondoCommand
@testable import RondoConnections
@testable import RondoStreams

/// The exit status of a fetch that has failed.
struct FetchFailureTests {
    private static func failure(
        _ failure: LoadFailure, scheme: String = "http", host: String = "example.com",
        proxy: StreamProxy? = nil, isRequestSent: Bool = false, hasAnswer: Bool = false
    ) throws -> FetchFailure {
        let url = "\(scheme)://\(host)/"
        return FetchFailure(
            URLErrors.error(failure, url: URL(string: url)), url: try FetchURL(url), proxy: proxy,
            isRequestSent: isRequestSent, hasAnswer: hasAnswer)
    }

    private static func certificate(_ kind: CertificateProblem.Kind, host: String) -> LoadFailure {
        .channel(.tls(TLSError(.certificate(CertificateProblem(kind, certificate: nil)), host: host)))
    }

    @Test func `a certificate is refused for its pin only where there is one`() throws {
        for host in ["shopping.example", "example.com"] {
            for kind in [CertificateProblem.Kind.other, .expired, .unknownIssuer, .hostNameMismatch] {
                let failure = try Self.failure(Self.certificate(kind, host: host), host: host)
                #expect(failure.status == .untrustedServer)
            }
            let failure = try Self.failure(Self.certificate(.keyNotPinned, host: host), host: host)
            #expect(failure.status == .badPin)
        }
    }

    @Test(arguments: [
        (HTTP1Error.Peer.invalidStatusLine(excerpt: "220 chunk"), FetchFailure.Status.unsupportedScheme),
        (.invalidFieldLine(excerpt: "does not answer in HTTP, chunk"), .strangeAnswer),
        (.unsupportedTransferCoding("chunk"), .strangeAnswer),
        (.invalidChunk(.sizeTooLarge), .receiveFailed), (.exceeded(.chunkLineLength(1)), .receiveFailed),
        (.exceeded(.headSize(1)), .strangeAnswer),
    ])
    func `a response that cannot be parsed has the exit code of its fault`(
        fault: HTTP1Error.Peer, status: FetchFailure.Status
    ) throws {
        #expect(try Self.failure(.http(HTTPFailure(.peer(fault)))).status == status)
    }

    @Test func `a load without an answer has another exit code than one that breaks off`() throws {
        let failure = LoadFailure.http(HTTPFailure(.peer(.closedBeforeResponse)))
        #expect(try Self.failure(failure).status == .emptyAnswer)
        #expect(try Self.failure(failure, hasAnswer: true).status == .partialBody)
    }

    @Test(arguments: [StreamProxy.Kind.httpConnect, .socks5])
    func `an unknown proxy and one that refuses have exit codes of their own`(kind: StreamProxy.Kind) throws {
        let proxy = StreamProxy(kind, host: "proxy", port: 1)
        let unknown = { (host: String) in
            LoadFailure.channel(.resolve(ResolveError(host: host, code: EAI_NONAME)))
        }
        #expect(try Self.failure(unknown("proxy"), proxy: proxy).status == .unknownProxy)
        #expect(try Self.failure(unknown("no.proxy"), host: "no.proxy", proxy: proxy).status == .unknownHost)
        #expect(try Self.failure(unknown("proxy"), host: "proxy").status == .unknownHost)
        let refusal = LoadFailure.channel(
            .negotiation(NegotiationError(.refused, code: 1, description: "no")))
        #expect(
            try Self.failure(refusal, proxy: proxy).status
                == (kind == .httpConnect ? .receiveFailed : .proxyRefused))
    }

    @Test func `an interface that cannot be bound has another exit code than an unreachable host`() throws {
        let errors = { (operation: SocketError.Operation) in
            LoadFailure.channel(
                .connect(
                    host: "bind a socket", port: 80, [SocketError(code: EADDRNOTAVAIL, operation: operation)])
            )
        }
        #expect(try Self.failure(errors(.bind)).status == .badInterface)
        #expect(try Self.failure(errors(.connect)).status == .noConnection)
    }

    @Test func `each TLS setting that cannot be used has its exit code`() throws {
        for (setting, status) in [
            (TLSError.Setting.ciphers, FetchFailure.Status.badCipher), (.authorities, .badAuthorities),
            (.revocationLists, .badRevocationList), (.other, .noTLS),
        ] {
            let error = TLSError(.settings("--ciphers --cacert", setting))
            #expect(try Self.failure(.channel(.tls(error))).status == status)
        }
    }

    @Test func `a TLS failure after the handshake has the exit code of a failed receive`() throws {
        for reason in [
            TLSError.Reason.protocolViolation("bad record"), .alert(.handshakeFailure),
            .certificateRequired(.certificateRequired), .notTLS("wrong version number"),
        ] {
            let failure = LoadFailure.channel(.tls(TLSError(reason, host: "example.com")))
            #expect(try Self.failure(failure, scheme: "https").status == .noTLS)
            let late = try Self.failure(failure, scheme: "https", isRequestSent: true)
            #expect(late.status == .receiveFailed)
        }
        let reset = LoadFailure.channel(
            .connect(host: "h", port: 443, [SocketError(code: ECONNRESET, operation: .connect)]))
        #expect(try Self.failure(reset, scheme: "https").status == .noTLS)
        #expect(try Self.failure(reset).status == .receiveFailed)
        let proxy = StreamProxy(.httpConnect, host: "proxy", port: 1)
        #expect(try Self.failure(reset, scheme: "https", proxy: proxy).status == .receiveFailed)
    }

    @Test func `a sentence names options, and no words of the library's`() throws {
        let list = TLSError(
            .settings("TLSSettings.revocationLists (“c.pem”): no list could be read", .revocationLists))
        #expect(try Self.failure(.channel(.tls(list))).message == "--crlfile: c.pem: no list could be read")
        #expect(
            try Self.failure(.http(.unusedSwitch)).message
                == "example.com: The server switched to another protocol (101), which is not spoken here.")
        let error = SystemError("open", code: EISDIR)
        let failure = LoadFailure.file(.fileIsDirectory, sentence: "The file /a is a directory", error)
        let url = try FetchURL("file:///a")
        let message = FetchFailure(URLErrors.error(failure, url: url.url), url: url).message
        #expect(message.hasPrefix("The file /a is a directory"))
    }

    @Test func `TLS with the proxy has options of its own`() throws {
        let proxy = StreamProxy(.httpConnect, host: "proxy", port: 1, tls: TLSSettings())
        let selfSigned = CertificateProblem(.selfSigned, certificate: nil)
        let cases: [(TLSError.Reason, String)] = [
            (
                .certificate(selfSigned),
                "the certificate of h was issued by itself. If you trust it, name it in OPTIONcacert"
            ),
            (
                .certificateRequired(.certificateRequired),
                "h refused to go on with TLS: certificate required (alert 116). "
                    + "It asks for a certificate of this side's (OPTIONcert)"
            ),
            (.settings("TLSSettings.certificateAuthorities (.file “c”) is bad"), "OPTIONcacert: c is bad"),
            (.settings("TLSSettings.certificateAuthorities (.directory “d”)"), "OPTIONcapath: d"),
        ]
        for (reason, sentence) in cases {
            let message = { (error: ChannelError) in
                try Self.failure(.channel(error), scheme: "https", host: "h", proxy: proxy).message
            }
            let error = ChannelError.tls(TLSError(reason, host: "h"))
            #expect(try message(error) == sentence.replacingOccurrences(of: "OPTION", with: "--"))
            #expect(
                try message(.proxy(host: "h", error)) == "the proxy on the way to h cannot be used: "
                    + sentence.replacingOccurrences(of: "OPTION", with: "--proxy-"))
        }
    }

    @Test func `a proxy is named where its connection breaks, and not before TLS of the server behind it`()
        throws
    {
        let proxy = StreamProxy(.httpConnect, host: "h", port: 1)
        for error in [
            ChannelError.tls(TLSError(.closedDuringHandshake(nil), host: "h")),
            .broken(host: "h", port: 443, SocketError(code: ECONNRESET, operation: .read)),
        ] {
            let failure = try Self.failure(.channel(error), scheme: "https", host: "h", proxy: proxy)
            #expect(failure.message == error.description)
        }
        let error = ChannelError.broken(
            host: "h", port: 1, SocketError(code: ECONNRESET, operation: .read))
        #expect(
            try Self.failure(.channel(error), host: "h", proxy: proxy).message
                == "the connection to the proxy h, port 1, broke: could not read: "
                + "Connection reset by peer (ECONNRESET)")
    }

    @Test func `an answer of a proxy for the server names both`() throws {
        let proxy = StreamProxy(.httpConnect, host: "proxy", port: 1)
        let strange = LoadFailure.http(HTTPFailure(.peer(.invalidStatusLine(excerpt: "SSH"))))
        let plain = "The server does not answer in HTTP: its answer begins with “SSH”."
        #expect(
            try Self.failure(strange, proxy: proxy).message
                == "example.com, through the proxy proxy, port 1: \(plain) Check the proxy's kind and port.")
        let closed = LoadFailure.http(HTTPFailure(.peer(.closedBeforeResponse)))
        #expect(
            try Self.failure(closed, proxy: proxy).message
                == "example.com, through the proxy proxy, port 1: The server closed the connection without "
                + "an answer.")
        // In a tunnel it is the server's.
        #expect(
            try Self.failure(strange, scheme: "https", proxy: proxy).message == "example.com: \(plain)")
    }

    @Test func `a SOCKS proxy that breaks off or wants a password has its exit code, and -U is advised`()
        throws
    {
        let proxy = StreamProxy(.socks5, host: "proxy", port: 1)
        let reset = SocketError(code: ECONNRESET, operation: .read)
        for (host, status) in [("proxy", FetchFailure.Status.proxyRefused), ("example.com", .receiveFailed)] {
            let broken = LoadFailure.channel(.broken(host: host, port: 1, reset))
            #expect(try Self.failure(broken, proxy: proxy).status == status)
        }
        let wanted = NegotiationError(.authentication, code: 255, description: "it wants a password")
        #expect(
            try Self.failure(.channel(.negotiation(wanted)), proxy: proxy).message
                == "it wants a password (-U)")
    }

    @Test func `an exceeded total time is told from an exceeded time to connect`() throws {
        #expect(try Self.failure(.exceededTotalTime(seconds: 1)).isOutOfTotalTime)
        let late = LoadFailure.channel(.timedOut(host: "(--max-time)", port: 80, seconds: 1))
        #expect(try !Self.failure(late).isOutOfTotalTime)
        #expect(try Self.failure(late).status == .timedOut)
    }
}
