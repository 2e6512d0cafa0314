import BenchmarkSupport
import Rondo

// W6 into a file: by a download task, and by a connection whose delegate writes what comes.

enum SavingWay: String {
    case connection, task
}

func save(_ way: SavingWay, _ address: String) {
    guard let url = URL(string: address) else { fatalError("no URL: \(address)") }
    let request = URLRequest(url: url, cachePolicy: .reloadIgnoringLocalCacheData)
    let loop = RunLoop.current
    let meter = Meter()
    let bytes: Int
    switch way {
    case .connection:
        let saver = Saver(loop)
        precondition(URLConnection(request: request, delegate: saver) != nil)
        runUntilStopped()
        bytes = saver.bytes
    case .task:
        let taker = FileTaker(loop)
        URLSession(configuration: .ephemeral, delegate: taker, runLoop: loop).downloadTask(with: request)
            .resume()
        runUntilStopped()
        bytes = taker.bytes
    }
    reportBulk(
        "rondo-\(way.rawValue)", url: address, bytes: bytes, wall: meter.wall, cpu: meter.cpu,
        variant: ".file")
}

/// Writes what comes to a file of its own, which goes at the end.
private final class Saver: NSObject, URLConnectionDataDelegate {
    private(set) var bytes = 0
    private let loop: RunLoop
    private let path = FileManager.default.temporaryDirectory.appendingPathComponent("bench-\(getpid())").path
    private let descriptor: Int32

    init(_ loop: RunLoop) {
        self.loop = loop
        descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0o600)
        precondition(descriptor >= 0)
    }

    func connection(_ connection: URLConnection, didReceive data: Data) {
        bytes += data.count
        data.withUnsafeBytes { precondition(write(descriptor, $0.baseAddress, $0.count) == $0.count) }
    }

    func connectionDidFinishLoading(_ connection: URLConnection) {
        close(descriptor)
        unlink(path)
        loop.stop()
    }

    func connection(_ connection: URLConnection, didFailWithError error: any Error) { fatalError("\(error)") }
}

private final class FileTaker: NSObject, URLSessionDownloadDelegate {
    private(set) var bytes = 0
    private let loop: RunLoop

    init(_ loop: RunLoop) { self.loop = loop }

    func urlSession(
        _ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloadingTo location: URL
    ) {
        do {
            bytes = try location.resourceValues(forKeys: [.fileSizeKey]).fileSize ?? 0
        } catch { fatalError("\(error)") }
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        if let error { fatalError("\(error)") }
        loop.stop()
    }
}
