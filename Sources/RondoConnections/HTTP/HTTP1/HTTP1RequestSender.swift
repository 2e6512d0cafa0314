internal import RondoCore
internal import RondoHTTP
internal import RondoStreams

/// Sends a request over a connection: the head, then, perhaps after the server's go-ahead, the body.
///
/// A body in memory is written from where it is. A body from a stream is read piece by piece into one buffer,
/// in which a piece gets its chunk's size line and line end around it, so that one write sends all three.
///
/// A value that makes no calls: it returns what was sent, and the exchange tells the delegate, which may end
/// the exchange.
struct HTTP1RequestSender {
    enum Outcome {
        /// Bytes of the body were sent: in this piece, so far, and in total (-1 if not known). Call `send`
        /// again. `isSent` is already set if they were the last ones and no frame follows them.
        case progress(Int, total: Int, expected: Int)
        /// The channel takes no more at present, or `RequestBody.maximumPerPass` bytes were sent.
        case blocked
        /// The body's stream has no bytes yet.
        case waitsForBody
        /// The body waits for the server's go-ahead.
        case waitsForGoAhead
        case sent
        case failed(ExchangeFailure)
        /// The connection broke; what the server has sent before can still be read.
        case broken(ChannelError)
    }

    /// Room for a chunk's size line: 16 hexadecimal digits, CR, LF.
    private static let prefixRoom = 18
    private static let suffixRoom = 2

    /// A piece of a body from a stream, framed.
    private final class Piece {
        var buffer = [UInt8](repeating: 0, count: prefixRoom + RequestBody.pieceSize + suffixRoom)
        /// The part of `buffer` that has not been written yet.
        var unwritten = 0..<0
        /// The number of body bytes in the piece; 0 once they have been reported.
        var count = 0
        var streamHasEnded = false
        /// The number of body bytes read so far.
        var taken: Int64 = 0
    }

    private let body: OutgoingBody
    /// The length of the body, if it is announced.
    private let length: Int64?
    private let head: [UInt8]
    private(set) var headSent = 0
    /// The number of body bytes that the channel has taken, without framing.
    private(set) var bodySent = 0
    private(set) var isWaitingForGoAhead: Bool
    private(set) var isSent = false

    /// The piece of a streamed body that is being sent; nil before the first.
    private var piece: Piece?
    /// The value that `bodySent` may reach by the end of the pass.
    private var limit = RequestBody.maximumPerPass

    init(_ request: consuming OutgoingRequest, codec: inout HTTP1Codec) throws(HTTP1Error) {
        var head: [UInt8] = []
        try codec.send(head: request.head, body: RequestBodyFraming(request.length), into: &head)
        self.init(request, head: head)
    }

    private init(_ request: borrowing OutgoingRequest, head: [UInt8]) {
        self.head = head
        body = request.body
        length = if case .known(let length) = request.length { length } else { nil }
        isWaitingForGoAhead = request.expectsContinue
    }

    var headText: String { String(decoding: head, as: UTF8.self) }
    var nothingWasSent: Bool { headSent == 0 }

    /// Ends the wait of the body for the server's go-ahead.
    ///
    /// - Returns: Whether the body was waiting.
    @discardableResult
    mutating func goAhead() -> Bool {
        defer { isWaitingForGoAhead = false }
        return isWaitingForGoAhead
    }

    /// Begins another pass, in which `RequestBody.maximumPerPass` further bytes may be sent.
    mutating func beginPass() { limit = bodySent + RequestBody.maximumPerPass }

    /// Sends as much as the channel and the pass allow.
    mutating func send(over connection: HTTP1Connection) -> Outcome {
        if isSent { return .sent }
        do throws(ChannelError) {
            while headSent < head.count {
                let count = try head.withUnsafeBufferPointer { (bytes) throws(ChannelError) in
                    let rest = UnsafeRawBufferPointer(bytes)[headSent...]
                    return try connection.channel.write(UnsafeRawBufferPointer(rebasing: rest))
                }
                guard count > 0 else { return .blocked }
                headSent += count
            }
            if isWaitingForGoAhead { return .waitsForGoAhead }
            switch body {
            case .data(let data): return try send(data, over: connection)
            case .stream(let stream): return try send(stream, over: connection)
            }
        } catch {
            return .broken(error)
        }
    }

    // MARK: - A body in memory

    private mutating func send(_ data: Data, over connection: HTTP1Connection) throws(ChannelError)
        -> Outcome
    {
        var count = 0
        if bodySent < data.count {
            if bodySent >= limit { return .blocked }
            let (start, end) = (bodySent, min(data.count, bodySent + RequestBody.pieceSize))
            // `Data.withUnsafeBytes` does not support typed throws.
            count = try data.withUnsafeBytes { bytes in
                Result { () throws(ChannelError) in
                    try connection.channel.write(UnsafeRawBufferPointer(rebasing: bytes[start..<end]))
                }
            }.get()
            guard count > 0 else { return .blocked }
            bodySent += count
        }
        if bodySent == data.count {
            do throws(HTTP1Error) {
                // The codec counts the body; for a body of known length it adds no bytes.
                _ = try connection.codec.frame(bodyOf: data.count)
                var nothing: [UInt8] = []
                try connection.codec.sendEnd(into: &nothing)
            } catch {
                return .failed(.http(HTTPFailure(error)))
            }
            isSent = true
        }
        return count > 0 ? .progress(count, total: bodySent, expected: data.count) : .sent
    }

    // MARK: - A body from a stream

    private mutating func send(
        _ stream: BodyStream, over connection: HTTP1Connection
    ) throws(ChannelError) -> Outcome {
        let piece = piece ?? Piece()
        self.piece = piece
        while true {
            while !piece.unwritten.isEmpty {
                let count = try piece.buffer.withUnsafeBufferPointer { (bytes) throws(ChannelError) in
                    try connection.channel.write(
                        UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(bytes)[piece.unwritten]))
                }
                guard count > 0 else { return .blocked }
                piece.unwritten = piece.unwritten.lowerBound + count..<piece.unwritten.upperBound
            }
            if piece.count > 0 {
                let count = piece.count
                piece.count = 0
                bodySent += count
                // Nothing follows the last piece of a body of known length, unless its stream gives too much.
                if length == Int64(bodySent) {
                    if let failure = read(piece, of: stream, for: connection) { return failure }
                    self.piece = nil
                    isSent = true
                }
                return .progress(count, total: bodySent, expected: length.map { Int($0) } ?? -1)
            }
            if piece.streamHasEnded {
                self.piece = nil
                isSent = true
                return .sent
            }
            if bodySent >= limit { return .blocked }
            if let outcome = read(piece, of: stream, for: connection) { return outcome }
        }
    }

    /// Fills the buffer with the next piece, or the body's end.
    ///
    /// - Returns: Nil if there is something to write.
    private func read(_ piece: Piece, of stream: BodyStream, for connection: HTTP1Connection) -> Outcome? {
        let reading = piece.buffer.withUnsafeMutableBytes { bytes in
            let room = bytes[Self.prefixRoom..<Self.prefixRoom + RequestBody.pieceSize]
            return stream.read(into: UnsafeMutableRawBufferPointer(rebasing: room))
        }
        do throws(HTTP1Error) {
            switch reading {
            case .failed(let error):
                return .failed(.bodyStreamFailed(error as NSError))
            case .notReady:
                // A body of the announced length is complete, even if its stream has not ended.
                guard let length, piece.taken == length else { return .waitsForBody }
                try end(piece, connection)
            case .end:
                if let length, piece.taken < length {
                    return .failed(.bodyTooShort(announced: length, given: piece.taken))
                }
                try end(piece, connection)
            case .bytes(let count):
                piece.taken += Int64(count)
                if let length, piece.taken > length { return .failed(.bodyTooLong(announced: length)) }
                let (prefix, suffix) = try connection.codec.frame(bodyOf: count)
                let start = Self.prefixRoom - prefix.count
                piece.buffer.replaceSubrange(start..<Self.prefixRoom, with: prefix)
                let end = Self.prefixRoom + count
                piece.buffer.replaceSubrange(end..<end + suffix.count, with: suffix)
                piece.unwritten = start..<end + suffix.count
                piece.count = count
            }
        } catch {
            return .failed(.http(HTTPFailure(error)))
        }
        return nil
    }

    private func end(_ piece: Piece, _ connection: HTTP1Connection) throws(HTTP1Error) {
        var last: [UInt8] = []
        try connection.codec.sendEnd(into: &last)
        piece.buffer.replaceSubrange(0..<last.count, with: last)
        piece.unwritten = 0..<last.count
        piece.streamHasEnded = true
    }
}

extension RequestBodyFraming {
    /// A body of unknown length is sent in chunks.
    fileprivate init(_ length: OutgoingRequest.BodyLength) {
        self =
            switch length {
            case .noBody: .none
            case .known(let length): .length(length)
            case .unknown: .chunked
            }
    }
}
