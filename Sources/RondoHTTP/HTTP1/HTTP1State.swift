// What either side of one connection may send next, from the client's view. No bytes here, and no grammar.
//
// The two sides are independent, as in h11: a server may answer before it has read the whole request (a 413
// during an upload), and a request is usually complete before the response begins. Two rules join them. A
// response can only answer a request that has begun; and the connection can be used again only when both are
// complete and neither asks to close it. A failed side stays failed.

/// The properties of a request that decide how its response is read.
struct RequestFacts: Sendable, Equatable {
    var isHead = false
    var isConnect = false
    /// The request has an `Upgrade` field.
    var offersUpgrade = false
    /// The request has `Connection: close`.
    var saysClose = false
}

/// The state of one HTTP/1.1 connection: what each side may still send.
struct HTTP1State: Sendable {
    private enum RequestSide: Sendable {
        case idle
        case body(RequestBodyFraming, sent: Int64)
        case complete
        indirect case failed(HTTP1Error)
    }

    private enum ResponseSide: Sendable {
        /// No request has been sent.
        case idle
        case head(RequestFacts, informational: Int)
        case body(keepsAlive: Bool)
        case complete(keepsAlive: Bool)
        /// The connection carries another protocol from here on. Reported once, then `switched`.
        case switching
        case switched
        indirect case failed(HTTP1Error)
    }

    /// The use of bytes that the server has sent.
    enum Reading: Equatable {
        /// The bytes belong to a response.
        case message
        /// There should be no bytes: no request has been sent, or its response is complete.
        case nothing(keepsAlive: Bool, answered: Bool)
        case switching
        case switched
        case failed(HTTP1Error)
    }

    private var request = RequestSide.idle
    private var response = ResponseSide.idle
    private var peerEnded = false

    // MARK: Asking

    var reading: Reading {
        switch response {
        case .idle: .nothing(keepsAlive: true, answered: false)
        case .head, .body: .message
        case .complete(let keepsAlive): .nothing(keepsAlive: keepsAlive, answered: true)
        case .switching: .switching
        case .switched: .switched
        case .failed(let error): .failed(error)
        }
    }

    /// The facts of the request whose response head is awaited; nil while none is awaited.
    var awaitedBy: RequestFacts? {
        if case .head(let facts, _) = response { facts } else { nil }
    }

    var hasPeerEnded: Bool { peerEnded }

    var canBeReused: Bool {
        if case .complete = request, case .complete(keepsAlive: true) = response { !peerEnded } else { false }
    }

    // MARK: The request

    mutating func requestHead(_ facts: RequestFacts, framing: RequestBodyFraming) throws(HTTP1Error) {
        switch request {
        case .idle:
            request = .body(framing, sent: 0)
            // If the server broke the rules before the request, the response side stays failed.
            if case .idle = response { response = .head(facts, informational: 0) }
        case .body: throw failRequest(.outOfTurn(.head, during: .body))
        case .complete: throw failRequest(.outOfTurn(.head, during: .complete))
        case .failed(let error): throw error
        }
    }

    /// - Returns: Whether the piece has to be framed as a chunk.
    mutating func requestBody(_ count: Int) throws(HTTP1Error) -> Bool {
        switch request {
        case .idle: throw failRequest(.outOfTurn(.body, during: .idle))
        case .complete: throw failRequest(.outOfTurn(.body, during: .complete))
        case .failed(let error): throw error
        case .body(.none, _):
            if count > 0 { throw failRequest(.bodyTooLong(declared: 0, attempted: Int64(count))) }
            return false
        case .body(.length(let length), let sent):
            if Int64(count) > length - sent {
                throw failRequest(.bodyTooLong(declared: length, attempted: sent &+ Int64(count)))
            }
            request = .body(.length(length), sent: sent + Int64(count))
            return false
        case .body(.chunked, _):
            return true
        }
    }

    /// - Returns: Whether a last chunk and a trailer section have to be written.
    mutating func requestEnd(hasTrailers: Bool) throws(HTTP1Error) -> Bool {
        switch request {
        case .idle: throw failRequest(.outOfTurn(.end, during: .idle))
        case .complete: throw failRequest(.outOfTurn(.end, during: .complete))
        case .failed(let error): throw error
        case .body(let framing, let sent):
            if case .length(let length) = framing, sent < length {
                throw failRequest(.bodyTooShort(declared: length, sent: sent))
            }
            if hasTrailers, framing != .chunked { throw failRequest(.trailersWithoutChunks) }
            request = .complete
            return framing == .chunked
        }
    }

    /// Makes the request side fail, because the writer found that the message cannot be written.
    mutating func failRequest(_ fault: HTTP1Error.Local) -> HTTP1Error {
        if case .failed(let error) = request { return error }
        request = .failed(.local(fault))
        return .local(fault)
    }

    // MARK: The response

    mutating func informational(limit: Int) throws(HTTP1Error) {
        guard case .head(let facts, let count) = response else { preconditionFailure("bug in Rondo") }
        if count >= limit { throw .peer(.exceeded(.informationalResponses(limit))) }
        response = .head(facts, informational: count + 1)
    }

    mutating func finalHead(_ framing: ResponseFraming, saysKeepAlive: Bool) {
        guard case .head(let facts, _) = response else { preconditionFailure("bug in Rondo") }
        switch framing {
        case .switched: response = .switching
        case .untilClose: response = .body(keepsAlive: false)
        case .none, .length, .chunked: response = .body(keepsAlive: saysKeepAlive && !facts.saysClose)
        }
    }

    mutating func responseEnd() {
        guard case .body(let keepsAlive) = response else { preconditionFailure("bug in Rondo") }
        response = .complete(keepsAlive: keepsAlive)
    }

    mutating func didSwitch() { response = .switched }
    mutating func peerEnd() { peerEnded = true }
    mutating func failResponse(_ error: HTTP1Error) { response = .failed(error) }

    /// Whether an interim response has been received since the request.
    var hasInformational: Bool {
        if case .head(_, let count) = response { count > 0 } else { false }
    }

    // MARK: Again

    mutating func startNextCycle() {
        precondition(canBeReused, "bug in Rondo: this connection cannot carry another request")
        request = .idle
        response = .idle
    }
}
