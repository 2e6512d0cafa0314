// As Drip.swift does for HTTP/1.1: frames are read whole, byte by byte and at every split in two, and what was heard has
// to be the same. The frames are written here by hand, so that no mistake of the codec can hide in both its ends.

import Foundation
import RondoHTTP
import Testing

/// All that came of the bytes of one connection.
struct WebSocketOutcome: Equatable {
    var events: [WebSocketEvent] = []
    var error: WebSocketError?
    /// The answers that were owed after all of it, in frames of this end.
    var answers: [UInt8] = []
}

/// Bytes that come to one end of a connection, and what has to come of them, however they are cut.
struct WebSocketCase: Sendable, CustomTestStringConvertible {
    var testDescription: String
    var bytes: [UInt8]
    var role: WebSocketRole
    var compression: WebSocketCompression?
    var limits = WebSocketLimits()
    /// Whether the other end leaves after it.
    var ended: Bool
    var expected: WebSocketOutcome

    init(
        _ name: String, _ bytes: [UInt8], to role: WebSocketRole = .client,
        compression: WebSocketCompression? = nil, limit: Int? = nil, ended: Bool = false,
        hears events: [WebSocketEvent] = [], failsWith fault: WebSocketError.Peer? = nil,
        answers: [UInt8]? = nil
    ) {
        testDescription = name
        self.bytes = bytes
        self.role = role
        self.compression = compression
        if let limit { limits.maximumMessageSize = limit }
        self.ended = ended
        let error = fault.map { WebSocketError.peer($0) }
        let close = error?.closeCode.map { Frame.sent(0x88, Frame.number($0), by: role) }
        expected = WebSocketOutcome(events: events, error: error, answers: answers ?? close ?? [])
    }

    func hearInEveryWay(trailing: [UInt8] = [], _ check: (WebSocketOutcome) -> Void) {
        for pieces in cuts(of: bytes + trailing) { check(hear(pieces)) }
    }

    /// A long case is cut in three ways only: a split at each of its bytes would take the square of them.
    private func cuts(of bytes: [UInt8]) -> [[ArraySlice<UInt8>]] {
        if bytes.count < 600 { return Drip.cuts(of: bytes) }
        let middle = bytes.count / 2
        return [[bytes[...]], bytes.indices.map { bytes[$0...$0] }, [bytes[..<middle], bytes[middle...]]]
    }

    func hear(_ pieces: [ArraySlice<UInt8>]) -> WebSocketOutcome {
        var connection = WebSocketConnection(
            role, compression: compression, limits: limits, generator: FixedKeys())
        var outcome = WebSocketOutcome()
        outcome.hear(pieces, on: &connection, ended: ended)
        connection.sendAnswers(into: &outcome.answers)
        return outcome
    }
}

extension WebSocketOutcome {
    mutating func hear(
        _ pieces: [ArraySlice<UInt8>], on connection: inout WebSocketConnection, ended: Bool = false
    ) {
        do throws(WebSocketError) {
            for piece in pieces {
                connection.receive(piece)
                try hear(&connection)
            }
            guard ended else { return }
            connection.receiveEnd()
            try hear(&connection)
        } catch {
            self.error = error
            // A failure is never left, whatever comes.
            connection.receive([0x81, 0x00])
            do throws(WebSocketError) {
                let event = try connection.nextEvent()
                Issue.record("\(event) after an error")
            } catch let again {
                #expect(again == error)
            }
        }
    }

    private mutating func hear(_ connection: inout WebSocketConnection) throws(WebSocketError) {
        while true {
            let event = try connection.nextEvent()
            switch event {
            case .needMoreData: return
            case .closed:
                if events.last != .closed { events.append(event) }
                return
            case .message, .ping, .pong, .close: events.append(event)
            }
        }
    }
}

/// Frames by hand.
enum Frame {
    /// The key of RFC 6455 §5.7.
    static let key: [UInt8] = [0x37, 0xFA, 0x21, 0x3D]

    /// A frame without a mask.
    static func bare(_ first: UInt8, _ payload: [UInt8]) -> [UInt8] {
        [first] + length(payload.count) + payload
    }

    static func bare(_ first: UInt8, _ text: String) -> [UInt8] { bare(first, Array(text.utf8)) }

    /// A frame that is masked by `key`.
    static func masked(_ first: UInt8, _ payload: [UInt8]) -> [UInt8] {
        var length = length(payload.count)
        length[0] |= 0x80
        return [first] + length + key + payload.enumerated().map { $1 ^ key[$0 % 4] }
    }

    static func masked(_ first: UInt8, _ text: String) -> [UInt8] { masked(first, Array(text.utf8)) }

    /// A frame as the end of this role sends it, with `FixedKeys`.
    static func sent(_ first: UInt8, _ payload: [UInt8], by role: WebSocketRole) -> [UInt8] {
        switch role {
        case .client: masked(first, payload)
        case .server: bare(first, payload)
        }
    }

    static func number(_ number: UInt16) -> [UInt8] { [UInt8(number >> 8), UInt8(number & 0xFF)] }

    /// A close frame of a server.
    static func close(_ code: UInt16, _ reason: [UInt8] = []) -> [UInt8] { bare(0x88, number(code) + reason) }

    private static func length(_ count: Int) -> [UInt8] {
        switch count {
        case ..<126: [UInt8(count)]
        case ..<65536: [126] + number(UInt16(count))
        default: [127] + (0..<8).map { UInt8(truncatingIfNeeded: count >> (56 - 8 * $0)) }
        }
    }
}

/// Makes every mask the one of RFC 6455 §5.7.
struct FixedKeys: RandomNumberGenerator, Sendable {
    func next() -> UInt64 { 0x3D21_FA37 }
}

extension WebSocketEvent {
    static func text(_ text: String) -> WebSocketEvent { .message(.text(text)) }
    static func binary(_ bytes: [UInt8]) -> WebSocketEvent { .message(.binary(Data(bytes))) }
    static func ping(_ text: String) -> WebSocketEvent { .ping(Array(text.utf8)) }
    static func pong(_ text: String) -> WebSocketEvent { .pong(Array(text.utf8)) }

    static func close(_ code: UInt16, _ reason: String = "") -> WebSocketEvent {
        .close(WebSocketClose(sending: code, reason: Data(reason.utf8)))
    }
}

extension [UInt8] {
    /// Of hexadecimal digits, blanks between them.
    init(hex: String) {
        self = hex.split(separator: " ").map { UInt8($0, radix: 16)! }
    }
}
