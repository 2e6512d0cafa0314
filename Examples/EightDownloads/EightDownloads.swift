// Downloads files, eight at a time, and goes on where it was stopped: Ctrl-C keeps what has come.
// usage: EightDownloads FOLDER URL...

import Rondo

/// On the main thread's loop only, where its session calls it.
final class Downloads: NSObject, URLSessionDownloadDelegate {
    static let atATime = 8
    static let attempts = 5

    private struct Item {
        let url: URL
        let name: String
        var attempts = 0
    }

    private let folder: URL
    private var waiting: [Item] = []
    private var running: [Int: (item: Item, task: URLSessionDownloadTask)] = [:]
    private var isStopping = false
    private(set) var failures = 0
    private lazy var session: URLSession = {
        let configuration = URLSessionConfiguration.ephemeral
        // A server gets six connections unless more are asked for.
        configuration.httpMaximumConnectionsPerHost = Self.atATime
        return URLSession(configuration: configuration, delegate: self, runLoop: .main, modes: [.default])
    }()

    init(_ urls: [URL], in folder: URL) {
        self.folder = folder
        var taken: Set<String> = []
        for (number, url) in urls.enumerated() {
            let last = url.lastPathComponent
            let name = last.isEmpty || last == "/" ? "index.html" : last
            waiting.append(Item(url: url, name: taken.insert(name).inserted ? name : "\(number)-\(name)"))
        }
    }

    var isDone: Bool { running.isEmpty && (waiting.isEmpty || isStopping) }

    /// Starts as many as may run.
    func fill() {
        while !isStopping, running.count < Self.atATime, !waiting.isEmpty { start(waiting.removeFirst()) }
    }

    /// Writes the resume data of each file for the next start. What has come of it stays in the folder for temporary files.
    func stop() {
        isStopping = true
        for (item, task) in running.values {
            task.cancel(byProducingResumeData: { [file = resumeFile(item)] data in
                // Nil: the server cannot go on with it.
                guard let data else { return }
                do {
                    try data.write(to: file, options: .atomic)
                } catch {
                    print("\(file.path): \(error.localizedDescription); the file will begin anew")
                }
            })
        }
    }

    private func resumeFile(_ item: Item) -> URL { folder.appendingPathComponent(".\(item.name).resume") }

    private func start(_ item: Item) {
        let task: URLSessionDownloadTask
        // Mostly there is none.
        if let data = try? Data(contentsOf: resumeFile(item)) {
            task = session.downloadTask(withResumeData: data)
        } else {
            task = session.downloadTask(with: item.url)
        }
        running[task.taskIdentifier] = (item, task)
        task.resume()
    }

    // MARK: - URLSessionDownloadDelegate

    func urlSession(
        _ session: URLSession, downloadTask: URLSessionDownloadTask, didResumeAtOffset fileOffset: Int64,
        expectedTotalBytes: Int64
    ) {
        guard let item = running[downloadTask.taskIdentifier]?.item else { return }
        print("\(item.name): goes on at byte \(fileOffset)")
    }

    /// The file is gone when this returns.
    func urlSession(
        _ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloadingTo location: URL
    ) {
        guard let item = running[downloadTask.taskIdentifier]?.item else { return }
        let status = (downloadTask.response as? HTTPURLResponse)?.statusCode ?? 200
        guard status < 400 else { return fail(item, "the server answered \(status)") }
        do {
            let target = folder.appendingPathComponent(item.name)
            if FileManager.default.fileExists(atPath: target.path) {
                try FileManager.default.removeItem(at: target)
            }
            try FileManager.default.moveItem(at: location, to: target)
            print("\(item.name): done")
        } catch {
            fail(item, error.localizedDescription)
        }
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        guard var item = running.removeValue(forKey: task.taskIdentifier)?.item else { return }
        defer { fill() }
        guard let error else {
            // Mostly there is none.
            try? FileManager.default.removeItem(at: resumeFile(item))
            return
        }
        guard !isStopping else { return print("\(item.name): stopped") }
        item.attempts += 1
        // A server that broke off is asked for the rest; whether it goes on is its affair.
        guard let data = (error as? URLError)?.downloadTaskResumeData, item.attempts < Self.attempts else {
            return fail(item, error.localizedDescription)
        }
        do {
            try data.write(to: resumeFile(item), options: .atomic)
            waiting.append(item)
        } catch let failure {
            fail(item, "\(error.localizedDescription); to go on: \(failure.localizedDescription)")
        }
    }

    private func fail(_ item: Item, _ reason: String) {
        failures += 1
        print("\(item.name): \(reason)")
    }
}

@main
struct EightDownloads {
    static func main() {
        let arguments = CommandLine.arguments.dropFirst()
        let urls = arguments.dropFirst().compactMap { URL(string: $0) }
        guard let path = arguments.first, !urls.isEmpty, urls.count == arguments.count - 1 else {
            print("usage: EightDownloads FOLDER URL...")
            exit(2)
        }
        let folder = URL(fileURLWithPath: path, isDirectory: true)
        do {
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        } catch {
            print("\(path): \(error.localizedDescription)")
            exit(1)
        }
        let downloads = Downloads(urls, in: folder)
        // The main queue is served by the main run loop, in its common modes.
        signal(SIGINT, SIG_IGN)
        let interrupt = DispatchSource.makeSignalSource(signal: SIGINT, queue: .main)
        interrupt.setEventHandler { MainActor.assumeIsolated { downloads.stop() } }
        interrupt.resume()
        downloads.fill()
        while !downloads.isDone {
            RunLoop.current.run(mode: .default, before: .distantFuture)
        }
        exit(downloads.failures == 0 ? 0 : 1)
    }
}
