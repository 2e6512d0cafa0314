import RondoHTTP

/// A codec with a queue: it stores the bytes that it is given, and an event's bytes are taken out of them.
///
/// While bytes wait in the queue, `canBeReused` and `startNextCycle()` are false by its own rule: what the codec says is
/// asked of `base`.
struct QueuedCodec {
    var base: HTTP1Codec
    /// The bytes of the last event: a piece of the body, or those behind a head that has ended HTTP.
    private(set) var bytes: ArraySlice<UInt8> = []
    private var received = ByteQueue()

    init(limits: HTTP1Limits = HTTP1Limits()) { base = HTTP1Codec(limits: limits) }

    var canBeReused: Bool { base.canBeReused && received.isEmpty }

    mutating func startNextCycle() -> Bool {
        guard received.isEmpty else { return false }
        return base.startNextCycle()
    }

    // MARK: Sending

    mutating func send(
        head: RequestHead, body: RequestBodyFraming, into output: inout [UInt8]
    ) throws(HTTP1Error) {
        try base.send(head: head, body: body, into: &output)
    }

    /// Appends a piece of the body, with its framing, to `output`.
    mutating func send(body: UnsafeRawBufferPointer, into output: inout [UInt8]) throws(HTTP1Error) {
        let (prefix, suffix) = try base.frame(bodyOf: body.count)
        output += prefix
        output += body
        output += suffix
    }

    mutating func sendEnd(trailers: HeaderFields? = nil, into output: inout [UInt8]) throws(HTTP1Error) {
        try base.sendEnd(trailers: trailers, into: &output)
    }

    // MARK: Receiving

    /// Stores bytes for `nextEvent()`.
    mutating func receive(_ bytes: some Sequence<UInt8>) { received.append(bytes) }

    mutating func receiveEnd() { base.receiveEnd() }

    /// The next event from the bytes stored by `receive(_:)`.
    mutating func nextEvent() throws(HTTP1Error) -> HTTP1Event {
        let unread = Array(received.unread)
        var consumed = 0
        let event = try unread.withUnsafeBufferPointer { (input) throws(HTTP1Error) in
            try base.nextEvent(from: UnsafeRawBufferPointer(input), consumed: &consumed)
        }
        received.consume(consumed)
        bytes = []
        if case .body(let range) = event { bytes = unread[range] }
        if case .switchedProtocol = event {
            bytes = received.unread
            received = ByteQueue()
        }
        return event
    }
}
