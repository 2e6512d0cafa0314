import Rondo
import RondoTestSupport
import Testing

/// Answers by a response that names its file itself.
private final class NamingProtocol: URLProtocol {
    /// A response whose class suggests a name as a server has sent it.
    // `@unchecked` as its superclass is: nothing in it changes after it was made.
    private final class Named: URLResponse, @unchecked Sendable {
        override var suggestedFilename: String? { "../\u{202E}-.profile" }
    }

    override class func canInit(with request: URLRequest) -> Bool { request.url?.scheme == "rondo-name" }
    override class func canonicalRequest(for request: URLRequest) -> URLRequest { request }

    override func startLoading() {
        guard let url = request.url else { return }
        let response = Named(url: url, mimeType: nil, expectedContentLength: 2, textEncodingName: nil)
        client?.urlProtocol(self, didReceive: response, cacheStoragePolicy: .notAllowed)
        client?.urlProtocol(self, didLoad: Data("ok".utf8))
        client?.urlProtocolDidFinishLoading(self)
    }

    override func stopLoading() {}
}

/// Takes the name that is proposed, in a folder of its own.
private final class NameTaker: NSObject, URLDownloadDelegate, Sendable {
    let log = EventLog()
    let folder: String

    init(_ folder: String) { self.folder = folder }

    func download(_ download: URLDownload, decideDestinationWithSuggestedFilename filename: String) {
        log.note(filename)
        download.setDestination("\(folder)/\(filename)", allowOverwrite: true)
    }

    func downloadDidFinish(_ download: URLDownload) { log.note("finish") }

    func download(_ download: URLDownload, didFailWithError error: any Error) { log.note("fail \(error)") }
}

/// Under which name a download proposes to be saved.
@Suite(.timeLimit(.minutes(5)), .leavesNoConnections) struct DownloadNameTests {
    private static func names(_ target: URL) throws -> [String] {
        let directory = try Stranger.Directory()
        let taker = NameTaker(directory.path)
        try onLoopThread { loop in
            let download = URLDownload(request: URLRequest(url: target), delegate: taker)
            withExtendedLifetime(download) { _ = loop.runOut() }
        }
        let files = try FileManager.default.contentsOfDirectory(atPath: directory.path)
        return taker.log.entries + files
    }

    @Test func `UC-26 a download proposes no hidden file, no option and no other folder`() throws {
        let server = try TestServer { peer in
            _ = try peer.readRequest()
            try peer.respond(
                "200 OK", ["Content-Disposition: attachment; ; filename=\"-.\u{202E}x/.bashrc\""], body: "ok")
            peer.waitForEnd()
        }
        #expect(try Self.names(server.url()) == ["bashrc", "finish", "bashrc"])
    }

    @Test
    func
        `UC-26 a file name of a protocol of the program begins with no dot, and holds no control characters`()
        throws
    {
        URLProtocol.registerClass(NamingProtocol.self)
        defer { URLProtocol.unregisterClass(NamingProtocol.self) }
        #expect(try Self.names(url("rondo-name://x/y")) == ["profile", "finish", "profile"])
    }
}
