import Rondo
import RondoMutex
import RondoTestSupport

/// A delegate of uploads and downloads that writes down what it is told: "stream", "sent", "data", "wrote" (any number of these
/// in a row is one), "resumed 10/20", "file", "became", "complete", "complete -999".
final class TransferNotes: NSObject, URLSessionDataDelegate, URLSessionDownloadDelegate, Sendable {
    private struct State {
        var calls: [String] = []
        var errors: [URLError] = []
        var sent: (sum: Int64, total: Int64, expected: Int64) = (0, 0, 0)
        var written: (sum: Int64, total: Int64, expected: Int64) = (0, 0, 0)
        var content: Data?
        var file: URL?
        var tasks: [URLSessionTask] = []
    }

    private let state = Mutex(State())
    private let stream: @Sendable () -> InputStream?
    private let hook: @Sendable (String, URLSessionTask) -> Void
    private let destination: URL?

    /// - Parameters:
    ///   - destination: Where files are moved to.
    ///   - stream: Makes new body streams.
    ///   - hook: Called in each call, after it was noted.
    init(
        movingTo destination: URL? = nil, stream: @escaping @Sendable () -> InputStream? = { nil },
        hook: @escaping @Sendable (String, URLSessionTask) -> Void = { _, _ in }
    ) {
        self.destination = destination
        self.stream = stream
        self.hook = hook
    }

    var calls: [String] { state.withLock { $0.calls } }
    var errors: [URLError] { state.withLock { $0.errors } }
    var sent: [Int64] { state.withLock { [$0.sent.sum, $0.sent.total, $0.sent.expected] } }
    var written: [Int64] { state.withLock { [$0.written.sum, $0.written.total, $0.written.expected] } }
    /// The content of the last file, which is read in the call that names the file.
    var content: Data? { state.withLock { $0.content } }
    var file: URL? { state.withLock { $0.file } }
    /// Those of the calls, each once.
    var tasks: [URLSessionTask] { state.withLock { $0.tasks } }

    func waitForEnds(_ count: Int = 1) throws {
        try waitFor("\(count) ends") { calls.count { $0.hasPrefix("complete") } >= count ? () : nil }
    }

    private func note(_ call: String, _ task: URLSessionTask) {
        state.withLock { state in
            if !["sent", "wrote", "data"].contains(call) || state.calls.last != call {
                state.calls.append(call)
            }
            if !state.tasks.contains(where: { $0 === task }) { state.tasks.append(task) }
        }
        hook(call, task)
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        completionHandler(.useCredential, URLCredential(user: "u", password: "p", persistence: .none))
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask,
        needNewBodyStream completionHandler: @escaping @Sendable (InputStream?) -> Void
    ) {
        note("stream", task)
        completionHandler(stream())
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, didSendBodyData bytesSent: Int64, totalBytesSent: Int64,
        totalBytesExpectedToSend: Int64
    ) {
        state.withLock { state in
            state.sent = (state.sent.sum + bytesSent, totalBytesSent, totalBytesExpectedToSend)
        }
        note("sent", task)
    }

    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
        completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
    ) {
        note("response \((response as? HTTPURLResponse)?.statusCode ?? 0)", dataTask)
        completionHandler(dataTask.taskDescription == "becomes a download" ? .becomeDownload : .allow)
    }

    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didBecome downloadTask: URLSessionDownloadTask
    ) {
        note("became \(downloadTask.taskIdentifier) \(downloadTask.state.rawValue)", dataTask)
    }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        note("data", dataTask)
    }

    func urlSession(
        _ session: URLSession, downloadTask: URLSessionDownloadTask, didWriteData bytesWritten: Int64,
        totalBytesWritten: Int64, totalBytesExpectedToWrite: Int64
    ) {
        state.withLock { state in
            state.written = (
                state.written.sum + bytesWritten, totalBytesWritten, totalBytesExpectedToWrite
            )
        }
        note("wrote", downloadTask)
    }

    func urlSession(
        _ session: URLSession, downloadTask: URLSessionDownloadTask, didResumeAtOffset fileOffset: Int64,
        expectedTotalBytes: Int64
    ) {
        note("resumed \(fileOffset)/\(expectedTotalBytes)", downloadTask)
    }

    func urlSession(
        _ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloadingTo location: URL
    ) {
        let content = try? Data(contentsOf: location)
        state.withLock { state in
            state.content = content
            state.file = location
        }
        if let destination {
            do { try FileManager.default.moveItem(at: location, to: destination) } catch {
                note("not moved: \(error)", downloadTask)
            }
        }
        note("file", downloadTask)
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        if let error = error as? URLError { state.withLock { $0.errors.append(error) } }
        note((error as? URLError).map { "complete \($0.errorCode)" } ?? "complete", task)
    }
}

/// A server of one body of 300,000 bytes.
final class RangeServer: Sendable {
    enum Mode: Sendable {
        /// It sends so many bytes, and nothing more.
        case stops(at: Int)
        /// It sends so many bytes and closes, and then fails to continue.
        case breaks(at: Int)
        /// It sends so many bytes, closes when the first latch is open, and opens the second.
        case closesLater(at: Int, when: Latch, hasClosed: Latch)
        /// It sends what is asked for.
        case continues
        /// It sends what is asked for up to this byte and closes, and from there on the rest.
        case breaksOnce(at: Int)
        /// There is no such range.
        case refuses
        /// It sends another part than what was asked for.
        case sendsWrongPart
        /// It sends nothing.
        case isMute
    }

    static let body = Data((0..<300_000).map { UInt8($0 % 251) })
    let mode: Box<Mode>
    /// Fields of its responses.
    let fields: Box<[String]>
    private let server: Mutex<TestServer?>

    init(_ mode: Mode, fields: [String] = ["ETag: \"a\""]) throws {
        let (mode, fields) = (Box(mode), Box(fields))
        self.mode = mode
        self.fields = fields
        server = Mutex(
            try TestServer { peer in
                while true {
                    let request = try peer.readRequest()
                    guard try Self.answer(request, peer, mode.value, fields.value) else { return }
                }
            })
    }

    var url: URL { server.withLock { $0 }?.url("/body") ?? URL(fileURLWithPath: "/") }
    var requests: [TestRequest] { server.withLock { $0 }?.requests ?? [] }

    /// - Returns: False: the connection is closed.
    private static func answer(
        _ request: TestRequest, _ peer: TestPeer, _ mode: Mode, _ fields: [String]
    ) throws -> Bool {
        let first = request.value("Range").flatMap { Int($0.dropFirst(6).dropLast()) }
        let isSame = fields.contains { $0.hasSuffix(request.value("If-Range") ?? "nothing") }
        switch mode {
        case .stops(let end):
            try send(peer, 200, fields, 0..<end)
            peer.waitForEnd()
            return false
        case .breaks(let end):
            if first != nil {
                try peer.respond("503 Service Unavailable")
                return true
            }
            try send(peer, 200, fields, 0..<end)
            return false
        case .closesLater(let end, let mayClose, let hasClosed):
            try send(peer, 200, fields, 0..<end)
            try mayClose.wait()
            peer.close()
            hasClosed.open()
            return false
        case .continues:
            if let first, isSame {
                try send(peer, 206, fields + ["Content-Range: bytes \(first)-299999/300000"], first..<300_000)
                return true
            }
        case .breaksOnce(let end):
            if let first, isSame {
                let last = first < end ? end : 300_000
                let fields = fields + ["Content-Range: bytes \(first)-299999/300000"]
                try send(peer, 206, fields, first..<last, announcing: 300_000 - first)
                return last == 300_000
            }
        case .refuses:
            if first != nil {
                try peer.respond("416 Range Not Satisfiable", ["Content-Range: bytes */10"])
                return true
            }
        case .sendsWrongPart:
            if first != nil {
                try send(peer, 206, fields + ["Content-Range: bytes 5-299999/300000"], 5..<300_000)
                return true
            }
        case .isMute: return false
        }
        try send(peer, 200, fields, 0..<300_000)
        return true
    }

    private static func send(
        _ peer: TestPeer, _ status: Int, _ fields: [String], _ range: Range<Int>,
        announcing length: Int? = nil
    ) throws {
        let length = length ?? (status == 206 ? range.count : body.count)
        let lines = ["HTTP/1.1 \(status) OK", "Content-Length: \(length)"] + fields
        try peer.send(lines.joined(separator: "\r\n") + "\r\n\r\n")
        try peer.send(Array(body[range]))
    }
}

/// A folder of its own for the files of a test, removed with it.
final class Folder: Sendable {
    let url: URL

    init() throws {
        url = FileManager.default.temporaryDirectory.appendingPathComponent("rondo-test-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
    }

    deinit { try? FileManager.default.removeItem(at: url) }

    /// A file of these bytes.
    func file(_ content: Data, _ name: String = "file") throws -> URL {
        let file = url.appendingPathComponent(name)
        try content.write(to: file)
        return file
    }
}

/// Files of downloads in the folder of temporary files, but none of earlier days: the first download removes those.
func downloadFiles() -> Set<String> {
    let (files, folder) = (FileManager.default, NSTemporaryDirectory())
    let all = (try? files.contentsOfDirectory(atPath: folder)) ?? []
    return Set(
        all.filter { name in
            guard name.hasPrefix("rondo-download-") else { return false }
            // A file that is removed meanwhile is none.
            let attributes = try? files.attributesOfItem(atPath: folder + "/" + name)
            guard let written = attributes?[.modificationDate] as? Date else { return false }
            return written.timeIntervalSinceNow > -24 * 60 * 60
        })
}
