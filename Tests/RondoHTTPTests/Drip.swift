// A codec must not notice how its bytes were cut. Each message of the tables is read whole, byte by byte and
// at every split in two, each in both ways that a connection can be fed; what was heard has to be the same.

import RondoHTTP
import Testing

/// The ways in which one sequence of bytes may arrive.
enum Drip {
    static func cuts(of bytes: [UInt8]) -> [[ArraySlice<UInt8>]] {
        var cuts = [[bytes[...]], bytes.indices.map { bytes[$0...$0] }]
        for split in bytes.indices.dropFirst() { cuts.append([bytes[..<split], bytes[split...]]) }
        return cuts
    }
}

/// The events that a client heard, with the pieces of a body joined.
enum Heard: Equatable {
    case informational(Int, [String] = [])
    case response(Int, length: Int64?)
    case body(String)
    case trailers([String])
    case end
    case switched(leftover: String)
}

/// All that came of one exchange.
struct Outcome: Equatable {
    var heard: [Heard] = []
    var error: HTTP1Error?
    var isReusable = false
    var isClosed = false
    var head: ResponseHead?
}

/// One way of feeding a connection.
enum Feeding: CaseIterable {
    /// From the queue of a `QueuedCodec`.
    case queue
    /// From the piece that has come, as connections do.
    case inPlace
}

/// Sends a request and listens to what `pieces` answer.
struct Listener {
    private(set) var codec: QueuedCodec
    private(set) var outcome = Outcome()
    private var leftover: [UInt8]?

    init(_ request: RequestHead = .get, limits: HTTP1Limits = HTTP1Limits()) throws {
        codec = QueuedCodec(limits: limits)
        try send(request)
    }

    mutating func send(_ request: RequestHead) throws {
        var output: [UInt8] = []
        try codec.send(head: request, body: .none, into: &output)
        try codec.sendEnd(into: &output)
    }

    mutating func startNextCycle(_ request: RequestHead = .get) throws {
        let begins = codec.startNextCycle()
        #expect(begins)
        outcome = Outcome()
        try send(request)
    }

    /// - Parameter ended: Whether the server closes the connection after the last piece.
    mutating func hear(_ pieces: [ArraySlice<UInt8>], _ feeding: Feeding, ended: Bool) -> Outcome {
        do {
            for piece in pieces { try hear(piece, feeding) }
            if ended {
                codec.receiveEnd()
                try hear([], feeding)
            }
        } catch {
            outcome.error = error
            #expect(throws: error) { try codec.nextEvent() }
        }
        if let leftover {
            outcome.heard.append(.switched(leftover: String(decoding: leftover, as: UTF8.self)))
        }
        outcome.isReusable = codec.base.canBeReused
        return outcome
    }

    private mutating func hear(_ piece: ArraySlice<UInt8>, _ feeding: Feeding) throws(HTTP1Error) {
        if leftover != nil {
            leftover! += piece
            return
        }
        switch feeding {
        case .queue:
            codec.receive(piece)
            while note(try codec.nextEvent(), codec.bytes) {}
        case .inPlace:
            let input = Array(piece)
            var consumed = 0
            try input.withUnsafeBufferPointer { (buffer) throws(HTTP1Error) in
                let raw = UnsafeRawBufferPointer(buffer)
                var event: HTTP1Event
                var bytes: ArraySlice<UInt8>
                repeat {
                    event = try codec.base.nextEvent(from: raw, consumed: &consumed)
                    bytes = if case .body(let range) = event { input[range] } else { [] }
                } while note(event, bytes)
                if event == .needMoreData { #expect(consumed == raw.count) }
            }
            if leftover != nil { leftover! += input[consumed...] }
        }
    }

    /// - Returns: Whether to ask for another event.
    private mutating func note(_ event: HTTP1Event, _ bytes: ArraySlice<UInt8>) -> Bool {
        switch event {
        case .informational(let head):
            outcome.heard.append(.informational(head.status, head.fields.map { "\($0.name): \($0.value)" }))
        case .response(let head, let length):
            outcome.head = head
            outcome.heard.append(.response(head.status, length: length))
        case .body: noteBody(bytes)
        case .trailers(let fields):
            outcome.heard.append(.trailers(fields.map { "\($0.name): \($0.value)" }))
        case .end: outcome.heard.append(.end)
        case .switchedProtocol:
            leftover = Array(bytes)
            return false
        case .needMoreData, .paused: return false
        case .closed:
            outcome.isClosed = true
            return false
        }
        return true
    }

    private mutating func noteBody(_ bytes: ArraySlice<UInt8>) {
        #expect(!bytes.isEmpty)
        let text = String(decoding: bytes, as: UTF8.self)
        if case .body(let before) = outcome.heard.last {
            outcome.heard[outcome.heard.count - 1] = .body(before + text)
        } else {
            outcome.heard.append(.body(text))
        }
    }
}

extension RequestHead {
    static let get = request("GET")
    static let head = request("HEAD")

    static func request(_ method: String, _ fields: [(String, String)] = []) -> RequestHead {
        RequestHead(method: method, target: "/", fields: HeaderFields([("Host", "a.example")] + fields))
    }

    static let connect = RequestHead(
        method: "CONNECT", target: "a.example:443", fields: HeaderFields([("Host", "a.example:443")]))
    static let upgrade = request("GET", [("Connection", "Upgrade"), ("Upgrade", "websocket")])
}

/// A response in its whole length and what has to come of it, however it is cut.
struct Message: Sendable, CustomTestStringConvertible {
    var testDescription: String
    var bytes: [UInt8]
    var request: RequestHead
    /// Whether the server closes the connection after it.
    var ended: Bool
    var limits = HTTP1Limits()
    var expected: Outcome

    /// A response that can be read.
    init(
        _ name: String, _ text: String, to request: RequestHead = .get, ended: Bool = false,
        limits: HTTP1Limits = HTTP1Limits(), hears heard: [Heard], reusable: Bool = true
    ) {
        testDescription = name
        bytes = Array(text.utf8)
        self.request = request
        self.ended = ended
        self.limits = limits
        expected = Outcome(heard: heard, isReusable: reusable)
    }

    /// A response that is refused.
    init(
        _ name: String, _ text: String, to request: RequestHead = .get, ended: Bool = false,
        limits: HTTP1Limits = HTTP1Limits(), hears heard: [Heard] = [], failsWith fault: HTTP1Error.Peer
    ) {
        self.init(
            name, text, to: request, ended: ended, limits: limits, hears: heard, reusable: false)
        expected.error = .peer(fault)
    }

    /// Reads the message in every way; `check` sees what came of each.
    func hearInEveryWay(_ check: (Outcome) -> Void) throws {
        for feeding in Feeding.allCases {
            for pieces in Drip.cuts(of: bytes) {
                var listener = try Listener(request, limits: limits)
                var outcome = listener.hear(pieces, feeding, ended: ended)
                outcome.head = nil
                outcome.isClosed = false
                check(outcome)
            }
        }
    }
}

extension Outcome: CustomTestStringConvertible {
    var testDescription: String { "\(heard), error: \(String(describing: error)), reusable: \(isReusable)" }
}
