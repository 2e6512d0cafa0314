import Rondo
import RondoTestSupport

/// Notes what is told of a stream task, and keeps the streams that it becomes.
final class StreamNotes: NSObject, URLSessionStreamDelegate, @unchecked Sendable {
    // `@unchecked Sendable`: the streams are set once, before the event is noted that the test waits for; `notesMetrics` is
    // set before the session is made.
    let log = EventLog()
    let trusts: Bool
    /// Whether metrics are written down among the calls.
    var notesMetrics = false
    private let identity: TLSIdentity?
    private let measured = Box<[URLSessionTaskMetrics]>([])
    var streams: (input: InputStream, output: OutputStream)?

    /// - Parameters:
    ///   - trusts: It takes any server.
    ///   - identity: What it shows where it is asked for one.
    init(trusts: Bool = true, identity: TLSIdentity? = nil) {
        self.trusts = trusts
        self.identity = identity
    }

    /// The metrics that the delegate got.
    var metrics: [URLSessionTaskMetrics] { measured.value }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, didFinishCollecting metrics: URLSessionTaskMetrics
    ) {
        measured.value.append(metrics)
        if notesMetrics { log.note("metrics \(task.state == .completed)") }
    }

    func urlSession(_ session: URLSession, readClosedFor streamTask: URLSessionStreamTask) {
        log.note("read closed")
    }

    func urlSession(_ session: URLSession, writeClosedFor streamTask: URLSessionStreamTask) {
        log.note("write closed")
    }

    func urlSession(
        _ session: URLSession, streamTask: URLSessionStreamTask, didBecome inputStream: InputStream,
        outputStream: OutputStream
    ) {
        streams = (inputStream, outputStream)
        log.note(
            "streams \(inputStream.streamStatus == .notOpen) \(outputStream.streamStatus == .notOpen)")
    }

    func urlSession(
        _ session: URLSession, didReceive challenge: URLAuthenticationChallenge,
        completionHandler:
            @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        let space = challenge.protectionSpace
        if space.authenticationMethod == NSURLAuthenticationMethodClientCertificate {
            log.note("identity")
            guard let identity else { return completionHandler(.performDefaultHandling, nil) }
            return completionHandler(.useCredential, TLSCredential(identity: identity))
        }
        log.note("challenge \(space.authenticationMethod == NSURLAuthenticationMethodServerTrust)")
        if trusts, let trust = space.serverTrust {
            completionHandler(.useCredential, URLCredential(trust: trust))
        } else {
            completionHandler(.performDefaultHandling, nil)
        }
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?
    ) {
        log.note("complete \((error as? URLError)?.errorCode ?? 0)")
    }

    func waitForEnd() throws {
        try waitFor("the task's end") { log.entries.last?.hasPrefix("complete") ?? false ? () : nil }
    }
}

/// Returns the result of a read as text: its bytes, with `|` at the end of the stream, or the error's code.
func readText(_ data: Data?, _ isAtEnd: Bool, _ error: (any Error)?) -> String {
    if let error { return "error \((error as? URLError)?.errorCode ?? 0)" }
    return String(decoding: data ?? Data(), as: UTF8.self) + (isAtEnd ? "|" : "")
}
