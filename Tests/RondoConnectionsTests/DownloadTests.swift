import Rondo
import RondoTestSupport
import Synchronization
import Testing

/// Keeps what a download tells, in order, and can do something at each call.
private final class DownloadRecorder: NSObject, URLDownloadDelegate, Sendable {
    private let calls = Mutex<[String]>([])
    private let onCall: @Sendable (String, URLDownload) -> Void

    init(onCall: @escaping @Sendable (String, URLDownload) -> Void = { _, _ in }) {
        self.onCall = onCall
    }

    var log: [String] { calls.withLock { $0 } }

    private func note(_ call: String, _ download: URLDownload) {
        calls.withLock { $0.append(call) }
        onCall(call, download)
    }

    func downloadDidBegin(_ download: URLDownload) { note("begin", download) }

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
        note("fail \((error as? URLError)?.errorCode ?? 0)", download)
    }
}

@Suite(.timeLimit(.minutes(5)), .leavesNoConnections) struct DownloadTests {
    /// A folder of its own, removed at the end.
    private static func inFolder<Result>(_ body: (String) throws -> Result) throws -> Result {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent(
            "rondo-download-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        // What is left of a temporary folder is no failure of the test.
        defer { try? FileManager.default.removeItem(at: folder) }
        return try body(folder.path)
    }

    private static func server() throws -> TestServer {
        try TestServer { peer in
            while true {
                _ = try peer.readRequest()
                try peer.respond(body: longText(300_000))
            }
        }
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
            loop.runInVain()
        }
        #expect(recorder.log == [])
        #expect(weak.value?.isEmpty == true)
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
                    loop.runInVain()
                }
                #expect(recorder.log.last == "data")
                #expect(FileManager.default.fileExists(atPath: path) == !deletes)
            }
        }
    }
}
