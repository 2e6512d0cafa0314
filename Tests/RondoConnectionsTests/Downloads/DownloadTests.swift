import Rondo
import RondoMutex
import RondoTestSupport
import Testing

/// Keeps what a download tells, in order, and can do something at each call.
private final class DownloadRecorder: NSObject, URLDownloadDelegate, Sendable {
    private let calls = Mutex<[String]>([])
    private let onCall: @Sendable (String, URLDownload) -> Void
    /// The kernel's code below the error.
    let causeCode = Box<Int?>(nil)

    init(onCall: @escaping @Sendable (String, URLDownload) -> Void = { _, _ in }) {
        self.onCall = onCall
    }

    var log: [String] { calls.withLock { $0 } }

    func note(_ call: String, _ download: URLDownload) {
        calls.withLock { $0.append(call) }
        onCall(call, download)
    }

    func downloadDidBegin(_ download: URLDownload) { note("begin", download) }

    func download(
        _ download: URLDownload, willSend request: URLRequest, redirectResponse: URLResponse?
    ) -> URLRequest? {
        note(
            "send \(request.url?.path ?? "-")\(redirectResponse == nil ? "" : " after a redirect")", download)
        return request
    }

    func download(_ download: URLDownload, didReceive response: URLResponse) { note("response", download) }

    func download(_ download: URLDownload, decideDestinationWithSuggestedFilename filename: String) {
        note("decide \(filename)", download)
    }

    func download(_ download: URLDownload, didCreateDestination path: String) {
        note("create \(URL(fileURLWithPath: path).lastPathComponent)", download)
    }

    func download(_ download: URLDownload, didReceiveDataOfLength length: Int) {
        if log.last != "data" { note("data", download) }
    }

    func downloadDidFinish(_ download: URLDownload) { note("finish", download) }

    func download(_ download: URLDownload, didFailWithError error: any Error) {
        let cause = (error as NSError).userInfo[NSUnderlyingErrorKey] as? NSError
        causeCode.value = cause?.domain == NSPOSIXErrorDomain ? cause?.code : nil
        note("fail \((error as? URLError)?.errorCode ?? 0)", download)
    }
}

/// Is asked about challenges, and about what is to be decoded.
private final class AskedDownload: NSObject, URLDownloadDelegate, Sendable {
    let recorder: DownloadRecorder
    let wants: Bool
    let usesStorage: Bool
    /// Of the content codings, so many are undone.
    let decodes: Int
    let answer: @Sendable (URLAuthenticationChallenge) -> Void

    init(
        _ recorder: DownloadRecorder, wants: Bool = true, usesStorage: Bool = true, decodes: Int = .max,
        _ answer: @escaping @Sendable (URLAuthenticationChallenge) -> Void = { _ in }
    ) {
        self.recorder = recorder
        self.wants = wants
        self.usesStorage = usesStorage
        self.decodes = decodes
        self.answer = answer
    }

    func downloadDidBegin(_ download: URLDownload) { recorder.downloadDidBegin(download) }

    func download(
        _ download: URLDownload, willSend request: URLRequest, redirectResponse: URLResponse?
    ) -> URLRequest? {
        recorder.download(download, willSend: request, redirectResponse: redirectResponse)
    }

    func downloadShouldUseCredentialStorage(_ download: URLDownload) -> Bool {
        recorder.note("storage?", download)
        return usesStorage
    }

    func download(
        _ download: URLDownload, canAuthenticateAgainstProtectionSpace protectionSpace: URLProtectionSpace
    ) -> Bool {
        recorder.note("can \(protectionSpace.realm ?? "-")?", download)
        return wants
    }

    func download(_ download: URLDownload, didReceive challenge: URLAuthenticationChallenge) {
        recorder.note("challenge \(challenge.previousFailureCount)", download)
        answer(challenge)
    }

    func download(_ download: URLDownload, didCancel challenge: URLAuthenticationChallenge) {
        recorder.note("cancelled", download)
    }

    func download(_ download: URLDownload, didReceive response: URLResponse) {
        recorder.note("response \((response as? HTTPURLResponse)?.statusCode ?? 0)", download)
    }

    func download(_ download: URLDownload, shouldDecodeSourceDataOfMIMEType encodingType: String) -> Bool {
        defer { recorder.note("decode \(encodingType)", download) }
        return recorder.log.count { $0.hasPrefix("decode") } < decodes
    }

    func download(_ download: URLDownload, decideDestinationWithSuggestedFilename filename: String) {
        recorder.download(download, decideDestinationWithSuggestedFilename: filename)
    }

    func download(_ download: URLDownload, didCreateDestination path: String) {
        recorder.download(download, didCreateDestination: path)
    }

    func download(_ download: URLDownload, didReceiveDataOfLength length: Int) {
        recorder.download(download, didReceiveDataOfLength: length)
    }

    func downloadDidFinish(_ download: URLDownload) { recorder.downloadDidFinish(download) }

    func download(_ download: URLDownload, didFailWithError error: any Error) {
        recorder.download(download, didFailWithError: error)
    }
}

/// Would answer a challenge, and has not said so.
private final class UnaskedDownload: NSObject, URLDownloadDelegate, Sendable {
    let recorder: DownloadRecorder

    init(_ recorder: DownloadRecorder) { self.recorder = recorder }

    func download(_ download: URLDownload, didReceive challenge: URLAuthenticationChallenge) {
        Issue.record("a challenge")
        challenge.sender?.cancel(challenge)
    }

    func downloadDidFinish(_ download: URLDownload) { recorder.downloadDidFinish(download) }

    func download(_ download: URLDownload, didFailWithError error: any Error) {
        recorder.download(download, didFailWithError: error)
    }
}

@Suite(.timeLimit(.minutes(5)), .leavesNoConnections) struct DownloadTests {
    /// A folder of its own, removed at the end.
    private static func inFolder<Result>(_ body: (String) throws -> Result) throws -> Result {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent(
            "rondo-download-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        // A temporary folder that cannot be removed does not fail the test.
        defer { try? FileManager.default.removeItem(at: folder) }
        return try body(folder.path)
    }

    private static func server() throws -> TestServer {
        try TestServer.answering { _ in longText(300_000) }
    }

    /// Runs the calling thread's loop until the download has ended.
    private static func run(_ loop: RunLoop, _ recorder: DownloadRecorder) {
        _ = loop.run(until: { recorder.log.last == "finish" || recorder.log.last?.hasPrefix("fail") ?? false }
        )
    }

    @Test func `UC-68 a download tells its steps in order and writes the file`() throws {
        try Self.inFolder { folder in
            let server = try Self.server()
            let recorder = DownloadRecorder { call, download in
                if call.hasPrefix("decide") {
                    download.setDestination(folder + "/kept.bin", allowOverwrite: true)
                    download.setDestination(folder + "/late.bin", allowOverwrite: true)
                }
            }
            let url = server.url("/name.bin")
            try onLoopThread { loop in
                let download = URLDownload(request: URLRequest(url: url), delegate: recorder)
                #expect(recorder.log == [])
                Self.run(loop, recorder)
                withExtendedLifetime(download) {}
            }
            #expect(
                recorder.log == ["begin", "response", "decide name.bin", "create kept.bin", "data", "finish"])
            let kept = try Data(contentsOf: URL(fileURLWithPath: folder + "/kept.bin"))
            #expect(kept == Data(longText(300_000).utf8))
        }
    }

    @Test func `UC-70 a download that is cancelled before its start does not start`() throws {
        let server = try TestServer { peer in _ = try peer.readRequest() }
        let recorder = DownloadRecorder { _, _ in }
        try onLoopThread { loop in
            let download = URLDownload(
                request: URLRequest(url: server.url()), delegate: recorder, startImmediately: false)
            download.schedule(in: loop, forMode: .default)
            download.cancel()
            download.start()
            #expect(loop.runOut() == .finished)
        }
        #expect(recorder.log == [] && server.accepted == 0)
    }

    @Test func `UC-4 a download is driven in the modes that it is scheduled in, and told there`() throws {
        try Self.inFolder { folder in
            let server = try Self.server()
            let modes = Box<Set<String>>([])
            let recorder = DownloadRecorder { _, _ in
                modes.mutate { _ = $0.insert(RunLoop.current.currentMode?.rawValue ?? "none") }
            }
            let url = server.url("/name.bin")
            try onLoopThread { loop in
                let download = URLDownload(
                    request: URLRequest(url: url), delegate: recorder, startImmediately: false)
                download.label = "the update"
                download.schedule(in: loop, forMode: .work)
                download.setDestination(folder + "/file", allowOverwrite: true)
                #expect(!loop.debugDescription.contains("the update"))
                download.start()
                // It is not of the default mode, which is therefore empty.
                #expect(loop.run(in: .default, for: .infinity, returnAfterSourceHandled: false) == .finished)
                #expect(recorder.log == [])
                while recorder.log.last != "finish", loop.run(mode: .work, before: .distantFuture) {}
            }
            #expect(recorder.log == ["begin", "response", "create file", "data", "finish"])
            #expect(modes.value == [RunLoop.Mode.work.rawValue])
        }
    }

    @Test func `UC-68 an error status is saved unless the download is to fail on it`() throws {
        let server = try TestServer { peer in
            while true {
                _ = try peer.readRequest()
                try peer.respond("404 Not Found", body: "no")
            }
        }
        try Self.inFolder { folder in
            for fails in [false, true] {
                let recorder = DownloadRecorder()
                let path = folder + "/\(fails)"
                let url = server.url("/x")
                try onLoopThread { loop in
                    let download = URLDownload(
                        request: URLRequest(url: url), delegate: recorder, startImmediately: false)
                    download.failsOnErrorStatus = fails
                    download.setDestination(path, allowOverwrite: true)
                    download.start()
                    Self.run(loop, recorder)
                }
                #expect(
                    recorder.log
                        == (fails
                            ? ["begin", "response", "fail \(URLError.Code.badServerResponse.rawValue)"]
                            : ["begin", "response", "create false", "data", "finish"]))
                #expect(FileManager.default.fileExists(atPath: path) == !fails)
            }
        }
    }

    /// zlib's format without compression (RFC 1950 and RFC 1951 §3.2.4).
    private static func deflated(_ data: Data) -> Data {
        var (low, high): (UInt32, UInt32) = (1, 0)
        for byte in data {
            low = (low + UInt32(byte)) % 65_521
            high = (high + low) % 65_521
        }
        var output: [UInt8] = [0x78, 0x01]
        for start in stride(from: 0, to: data.count, by: 65_535) {
            let block = data.dropFirst(start).prefix(65_535)
            let count = UInt16(block.count)
            output.append(start + block.count == data.count ? 1 : 0)
            output += [count, ~count].flatMap { [UInt8($0 & 0xFF), UInt8($0 >> 8)] }
            output += block
        }
        output += [high, low].flatMap { [UInt8($0 >> 8), UInt8($0 & 0xFF)] }
        return Data(output)
    }

    /// Redirects `/old`, asks for a password, and encodes its content twice.
    private static func askingServer(realm: String) throws -> TestServer {
        let twice = deflated(deflated(Data(longText(100_000).utf8)))
        let good = "Basic " + Data("user:pass".utf8).base64EncodedString()
        return try TestServer { peer in
            while true {
                let request = try peer.readRequest()
                if request.target == "/old" {
                    try peer.respond("302 Found", ["Location: /new.bin"])
                } else if request.value("Authorization") != good {
                    try peer.respond(
                        "401 Unauthorized", ["WWW-Authenticate: Basic realm=\"\(realm)\""], body: "who?")
                } else {
                    try peer.send(
                        "HTTP/1.1 200 OK\r\nContent-Encoding: deflate, deflate\r\n"
                            + "Content-Length: \(twice.count)\r\n\r\n")
                    try peer.send(Array(twice))
                }
            }
        }
    }

    private static func run(_ target: URL, _ delegate: AskedDownload) throws {
        try onLoopThread { loop in
            let download = URLDownload(request: URLRequest(url: target), delegate: delegate)
            run(loop, delegate.recorder)
            withExtendedLifetime(download) {}
        }
    }

    @Test func `UC-68 redirects come first, then challenges, the response, and what is to be decoded`() throws
    {
        try Self.inFolder { folder in
            let server = try Self.askingServer(realm: "download")
            let text = Data(longText(100_000).utf8)
            let once = Self.deflated(text)
            // All is decoded, one coding, none.
            for (decodes, want) in [
                (2, text), (1, once), (0, Self.deflated(once)),
            ] {
                let path = folder + "/file-\(decodes)"
                let recorder = DownloadRecorder { call, download in
                    if call.hasPrefix("decide") { download.setDestination(path, allowOverwrite: false) }
                }
                let delegate = AskedDownload(recorder, usesStorage: false, decodes: decodes) {
                    let credential = URLCredential(
                        user: "user", password: $0.previousFailureCount == 0 ? "wrong" : "pass",
                        persistence: .forSession)
                    $0.sender?.use(credential, for: $0)
                }
                var target = server.url("/old")
                // Not in its canonical form.
                target = url(target.absoluteString.replacingOccurrences(of: "http:", with: "HTTP:"))
                try Self.run(target, delegate)
                let asked = ["decode application/zlib", "decode application/zlib"].prefix(min(2, decodes + 1))
                #expect(
                    recorder.log == [
                        "begin", "storage?", "send /old", "send /new.bin after a redirect", "can download?",
                        "challenge 0", "can download?", "challenge 1", "response 200",
                    ] + asked + ["decide new.bin", "create file-\(decodes)", "data", "finish"])
                #expect(try Data(contentsOf: URL(fileURLWithPath: path)) == want)
            }
        }
    }

    @Test func `UC-22 of a body whose parts replace each other a download saves the last one, in one file`()
        throws
    {
        let server = try TestServer { peer in
            _ = try peer.readRequest()
            try peer.send(
                "HTTP/1.1 200 OK\r\nContent-Type: multipart/x-mixed-replace; boundary=b\r\n\r\n"
                    + "--b\r\n\r\nthe first one\r\n--b\r\n\r\nsecond\r\n--b\r\n\r\nlast\r\n--b--")
            peer.finish()
            peer.waitForEnd()
        }
        try Self.inFolder { folder in
            let recorder = DownloadRecorder()
            try onLoopThread { loop in
                let download = URLDownload(request: URLRequest(url: server.url("/x")), delegate: recorder)
                download.setDestination(folder + "/part", allowOverwrite: false)
                Self.run(loop, recorder)
            }
            #expect(
                recorder.log == [
                    "begin", "response", "create part", "response", "data", "response", "data", "response",
                    "data", "finish",
                ])
            #expect(try FileManager.default.contentsOfDirectory(atPath: folder) == ["part"])
            #expect(try Data(contentsOf: URL(fileURLWithPath: folder + "/part")) == Data("last".utf8))
        }
    }

    @Test func `UC-30 a download that refuses a redirect saves the redirect's own body`() throws {
        final class Refusing: NSObject, URLDownloadDelegate, Sendable {
            let recorder = DownloadRecorder()

            func download(
                _ download: URLDownload, willSend request: URLRequest, redirectResponse: URLResponse?
            ) -> URLRequest? {
                redirectResponse == nil ? request : nil
            }

            func download(_ download: URLDownload, didReceive response: URLResponse) {
                recorder.note("response \((response as? HTTPURLResponse)?.statusCode ?? 0)", download)
            }

            func downloadDidFinish(_ download: URLDownload) { recorder.downloadDidFinish(download) }
        }
        let server = try TestServer { peer in
            _ = try peer.readRequest()
            try peer.respond("302 Found", ["Location: /elsewhere"], body: "moved")
            peer.waitForEnd()
        }
        try Self.inFolder { folder in
            let delegate = Refusing()
            try onLoopThread { loop in
                let download = URLDownload(request: URLRequest(url: server.url("/x")), delegate: delegate)
                download.setDestination(folder + "/refused", allowOverwrite: false)
                Self.run(loop, delegate.recorder)
            }
            #expect(delegate.recorder.log == ["response 302", "finish"])
            #expect(try Data(contentsOf: URL(fileURLWithPath: folder + "/refused")) == Data("moved".utf8))
        }
    }

    @Test func `UC-45 a download that has not said so is asked nothing, and one that cancels is told`() throws
    {
        let server = try Self.askingServer(realm: "unasked")
        try Self.inFolder { folder in
            // Without the question: D22.
            let recorder = DownloadRecorder()
            try onLoopThread { loop in
                let download = URLDownload(
                    request: URLRequest(url: server.url("/x")), delegate: UnaskedDownload(recorder))
                download.setDestination(folder + "/a", allowOverwrite: true)
                Self.run(loop, recorder)
            }
            #expect(recorder.log == ["finish"])
            #expect(try Data(contentsOf: URL(fileURLWithPath: folder + "/a")) == Data("who?".utf8))
        }
        let refusing = AskedDownload(DownloadRecorder(), wants: false) { _ in Issue.record("a challenge") }
        try Self.inFolder { folder in
            try onLoopThread { loop in
                let download = URLDownload(request: URLRequest(url: server.url("/x")), delegate: refusing)
                download.setDestination(folder + "/b", allowOverwrite: true)
                Self.run(loop, refusing.recorder)
            }
        }
        #expect(
            refusing.recorder.log == [
                "begin", "storage?", "can unasked?", "response 401", "create b", "data", "finish",
            ])
        let cancelling = AskedDownload(DownloadRecorder()) { $0.sender?.cancel($0) }
        try Self.run(server.url("/x"), cancelling)
        #expect(
            cancelling.recorder.log == [
                "begin", "storage?", "can unasked?", "challenge 0", "cancelled", "fail -1012",
            ])
    }

    @Test func `UC-69 an early destination is not asked for, and an existing name gets a number`() throws {
        try Self.inFolder { folder in
            let server = try Self.server()
            let path = folder + "/file.txt"
            try Data("there".utf8).write(to: URL(fileURLWithPath: path))
            let recorder = DownloadRecorder()
            let url = server.url("/x")
            try onLoopThread { loop in
                let download = URLDownload(request: URLRequest(url: url), delegate: recorder)
                download.setDestination(path, allowOverwrite: false)
                Self.run(loop, recorder)
            }
            #expect(recorder.log == ["begin", "response", "create file-2.txt", "data", "finish"])
            #expect(try Data(contentsOf: URL(fileURLWithPath: path)) == Data("there".utf8))
        }
    }

    @Test func `UC-70 cancel ends a download without a further callback and lets go of all`() throws {
        let server = try Self.server()
        let recorder = DownloadRecorder()
        let weak = Box<WeakBox<URLDownload>?>(nil)
        let url = server.url("/x")
        try onLoopThread { loop in
            let download = URLDownload(request: URLRequest(url: url), delegate: recorder)
            weak.value = WeakBox(download)
            download.cancel()
            #expect(loop.runOut() == .finished)
        }
        #expect(recorder.log == [])
        #expect(weak.value?.isEmpty == true)
    }

    @Test func `UC-70 a download that another thread cancels before its file is made says no more`() throws {
        try Self.inFolder { folder in
            let server = try Self.server()
            let path = folder + "/file"
            let download = Box<URLDownload?>(nil)
            let recorder = DownloadRecorder { call, _ in
                guard call == "response" else { return }
                let isCancelled = DispatchSemaphore(value: 0)
                let made = download.value
                Thread.detachNewThread {
                    made?.cancel()
                    isCancelled.signal()
                }
                isCancelled.wait()
            }
            let target = server.url("/x")
            let ended = try onLoopThread { loop in
                let made = URLDownload(request: URLRequest(url: target), delegate: recorder)
                made.setDestination(path, allowOverwrite: true)
                download.value = made
                return loop.runOut()
            }
            #expect(ended == .finished)
            #expect(recorder.log == ["begin", "response"])
            #expect(!FileManager.default.fileExists(atPath: path))
        }
    }

    @Test func `UC-70 a download onto a FIFO is an error, and keeps no loop`() throws {
        for hasReader in [false, true] {
            try Self.inFolder { folder in
                let server = try Self.server()
                let path = folder + "/pipe"
                #expect(mkfifo(path, 0o600) == 0)
                let reader = hasReader ? open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC) : -1
                defer { if hasReader { close(reader) } }
                let recorder = DownloadRecorder { _, _ in }
                let target = server.url("/x")
                let ended = try onLoopThread { loop in
                    let made = URLDownload(request: URLRequest(url: target), delegate: recorder)
                    made.setDestination(path, allowOverwrite: true)
                    return withExtendedLifetime(made) { loop.runOut() }
                }
                #expect(ended == .finished)
                #expect(recorder.log.last?.hasPrefix("fail") ?? false, "\(recorder.log)")
                #expect(recorder.causeCode.value != nil)
                var status = stat()
                #expect(stat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFIFO)
            }
        }
    }

    /// By a link, so that a failure removes only that.
    @Test func `UC-70 a cancelled download to the null device removes nothing`() throws {
        try Self.inFolder { folder in
            let server = try Self.server()
            let path = folder + "/null"
            #expect(symlink("/dev/null", path) == 0)
            let recorder = DownloadRecorder { call, download in
                if call == "data" { download.cancel() }
            }
            let target = server.url("/x")
            let ended = try onLoopThread { loop in
                let made = URLDownload(request: URLRequest(url: target), delegate: recorder)
                made.setDestination(path, allowOverwrite: true)
                return withExtendedLifetime(made) { loop.runOut() }
            }
            #expect(ended == .finished)
            #expect(recorder.log.last == "data")
            var status = stat()
            #expect(lstat(path, &status) == 0)
        }
    }

    @Test func `UC-16 a download that cannot begin fails, and its loop has nothing left to run for`() throws {
        let recorder = DownloadRecorder()
        try onLoopThread { loop in
            _ = URLDownload(request: URLRequest(url: url("nothing://there")), delegate: recorder)
            #expect(loop.runOut() == .finished)
        }
        #expect(recorder.log == ["fail -1002"])
    }

    @Test func `a download says why it makes no callback`() throws {
        let server = try Self.server()
        try Self.inFolder { folder in
            let recorder = DownloadRecorder()
            let target = server.url("/x")
            let found = try onLoopThread { loop -> [DeliveryObstacle] in
                let download = URLDownload(
                    request: URLRequest(url: target), delegate: recorder, startImmediately: false)
                download.schedule(in: loop, forMode: .work)
                download.setDestination(folder + "/file", allowOverwrite: true)
                var found = [download.whyNotDelivering]
                download.start()
                found.append(download.whyNotDelivering)
                loop.runInVain(.other, for: 0.001)
                found.append(download.whyNotDelivering)
                while recorder.log.last != "finish", loop.run(mode: .work, before: .distantFuture) {}
                found.append(download.whyNotDelivering)
                return found
            }
            #expect(found.map(\.reason) == [.notScheduled, .loopNeverRan, .loopNotRunning, .invalid])
            #expect(found.first?.description == "it has not been started: call start()")
        }
    }

    @Test func `a download that cannot begin, and one that was cancelled, say why they make no callback`()
        throws
    {
        let recorder = DownloadRecorder()
        let found = try onLoopThread { loop -> [DeliveryObstacle] in
            let request = URLRequest(url: url("nothing://there"))
            let failing = URLDownload(request: request, delegate: recorder)
            let before = failing.whyNotDelivering
            #expect(loop.runOut() == .finished)
            let cancelled = URLDownload(request: request, delegate: recorder, startImmediately: false)
            cancelled.cancel()
            return [before, failing.whyNotDelivering, cancelled.whyNotDelivering]
        }
        #expect(found.map(\.reason) == [.loopNeverRan, .invalid, .invalid])
        #expect(recorder.log == ["fail -1002"])
    }

    @Test func `UC-16 a download that is cancelled when it begins ends the run`() throws {
        let server = try Self.server()
        let recorder = DownloadRecorder { call, download in
            if call == "begin" { download.cancel() }
        }
        try onLoopThread { loop in
            _ = URLDownload(request: URLRequest(url: server.url("/x")), delegate: recorder)
            #expect(loop.runOut() == .finished)
        }
        #expect(recorder.log == ["begin"])
    }

    @Test func `UC-70 a cancelled download's partial file is removed, unless it is to stay`() throws {
        try Self.inFolder { folder in
            let server = try Self.server()
            let url = server.url("/x")
            for deletes in [true, false] {
                let path = folder + "/partial-\(deletes)"
                let recorder = DownloadRecorder { call, download in
                    if call == "data" { download.cancel() }
                }
                try onLoopThread { loop in
                    let download = URLDownload(request: URLRequest(url: url), delegate: recorder)
                    download.setDestination(path, allowOverwrite: true)
                    download.deletesFileUponFailure = deletes
                    #expect(loop.runOut() == .finished)
                }
                #expect(recorder.log.last == "data")
                #expect(FileManager.default.fileExists(atPath: path) == !deletes)
            }
        }
    }
}
