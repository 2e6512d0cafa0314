import Rondo

/// An answer while it is being sent: the bytes that were read and not taken by the stream yet, and those still to be read.
final class OutgoingAnswer {
    let status: Int
    let keepsConnection: Bool
    /// The request's first line, for the log.
    let request: String
    let began = ContinuousClock.now
    /// Bytes of the body, and of a head, that the stream has taken.
    private(set) var sent = 0
    private let headSize: Int
    private var body: ServedBody
    private var pace: Pace?
    private var bytes: [UInt8]
    private var start = 0

    /// - Parameter rate: bytes of the body a second; nil for as fast as it goes.
    init(_ answer: ServedAnswer, request: String, rate: Int?) {
        status = answer.status
        keepsConnection = answer.keepsConnection
        self.request = request
        body = answer.body
        pace = rate.map { Pace(rate: $0) }
        bytes = answer.head(now: Date())
        headSize = bytes.count
        // One packet, where all of it is small.
        if pace == nil { readMore() }
    }

    enum Step {
        case send
        case pause(Double)
        case done
        /// A file has become shorter than its answer's head has said.
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

    /// Calls `write` with the bytes to be sent, and notes how much of it was taken; false if none was.
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

    /// Whether there is more to be sent.
    var isUnfinished: Bool { start < bytes.count || body.count > 0 }
}
