import Rondo

/// A response while it is being sent: the bytes that were read and not accepted by the stream, and the body
/// that was not read.
final class OutgoingResponse {
    let status: Int
    let keepsConnection: Bool
    /// The request's first line, for the log.
    let request: String
    let began = ContinuousClock.now
    /// Bytes of head and body that the stream has accepted.
    private(set) var sent = 0
    private let headSize: Int
    private var body: ServedBody
    private var pace: Pace?
    private var bytes: [UInt8]
    private var start = 0

    /// - Parameter rate: Bytes of the body a second; nil means no limit.
    init(_ response: ServedResponse, request: String, rate: Int?) {
        status = response.status
        keepsConnection = response.keepsConnection
        self.request = request
        body = response.body
        pace = rate.map { Pace(rate: $0) }
        bytes = response.head(now: Date())
        headSize = bytes.count
        // Reads the body now, so that a small response fits into one packet.
        if pace == nil { readMore() }
    }

    enum Step {
        case send
        case pause(Double)
        case done
        /// The file has become shorter than the response's head announced.
        case broken
    }

    /// Reads the bytes that are sent next.
    func next() -> Step {
        if start == bytes.count {
            guard body.count > 0 else { return .done }
            bytes.removeAll(keepingCapacity: true)
            start = 0
            guard readMore() > 0 else { return .broken }
        }
        if sent >= headSize, let pause = pace?.pause(now: seconds), pause > 0 { return .pause(pause) }
        return .send
    }

    @discardableResult
    private func readMore() -> Int {
        let wanted = min(body.count, pace?.slice ?? ServerLimits.pieceSize, ServerLimits.pieceSize)
        let piece = [UInt8](unsafeUninitializedCapacity: wanted) { buffer, count in
            count = body.read(into: UnsafeMutableRawBufferPointer(buffer))
        }
        bytes += piece
        return piece.count
    }

    /// Calls `write` with the bytes to send, and records how many of them were accepted; false if none were.
    func send(_ write: (UnsafeBufferPointer<UInt8>) -> Int) -> Bool {
        let count = bytes.withUnsafeBufferPointer { write(UnsafeBufferPointer(rebasing: $0[start...])) }
        guard count > 0 else { return false }
        start += count
        sent += count
        if sent > headSize { pace?.note(count, now: seconds) }
        return true
    }

    var seconds: Double { (ContinuousClock.now - began) / .seconds(1) }

    /// Bytes of the body that were sent.
    var sentOfBody: Int { max(0, sent - headSize) }

    /// True if there are more bytes to send.
    var isUnfinished: Bool { start < bytes.count || body.count > 0 }
}
