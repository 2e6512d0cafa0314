import Rondo
import RondoTestSupport
import Testing

/// Loads that take up the TLS session of an earlier one, on a new connection.
@Suite(.timeLimit(.minutes(5)), .leavesNoConnections) struct TLSResumptionTests {
    /// Leaves all of TLS to the settings.
    private final class Collector: NSObject, URLConnectionDataDelegate, Sendable {
        let metrics = Box<URLConnection.Metrics?>(nil)
        let log = EventLog()

        func connection(_ connection: URLConnection, didCollect metrics: URLConnection.Metrics) {
            self.metrics.value = metrics
        }

        func connectionDidFinishLoading(_ connection: URLConnection) { log.note("finish") }

        func connection(_ connection: URLConnection, didFailWithError error: any Error) {
            log.note("fail \((error as? URLError)?.errorCode ?? 0)")
        }
    }

    /// Wants to be asked.
    private final class Judge: NSObject, URLConnectionDataDelegate, Sendable {
        let log = EventLog()
        let accepts: Bool

        init(accepts: Bool) { self.accepts = accepts }

        func connection(_ connection: URLConnection, willSendRequestFor challenge: URLAuthenticationChallenge)
        {
            log.note("asked")
            if accepts {
                challenge.sender?.performDefaultHandling(for: challenge)
            } else {
                challenge.sender?.cancel(challenge)
            }
        }

        func connectionDidFinishLoading(_ connection: URLConnection) { log.note("finish") }

        func connection(_ connection: URLConnection, didFailWithError error: any Error) { log.note("fail") }
    }

    private static func run(
        _ target: URL, _ delegate: any URLConnectionDelegate & Sendable,
        _ change: @escaping @Sendable (inout TLSSettings) -> Void = { _ in }
    ) throws {
        try onLoopThread { loop in
            let connection = URLConnection(
                request: URLRequest(url: target), delegate: delegate, startImmediately: false)
            connection?.trustTestAuthority()
            connection?.configuration.cache = nil
            if let connection { change(&connection.configuration.tls) }
            connection?.start()
            loop.runOut()
        }
    }

    /// nginx that closes each connection after its response.
    private static func server(_ version: String) throws -> (TestServerProcess, Stranger.Directory, URL) {
        let folder = try Stranger.Directory()
        try folder.write(Data("hello".utf8), to: "page.txt")
        let (process, _, https) = try Stranger.nginx(
            directory: folder.path,
            http: "keepalive_timeout 0; ssl_protocols \(version); ssl_session_cache shared:tests:1m; "
                + "add_header X-Resumed $ssl_session_reused;")
        return (process, folder, url("https://localhost:\(https)/page.txt"))
    }

    private static func isResumed(
        _ target: URL, _ change: @escaping @Sendable (inout TLSSettings) -> Void = { _ in }
    ) throws -> Bool? {
        let collector = Collector()
        try run(target, collector, change)
        guard collector.log.entries == ["finish"] else { return nil }
        let transfers = collector.metrics.value?.transfers ?? []
        #expect(transfers.count == 1 && transfers.first?.isReusedConnection == false)
        return transfers.first?.isTLSResumed
    }

    @Test(arguments: ["TLSv1.2", "TLSv1.3"])
    func `UC-47 the second load takes up the session where no delegate has to be asked`(version: String)
        throws
    {
        let (process, folder, target) = try Self.server(version)
        defer { process.terminate() }
        #expect(try (0..<4).map { _ in try Self.isResumed(target) } == [false, true, true, true])
        // Loads that ask, are asked of each connection, and leave others what they had.
        for accepts in [true, false] {
            let judge = Judge(accepts: accepts)
            try Self.run(target, judge)
            #expect(judge.log.entries == ["asked", accepts ? "finish" : "fail"])
        }
        #expect(try Self.isResumed(target) == true)
        withExtendedLifetime(folder) {}
    }

    /// Saves nothing, and notes in nginx's words whether a session was taken up.
    private final class Downloader: NSObject, URLDownloadDelegate, Sendable {
        let log = EventLog()

        func download(_ download: URLDownload, didReceive response: URLResponse) {
            log.note((response as? HTTPURLResponse)?.value(forHTTPHeaderField: "X-Resumed") ?? "none")
        }

        func download(_ download: URLDownload, didFailWithError error: any Error) { log.note("fail") }
    }

    private final class AskedDownloader: NSObject, URLDownloadDelegate, Sendable {
        let log = EventLog()

        func download(
            _ download: URLDownload, canAuthenticateAgainstProtectionSpace protectionSpace: URLProtectionSpace
        ) -> Bool {
            log.note("asked")
            return false
        }

        func download(_ download: URLDownload, didReceive response: URLResponse) {
            log.note((response as? HTTPURLResponse)?.value(forHTTPHeaderField: "X-Resumed") ?? "none")
        }
    }

    /// Is asked as the delegate of a download, and has no method that is asked for a connection.
    private final class AskedForDownloads: NSObject, URLConnectionDataDelegate, URLDownloadDelegate, Sendable
    {
        let log = EventLog()

        func connectionDidFinishLoading(_ connection: URLConnection) { log.note("finish") }

        func download(
            _ download: URLDownload, canAuthenticateAgainstProtectionSpace protectionSpace: URLProtectionSpace
        ) -> Bool {
            log.note("asked")
            return false
        }

        func downloadDidFinish(_ download: URLDownload) { log.note("saved") }
    }

    private static func download(
        _ target: URL, to path: String, _ delegate: any URLDownloadDelegate & Sendable
    ) throws {
        try onLoopThread { loop in
            let download = URLDownload(
                request: URLRequest(url: target), delegate: delegate, startImmediately: false)
            download.configuration.tls.certificateAuthorities = [.file(TestCertificates.shared.authorityPath)]
            download.configuration.cache = nil
            download.setDestination(path, allowOverwrite: true)
            download.start()
            withExtendedLifetime(download) { _ = loop.runOut() }
        }
    }

    @Test(arguments: ["TLSv1.2", "TLSv1.3"])
    func `UC-47 downloads take up sessions where their delegate has no method that is asked`(version: String)
        throws
    {
        let (process, folder, target) = try Self.server(version)
        defer { process.terminate() }
        let (downloader, asked) = (Downloader(), AskedDownloader())
        let path = folder.path + "/downloaded"
        for _ in 0..<3 { try Self.download(target, to: path, downloader) }
        // The first of the class shows that it is not asked.
        #expect(Array(downloader.log.entries.dropFirst()) == ["r", "r"])
        for _ in 0..<2 { try Self.download(target, to: path, asked) }
        #expect(asked.log.entries == ["asked", ".", "asked", "."])
        withExtendedLifetime(folder) {}
    }

    @Test
    func `UC-47 a delegate with challenge methods for downloads only is asked in downloads alone`() throws {
        let (process, folder, target) = try Self.server("TLSv1.3")
        defer { process.terminate() }
        let delegate = AskedForDownloads()
        for _ in 0..<2 {
            try Self.run(target, delegate)
            try Self.download(target, to: folder.path + "/downloaded", delegate)
        }
        #expect(delegate.log.entries == ["finish", "asked", "saved", "finish", "asked", "saved"])
        withExtendedLifetime(folder) {}
    }

    /// Apart from the test, which is asynchronous.
    private static func synchronousResponse(to request: URLRequest) throws -> URLResponse? {
        var response: URLResponse?
        _ = try URLConnection.sendSynchronousRequest(request, returning: &response)
        return response
    }

    @Test func `UC-47 loads without a delegate of the program's take up sessions`() async {
        await #expect(processExitsWith: .success) {
            // Their settings are those by default.
            setenv("SSL_CERT_FILE", TestCertificates.shared.authorityPath, 1)
            let (process, folder, target) = try Self.server("TLSv1.2 TLSv1.3")
            var request = URLRequest(url: target)
            request.cachePolicy = .reloadIgnoringLocalCacheData
            var resumed: [String?] = []
            let note = { (response: URLResponse?) in
                resumed.append((response as? HTTPURLResponse)?.value(forHTTPHeaderField: "X-Resumed"))
            }
            for _ in 0..<3 { note(try await URLConnection.data(for: request).1) }
            // The first load of another class of Rondo's delegates, too.
            for _ in 0..<2 {
                let (bytes, response) = try await URLConnection.bytes(for: request)
                for try await _ in bytes {}
                note(response)
            }
            for _ in 0..<2 { note(try Self.synchronousResponse(to: request)) }
            process.terminate()
            // In the words of nginx.
            precondition(resumed == [".", "r", "r", "r", "r", "r", "r"], "\(resumed)")
            withExtendedLifetime(folder) {}
        }
    }

    @Test(arguments: ["TLSv1.2", "TLSv1.3"])
    func `UC-47 a resumed TLS session skips no check that a load demands`(version: String) throws {
        let (process, folder, target) = try Self.server(version)
        defer { process.terminate() }
        let certificates = TestCertificates.shared
        #expect(try Self.isResumed(target) == false)
        #expect(try Self.isResumed(target) == true)
        // Refused, each for its reason.
        #expect(try Self.isResumed(target) { $0.certificateAuthorities = [] } == nil)
        #expect(try Self.isResumed(target) { $0.pinnedKeys = [Data(count: 32)] } == nil)
        #expect(try Self.isResumed(target) { $0.requiresRevocationLists = true } == nil)
        #expect(
            try Self.isResumed(target) { $0.revocationLists = [.file(certificates.oldRevocationListPath)] }
                == nil)
        #expect(try Self.isResumed(target) { $0.serverName = "elsewhere.invalid" } == nil)
        #expect(try Self.isResumed(target) { $0.trustHandler = TLSTrustHandler { $0.reject() } } == nil)
        #expect(try Self.isResumed(target) { $0.resumesSessions = false } == false)
        // Careless settings leave nothing for careful ones.
        #expect(
            try (0..<2).map { _ in
                try Self.isResumed(target) {
                    $0.certificateAuthorities = []
                    $0.verification = .none
                }
            } == [false, true])
        #expect(try Self.isResumed(target) { $0.certificateAuthorities = [] } == nil)
        // With a list that is good the session is kept under it.
        #expect(
            try (0..<2).map { _ in
                try Self.isResumed(target) { $0.revocationLists = [.file(certificates.revocationListPath)] }
            } == [false, true])
        #expect(try Self.isResumed(target) == true)
        withExtendedLifetime(folder) {}
    }
}
