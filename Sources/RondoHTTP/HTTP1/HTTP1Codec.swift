// The client's side of one HTTP/1.1 connection: turns requests into bytes, and received bytes into events. It
// has no socket and no clock; the end of the connection is an input like any other. Received bytes are read
// in place, and pieces of the body reported as ranges of them, so no byte of a body is copied or stored.

/// An event on a connection.
package enum HTTP1Event: Sendable, Equatable {
    /// An interim response (1xx except 101). Any number of them may precede `response`.
    case informational(ResponseHead)
    /// The final response; `bodyLength` is nil if the length of the body is not known in advance.
    case response(ResponseHead, bodyLength: Int64?)
    /// Bytes of the body: their range in the input; never empty.
    case body(Range<Int>)
    /// Fields after a chunked body; there is no such event if there are none.
    case trailers(HeaderFields)
    /// The response is complete.
    case end
    /// There is no event before more bytes or the end of the connection have been received.
    case needMoreData
    /// The response is complete and the connection can be kept: call `startNextCycle()` once the request is
    /// complete too.
    case paused
    /// Comes after the `response` to an Upgrade (101) or a CONNECT (2xx): HTTP has ended, and the rest of the
    /// input is not HTTP's.
    case switchedProtocol
    /// Nothing more will be received: close the connection.
    case closed
}

/// A client's side of one HTTP/1.1 connection (RFC 9112).
///
/// For each request, call `send(head:body:into:)`, `frame(bodyOf:)` for each piece of the body, and always
/// `sendEnd`; and read events until `.end`. Then, if `canBeReused`, call `startNextCycle()`.
package struct HTTP1Codec: Sendable {
    private var state = HTTP1State()
    private var reader: HTTP1Reader
    private var written = RecentRequestHead()
    private var known: KnownHead?
    /// Whether `recentHeads` have changed since they were shared with other connections; see `share(_:_:)`.
    package private(set) var hasUnsharedHeads = false

    /// Whether any byte has been received since the request's head was sent. If none has, and the connection
    /// breaks, the server has probably not seen the request.
    package private(set) var hasReceivedAnyByteOfResponse = false

    package init(limits: HTTP1Limits = HTTP1Limits()) { reader = HTTP1Reader(limits: limits) }

    /// The recent heads of a connection: of the request that it has written last, and of the response that it
    /// has read last.
    package struct RecentHeadPair: Sendable {
        fileprivate var written = RecentRequestHead()
        fileprivate var read = RecentResponseHead()
        fileprivate var known: KnownHead?

        package init() {}
    }

    /// Passed to a new connection, which may send and receive the same heads.
    package var recentHeads: RecentHeadPair {
        get {
            var heads = RecentHeadPair()
            (heads.written, heads.read) = (written, reader.recentHead)
            // `known` may describe a head that was too long to be remembered.
            if known?.head === reader.recentHead.head { heads.known = known }
            return heads
        }
        set { (written, reader.recentHead, known) = (newValue.written, newValue.read, newValue.known) }
    }

    /// Replaces this connection's heads by those of `heads` where they are equal, so that there is one copy
    /// of each; then sets `heads` to the heads of this connection.
    ///
    /// - Parameter head: The head that was just read.
    /// - Returns: The same head, in the object that this connection now holds.
    package mutating func share(_ heads: inout RecentHeadPair, _ head: ResponseHead) -> ResponseHead {
        hasUnsharedHeads = false
        if written.isSame(as: heads.written) { written = heads.written }
        let isRemembered = reader.recentHead.head === head
        if reader.recentHead.head !== heads.read.head, reader.recentHead.isSame(as: heads.read) {
            (reader.recentHead, known) = (heads.read, heads.known)
        }
        heads = recentHeads
        return isRemembered ? reader.recentHead.head ?? head : head
    }

    /// Whether `startNextCycle()` makes the connection ready for another request: request and response are
    /// complete, neither asked to close the connection, the server has not closed it, and no bytes came after
    /// the response.
    package var canBeReused: Bool { state.canBeReused }

    /// Makes a connection that `canBeReused` ready for the next request. (It checks that itself: a check by a
    /// caller in another module would copy the connection.)
    ///
    /// - Returns: False if the connection cannot be reused; nothing is changed then.
    package mutating func startNextCycle() -> Bool {
        guard canBeReused else { return false }
        state.startNextCycle()
        hasReceivedAnyByteOfResponse = false
        return true
    }

    // MARK: Sending

    /// Appends a request's head to `output`. On an error nothing is appended, and nothing more can be sent.
    ///
    /// `head.fields` must contain exactly one Host. Content-Length and Transfer-Encoding are written
    /// according to `body`; if the fields contain them too, they must agree.
    package mutating func send(
        head: RequestHead, body: RequestBodyFraming, into output: inout [UInt8]
    ) throws(HTTP1Error) {
        if let written = written.find(head, body) {
            try state.requestHead(written.facts, framing: body)
            if output.isEmpty { output = written.bytes } else { output += written.bytes }
            return reader.expectHead()
        }
        do {
            try HTTP1Writer.check(head, body)
        } catch {
            guard case .local(let fault) = error else { throw error }
            throw state.failRequest(fault)
        }
        let facts = RequestFacts(
            isHead: head.method == "HEAD", isConnect: head.method == "CONNECT",
            offersUpgrade: head.fields.count(of: "Upgrade") > 0,
            saysClose: head.fields.contains("Connection", token: "close"))
        try state.requestHead(facts, framing: body)
        let start = output.count
        HTTP1Writer.write(head, body, into: &output)
        if start == 0, written.note(head, body, facts, output) { hasUnsharedHeads = true }
        reader.expectHead()
    }

    /// The bytes to write before and after a piece of the body of `count` bytes, which the caller writes
    /// itself, without a copy. Both are empty unless the body is chunked.
    package mutating func frame(
        bodyOf count: Int
    ) throws(HTTP1Error) -> (prefix: [UInt8], suffix: [UInt8]) {
        precondition(count >= 0, "a piece of a body cannot have \(count) bytes")
        guard try state.requestBody(count), count > 0 else { return ([], []) }
        var (prefix, suffix): ([UInt8], [UInt8]) = ([], [])
        HTTP1Writer.writeChunkSize(count, into: &prefix)
        HTTP1Writer.writeLineEnd(into: &suffix)
        return (prefix, suffix)
    }

    /// Ends the request, with or without a body, and appends the bytes for that. Trailers need a chunked
    /// body.
    package mutating func sendEnd(
        trailers: HeaderFields? = nil, into output: inout [UInt8]
    ) throws(HTTP1Error) {
        do {
            if let trailers { try HTTP1Writer.checkTrailers(trailers) }
        } catch {
            guard case .local(let fault) = error else { throw error }
            throw state.failRequest(fault)
        }
        if try state.requestEnd(hasTrailers: !(trailers?.isEmpty ?? true)) {
            HTTP1Writer.writeLastChunk(trailers ?? HeaderFields(), into: &output)
        }
    }

    // MARK: Receiving

    /// The next event from `input`, starting at `consumed`, which is advanced past the bytes read.
    ///
    /// Call it until it returns `.needMoreData`, for which it has read all of `input`, or an event that ends
    /// the exchange. An error is thrown again by each further call. `input` need not outlive the call; the
    /// next call may get another one.
    package mutating func nextEvent(
        from input: UnsafeRawBufferPointer, consumed: inout Int
    ) throws(HTTP1Error) -> HTTP1Event {
        switch state.reading {
        case .message:
            do {
                return try readMessage(in: input, consumed: &consumed)
            } catch {
                state.failResponse(error)
                throw error
            }
        case .nothing(keepsAlive: true, let answered):
            try refuseUnsolicited(UnsafeRawBufferPointer(rebasing: input[consumed...]))
            if state.hasPeerEnded { return .closed }
            return answered ? .paused : .needMoreData
        case .nothing(keepsAlive: false, _):
            // Bytes after the server's last response are ignored.
            consumed = input.count
            return .closed
        case .switching:
            state.didSwitch()
            return .switchedProtocol
        case .switched:
            return .closed
        case .failed(let error):
            throw error
        }
    }

    /// Tells that the server closed its side of the connection: no bytes follow those passed in before.
    package mutating func receiveEnd() { state.peerEnd() }

    // MARK: Inside

    private mutating func readMessage(
        in input: UnsafeRawBufferPointer, consumed: inout Int
    ) throws(HTTP1Error) -> HTTP1Event {
        if consumed < input.count { hasReceivedAnyByteOfResponse = true }
        var output = try reader.next(in: input, consumed: &consumed)
        if case .needMoreData = output, state.hasPeerEnded {
            output = try reader.end(hadInformational: state.hasInformational)
        }
        switch output {
        case .needMoreData: return .needMoreData
        case .head(let head): return try takeHead(head)
        case .body(let range): return .body(range)
        case .trailers(let fields): return .trailers(fields)
        case .end:
            state.responseEnd()
            // Reported at once: otherwise the connection would be kept between this event and the next.
            if case .nothing(keepsAlive: true, _) = state.reading, consumed < input.count {
                let rest = input[consumed...]
                state.failResponse(.peer(.unsolicitedBytes(excerpt: Grammar.excerpt(rest))))
            }
            return .end
        }
    }

    private mutating func takeHead(_ head: ResponseHead) throws(HTTP1Error) -> HTTP1Event {
        if head.isInformational {
            try state.informational(limit: reader.limits.maximumInformationalResponses)
            reader.expectHead()
            return .informational(head)
        }
        guard let facts = state.awaitedBy else { preconditionFailure("bug in Rondo: no head is awaited") }
        let framing: ResponseFraming
        let saysKeepAlive: Bool
        if let known, known.head === head, known.answered == facts {
            (framing, saysKeepAlive) = (known.framing, known.saysKeepAlive)
        } else {
            framing = try ResponseFraming(of: head, answering: facts)
            saysKeepAlive = head.saysKeepAlive
            known = KnownHead(head, facts, framing, saysKeepAlive)
            hasUnsharedHeads = true
        }
        state.finalHead(framing, saysKeepAlive: saysKeepAlive)
        reader.expectBody(framing)
        return .response(head, bodyLength: framing.bodyLength)
    }

    /// The body framing and persistence derived from the last final head. If the reader returns the same head
    /// again (`RecentResponseHead`), they are not derived again, for which bench-guard's http.request would
    /// take nearly 3 % more instructions.
    fileprivate final class KnownHead: Sendable {
        let head: ResponseHead
        let answered: RequestFacts
        let framing: ResponseFraming
        let saysKeepAlive: Bool

        init(
            _ head: ResponseHead, _ answered: RequestFacts, _ framing: ResponseFraming, _ saysKeepAlive: Bool
        ) {
            (self.head, self.answered) = (head, answered)
            (self.framing, self.saysKeepAlive) = (framing, saysKeepAlive)
        }
    }

    private mutating func refuseUnsolicited(_ rest: UnsafeRawBufferPointer) throws(HTTP1Error) {
        if rest.isEmpty { return }
        let error = HTTP1Error.peer(.unsolicitedBytes(excerpt: Grammar.excerpt(rest)))
        state.failResponse(error)
        throw error
    }
}
