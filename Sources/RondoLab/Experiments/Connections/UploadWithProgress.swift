import Rondo

extension Experiment {
    private static let pieces = 128
    private static let bodySize: Int64 = 128 * 4096

    static let uploadWithProgress = Experiment(
        "upload-with-progress", title: "An upload from a bound pair, with progress",
        question: """
            A body of 512 KiB is written to one end of a bound pair that holds 16 KiB; the other end is the body of a \
            request. Both are on one run loop. Does the upload begin before the body is written whole?
            """,
        choices: [
            "No: a length has to be known first",
            "Yes: it is sent at the speed of the network, and the writer waits",
            "Yes, but the pair grows to 512 KiB", "It hangs: no code reads while the thread writes",
        ], answer: 1,
        why: """
            The connection takes bytes from the pair as the network takes them from it. Each time there is space, the \
            writer is told so and writes on; when the pair is full, it waits, on the same thread, by returning to the run \
            loop. The length is not known, so the body goes in chunks; didSendBodyData tells how far it is.
            """,
        rules: ["UC-38", "UC-37", "UC-35", "UC-41", "ST-36"],
        plot: Plot(
            title: "Written to the pair, and sent", unit: "KiB", scale: 1024,
            notes: ["body, written", "body, sent"]),
        body: uploadWithProgressCode
    ) { evidence in
        let written = evidence.notes("body, written")
        let sent = evidence.notes("body, sent")
        let early = sent.filter { sent in (written.last?.began ?? 0) > sent.began }
        // The bytes that were written and not sent yet, at each moment.
        let waiting = written.map { write in
            write.duration - (sent.last { $0.began <= write.began }?.duration ?? 0)
        }
        let received = evidence.notes("the server received").first?.duration
        return [
            Check(
                "progress is told while the body is still being written", early.count > 2,
                seen: "of \(sent.count) reports \(early.count) came before the last write"),
            Check(
                "totals only grow, up to the whole",
                zip(sent, sent.dropFirst()).allSatisfy { $0.duration <= $1.duration }
                    && sent.last.map { $0.duration >= bodySize } ?? false,
                seen: "the last report said \(TextFormats.grouped(Int(sent.last?.duration ?? 0))) bytes"),
            Check(
                "only a part of the body waits at a time", waiting.max().map { $0 < bodySize / 2 } ?? false,
                seen: "at most \(TextFormats.bytes(Int(waiting.max() ?? 0))) had been written and not sent"),
            Check(
                "the server gets every byte", received == bodySize,
                seen: "it received \(TextFormats.grouped(Int(received ?? 0))) bytes"),
            .finished("upload", evidence),
        ]
    }
}

// begin upload-with-progress
private final class Uploader: NSObject, URLConnectionDataDelegate, StreamDelegate {
    let stage: Stage, body = [UInt8](repeating: 7, count: 128 * 4096)
    var written = 0, answer = Data(), isDone = false
    init(_ stage: Stage) { self.stage = stage }

    func stream(_ stream: Foundation.Stream, handle event: Foundation.Stream.Event) {
        guard event == .hasSpaceAvailable, let output = stream as? OutputStream else { return }
        while written < body.count, output.hasSpaceAvailable {
            let piece = Array(body[written...].prefix(4096))
            written += max(0, output.write(piece, maxLength: piece.count))
            stage.note("body, written", written)
        }
        // The stream is full: return to the run loop until there is space again.
        if written == body.count { output.close() }
    }

    func connection(
        _ connection: URLConnection, didSendBodyData bytes: Int, totalBytesWritten: Int,
        totalBytesExpectedToWrite: Int
    ) {
        stage.note("body, sent", totalBytesWritten)
    }

    func connection(_ connection: URLConnection, didReceive data: Data) { answer += data }
    func connectionDidFinishLoading(_ connection: URLConnection) { isDone = true }
}

@Sendable private func uploadWithProgressCode(_ stage: Stage) throws {
    let uploader = Uploader(stage)
    var body: InputStream?, source: OutputStream?
    Stream.getBoundStreams(withBufferSize: 16384, inputStream: &body, outputStream: &source)
    source?.label = "body"
    source?.delegate = uploader
    source?.schedule(in: .current, forMode: .default)
    source?.open()

    var request = URLRequest(url: stage.url("/upload"))
    request.httpMethod = "POST"
    request.httpBodyStream = body
    try URLConnection.labelled("upload", request, uploader).start()
    try stage.run(.current) { uploader.isDone }
    stage.note("the server received", Int(String(decoding: uploader.answer, as: UTF8.self)) ?? 0)
}
// end
