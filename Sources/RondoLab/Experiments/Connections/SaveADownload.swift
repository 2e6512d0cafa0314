import Rondo

extension Experiment {
    private static let ways = ["output stream", "file handle", "URLDownload", "in memory"]
    /// The size of the response, in bytes.
    private static let size = 32 << 20

    static let saveADownload = Experiment(
        "save-a-download", title: "Four ways to save a download, and their memory",
        question: """
            A file of 32 MiB is saved four times: piece by piece to an output stream, to a file handle, by URLDownload, \
            and collected in memory to be written at the end. Which of them needs 32 MiB of memory?
            """,
        choices: ["All of them", "None", "The one that collects", "URLDownload and the one that collects"],
        answer: 2,
        why: """
            Bytes come to the delegate as the socket has them, in pieces. A delegate that writes each piece and forgets \
            it needs memory for one piece, whatever the size of the file; while it writes, nothing is read, and the \
            server waits. Collecting needs the whole file, and more while the buffer grows.
            """,
        rules: ["UC-20", "ST-46", "UC-68"],
        plot: Plot(
            title: "Memory beyond the beginning", unit: "MiB", scale: 1 << 20,
            notes: ways.map { "memory, \($0)" }),
        body: saveADownloadCode
    ) { evidence in
        ways.flatMap { way -> [Check] in
            let peak = evidence.notes("memory, \(way)").map(\.duration).max()
            let text =
                peak.map { "at most \(TextFormats.bytes(Double(max(0, $0)))) more than before" }
                ?? "nothing was measured"
            let whole = evidence.notes("saved, \(way)").contains { $0.duration == Int64(size) }
            let limit = Int64(size) / 2
            return [
                way == "in memory"
                    ? Check(
                        "collected in memory it takes the whole file", peak.map { $0 > limit } ?? false,
                        seen: text)
                    : Check(
                        "by \(way) it takes a fraction of the file", peak.map { $0 < limit } ?? false,
                        seen: text),
                Check(
                    "by \(way) every byte is saved", whole,
                    seen:
                        "\(TextFormats.grouped(Int(evidence.notes("saved, \(way)").first?.duration ?? 0))) bytes were saved"
                ),
            ]
        }
    }
}

// begin save-a-download
private final class Saver: NSObject, URLConnectionDataDelegate, URLDownloadDelegate {
    var take: (Data) -> Void = { _ in }
    var measure: () -> Void = {}
    var isDone = false

    func connection(_ connection: URLConnection, didReceive data: Data) {
        take(data)
        measure()
    }

    func connectionDidFinishLoading(_ connection: URLConnection) { isDone = true }
    func download(_ download: URLDownload, didReceiveDataOfLength length: Int) { measure() }
    func downloadDidFinish(_ download: URLDownload) { isDone = true }
}

@Sendable private func saveADownloadCode(_ stage: Stage) throws {
    let url = stage.url("/drip/512/65536/0")
    try stage.inTemporaryFile("output stream") { path, saver in
        guard let output = OutputStream(toFileAtPath: path, append: false) else { return }
        output.open()
        saver.take = { _ = output.write([UInt8]($0), maxLength: $0.count) }
        try URLConnection.labelled("output stream", url, saver).start()
    }
    try stage.inTemporaryFile("file handle") { path, saver in
        let handle = FileHandle(forWritingAtPath: path)
        saver.take = { handle?.write($0) }
        try URLConnection.labelled("file handle", url, saver).start()
    }
    try stage.inTemporaryFile("URLDownload") { path, saver in
        let download = URLDownload(request: URLRequest(url: url), delegate: saver, startImmediately: false)
        download.label = "URLDownload"
        download.setDestination(path, allowOverwrite: true)
        download.start()
    }
    try stage.inTemporaryFile("in memory") { path, saver in
        var body = Data()
        saver.take = { body.append($0) }
        try URLConnection.labelled("in memory", url, saver).start()
        try stage.run(.current) { saver.isDone }
        try body.write(to: URL(fileURLWithPath: path))
    }
}
// end

// helpers of save-a-download
extension Stage {
    /// Begins a load into an empty file, runs it to its end, and notes memory and size.
    fileprivate func inTemporaryFile(_ way: String, _ begin: (String, Saver) throws -> Void) throws {
        let path = NSTemporaryDirectory() + "/rondo-lab-\(ProcessInfo.processInfo.processIdentifier)"
        _ = FileManager.default.createFile(atPath: path, contents: nil)
        defer { unlink(path) }
        let before = anonymousMemory()
        let saver = Saver()
        saver.measure = { self.note("memory, \(way)", anonymousMemory() - before) }
        try begin(path, saver)
        try run(.current) { saver.isDone }
        saver.take = { _ in }
        let attributes = try FileManager.default.attributesOfItem(atPath: path)
        note("saved, \(way)", (attributes[.size] as? NSNumber)?.intValue ?? 0)
    }
}

/// The bytes of resident anonymous memory of the process; mapped files do not count.
private func anonymousMemory() -> Int {
    guard let status = try? String(contentsOfFile: "/proc/self/status", encoding: .utf8),
        let line = status.split(separator: "\n").first(where: { $0.hasPrefix("RssAnon:") })
    else { return 0 }
    return (Int(line.filter(\.isNumber)) ?? 0) * 1024
}
// end of helpers
