// The closing handshake as far as it has no clock, and what is owed to the other end.

import Foundation
import RondoHTTP
import Testing

@Suite struct WebSocketCloseTests {
    // MARK: The other end closes

    @Test(arguments: closes)
    func `WS-19 a close frame is answered with its code, after what came before it`(_ example: WebSocketCase)
    {
        example.hearInEveryWay { #expect($0 == example.expected) }
    }

    @Test(arguments: closes)
    func `WS-22 bytes after a close frame are ignored`(_ example: WebSocketCase) {
        for trailing in [Frame.bare(0x81, "late"), Frame.close(1002), [0xFF, 0xFF, 0xFF]] {
            example.hearInEveryWay(trailing: trailing) { #expect($0 == example.expected) }
        }
    }

    @Test(arguments: badCloses)
    func `WS-20 a close frame that says nothing sensible is a failure`(_ example: WebSocketCase) {
        example.hearInEveryWay { #expect($0 == example.expected) }
    }

    @Test func `WS-20 a close frame without payload has no code and no reason`() {
        #expect(WebSocketClose.empty.code == nil)
        #expect(WebSocketClose.empty.reason.isEmpty)
    }

    @Test func `WS-19 nothing but the answer is sent after the other end has closed`() throws {
        var connection = WebSocketConnection(generator: FixedKeys())
        var (outcome, output) = (WebSocketOutcome(), [UInt8]())
        outcome.hear(
            [(Frame.bare(0x89, "owed") + Frame.close(4000, Array("why".utf8)))[...]], on: &connection)
        #expect(outcome.events == [.ping("owed"), .close(4000, "why"), .closed])
        #expect(connection.isOpen == false)
        expectNotOpen(&connection)
        // A pong need not follow a close frame (RFC 6455 §5.5.2).
        connection.sendAnswers(into: &output)
        #expect(output == Frame.masked(0x88, Frame.number(4000)))
        #expect(connection.hasAnswers == false)
        connection.sendAnswers(into: &output)
        #expect(output.count == 8)
    }

    @Test func `WS-19 the rest of a message that is being sent is given up when the other end closes`() throws
    {
        var connection = WebSocketConnection(generator: FixedKeys())
        connection.limits.maximumSentFrameSize = 3
        var (outcome, output) = (WebSocketOutcome(), [UInt8]())
        try connection.startSending(.text("abcdef"))
        #expect(try connection.sendNextFrame(into: &output) == false)
        outcome.hear([Frame.close(1000)[...]], on: &connection)
        #expect(connection.isSendingMessage == false)
        connection.sendAnswers(into: &output)
        #expect(output == Frame.masked(0x01, "abc") + Frame.masked(0x88, Frame.number(1000)))
    }

    // MARK: This end closes

    @Test func `WS-17 a close frame has code and reason, or nothing`() throws {
        #expect(try sentClose(1001, "going") == Frame.masked(0x88, Frame.number(1001) + Array("going".utf8)))
        #expect(try sentClose(4999) == Frame.masked(0x88, Frame.number(4999)))
        for code in [0, 1, 999, 1004, 1005, 1006, 1015, 1016, 2999, 5000, 65535] as [UInt16] {
            #expect(!WebSocketClose.canBeSent(code))
            #expect(try sentClose(code, "reason") == Frame.masked(0x88, [UInt8]()))
        }
    }

    @Test func `WS-17 a reason is cut to 123 bytes, before a character that would be cut`() {
        func cut(_ reason: [UInt8]) -> Data { WebSocketClose(sending: 1000, reason: Data(reason)).reason }
        let ascii = [UInt8](repeating: 0x61, count: 130)
        #expect(cut(ascii).count == 123)
        #expect(cut(Array(ascii[..<123])).count == 123)
        for (text, count) in [("é", 122), ("€", 123), ("🎵", 120)] {
            let reason = cut(Array(String(repeating: text, count: 70).utf8))
            #expect(reason.count == count)
            #expect(String(validating: reason, as: UTF8.self) != nil)
        }
        // What is no text has no characters.
        #expect(cut([UInt8](repeating: 0x80, count: 200)).count == 123)
        #expect(WebSocketClose(sending: 1000, reason: Data(ascii)[5...]).reason.count == 123)
    }

    @Test func `WS-17 nothing is sent after a close frame but a pong`() throws {
        var connection = WebSocketConnection(generator: FixedKeys())
        var (outcome, output) = (WebSocketOutcome(), [UInt8]())
        try connection.send(close: .empty, into: &output)
        #expect(connection.isOpen == false)
        expectNotOpen(&connection)
        outcome.hear([Frame.bare(0x89, "still there?")[...]], on: &connection)
        connection.sendAnswers(into: &output)
        #expect(output == Frame.masked(0x88, [UInt8]()) + Frame.masked(0x8A, "still there?"))
    }

    @Test func `WS-18 messages that come after this end has closed are passed over`() throws {
        let late =
            Frame.bare(0x80, "of a message before") + Frame.bare(0x82, WebSocketFrameTests.bytes(300))
            + Frame.bare(0x01, [0xFF]) + Frame.bare(0x8A, "pong") + Frame.bare(0x80, "")
        for pieces in Drip.cuts(of: late + Frame.close(1000) + [0xFF, 0xFF]) {
            var connection = WebSocketConnection()
            connection.limits.maximumMessageSize = 10
            var (outcome, output) = (WebSocketOutcome(), [UInt8]())
            outcome.hear([Frame.bare(0x01, "begun")[...]], on: &connection)
            try connection.send(close: WebSocketClose(sending: 1000), into: &output)
            outcome.hear(pieces, on: &connection)
            #expect(outcome == WebSocketOutcome(events: [.pong("pong"), .close(1000), .closed]))
            // Both have closed: nothing is owed.
            #expect(connection.hasAnswers == false)
        }
    }

    @Test func `WS-18 a fault of the other end after this end has closed owes nothing`() throws {
        for fault in [Frame.bare(0x83, "?"), Frame.bare(0x80, "?"), Frame.close(1005)] {
            var connection = WebSocketConnection()
            var (outcome, output) = (WebSocketOutcome(), [UInt8]())
            try connection.send(close: .empty, into: &output)
            outcome.hear([fault[...]], on: &connection)
            #expect(outcome.error?.closeCode == 1002)
            #expect(connection.hasAnswers == false)
        }
    }

    @Test func `WS-18 the end of the connection after this end has closed is no failure`() throws {
        var connection = WebSocketConnection()
        var (outcome, output) = (WebSocketOutcome(), [UInt8]())
        try connection.send(close: .empty, into: &output)
        outcome.hear([[0x81]], on: &connection, ended: true)
        #expect(outcome == WebSocketOutcome(events: [.closed]))
    }

    // MARK: Neither closes

    @Test(arguments: ends)
    func `WS-21 a connection that ends without a close frame has failed, and owes none`(
        _ example: WebSocketCase
    ) {
        #expect(example.expected.error?.closeCode == nil)
        example.hearInEveryWay { #expect($0 == example.expected) }
    }

    @Test func `WS-21 a failed connection sends nothing but its close frame`() {
        var connection = WebSocketConnection(generator: FixedKeys())
        var (outcome, output) = (WebSocketOutcome(), [UInt8]())
        outcome.hear([(Frame.bare(0x89, "owed") + Frame.bare(0x83, ""))[...]], on: &connection)
        expectNotOpen(&connection)
        connection.sendAnswers(into: &output)
        #expect(output == Frame.masked(0x88, Frame.number(1002)))
        #expect(connection.hasAnswers == false)
    }

    // MARK: Pings

    @Test func `WS-15 a pong has the payload of the last ping, and goes out between the frames of a message`()
        throws
    {
        var connection = WebSocketConnection(generator: FixedKeys())
        connection.limits.maximumSentFrameSize = 4
        var (outcome, output) = (WebSocketOutcome(), [UInt8]())
        try connection.startSending(.binary(Data([1, 2, 3, 4, 5, 6])))
        #expect(try connection.sendNextFrame(into: &output) == false)
        for number in 1...1000 { outcome.hear([Frame.bare(0x89, "\(number)")[...]], on: &connection) }
        #expect(connection.hasAnswers == true)
        connection.sendAnswers(into: &output)
        #expect(connection.hasAnswers == false)
        #expect(try connection.sendNextFrame(into: &output) == true)
        #expect(
            output == Frame.masked(0x02, [1, 2, 3, 4]) + Frame.masked(0x8A, "1000")
                + Frame.masked(0x80, [5, 6]))
    }

    @Test func `WS-16 a ping has a payload of its own, of at most 125 bytes`() throws {
        var connection = WebSocketConnection(generator: FixedKeys())
        var output: [UInt8] = []
        try connection.send(ping: Array("one".utf8), into: &output)
        #expect(output == Frame.masked(0x89, "one"))
        do throws(WebSocketError) {
            try connection.send(ping: WebSocketFrameTests.bytes(126), into: &output)
            Issue.record("it was sent")
        } catch {
            #expect(error == .local(.longPing(126)) && error.closeCode == nil)
        }
        #expect(output.count == 9)
        #expect(connection.isOpen == true)
    }

    // MARK: Inside

    private func sentClose(_ code: UInt16, _ reason: String = "") throws -> [UInt8] {
        var connection = WebSocketConnection(generator: FixedKeys())
        var output: [UInt8] = []
        try connection.send(close: WebSocketClose(sending: code, reason: Data(reason.utf8)), into: &output)
        return output
    }

    private func expectNotOpen(_ connection: inout WebSocketConnection) {
        var output: [UInt8] = []
        do throws(WebSocketError) {
            try connection.send(.text("a"), into: &output)
            Issue.record("a message was sent")
        } catch {
            #expect(error == .local(.notOpen))
        }
        do throws(WebSocketError) {
            try connection.send(ping: [], into: &output)
            Issue.record("a ping was sent")
        } catch {
            #expect(error == .local(.notOpen))
        }
        do throws(WebSocketError) {
            try connection.send(close: .empty, into: &output)
            Issue.record("a close frame was sent")
        } catch {
            #expect(error == .local(.notOpen))
        }
        #expect(output.isEmpty)
    }

    // MARK: Cases

    static let closes: [WebSocketCase] =
        [
            WebSocketCase(
                "empty", Frame.bare(0x88, ""), hears: [.close(.empty), .closed],
                answers: Frame.masked(0x88, "")),
            WebSocketCase(
                "with a reason", Frame.bare(0x81, "a") + Frame.close(1001, Array("à bientôt".utf8)),
                hears: [.text("a"), .close(1001, "à bientôt"), .closed],
                answers: Frame.masked(0x88, Frame.number(1001))),
            WebSocketCase(
                "in a message", Frame.bare(0x01, "a") + Frame.close(1000), hears: [.close(1000), .closed],
                answers: Frame.masked(0x88, Frame.number(1000))),
            WebSocketCase(
                "a reason of 123 bytes", Frame.close(1000, [UInt8](repeating: 0x61, count: 123)),
                hears: [.close(1000, String(repeating: "a", count: 123)), .closed],
                answers: Frame.masked(0x88, Frame.number(1000))),
            WebSocketCase(
                "to a server", Frame.masked(0x88, Frame.number(1000)), to: .server,
                hears: [.close(1000), .closed], answers: Frame.close(1000)),
            WebSocketCase(
                "and the end of the connection", Frame.close(1000), ended: true,
                hears: [.close(1000), .closed],
                answers: Frame.masked(0x88, Frame.number(1000))),
        ]
        + [1002, 1003, 1007, 1008, 1009, 1010, 1011, 1012, 1013, 1014, 3000, 3999, 4000, 4999].map { code in
            WebSocketCase(
                "code \(code)", Frame.close(code), hears: [.close(code), .closed],
                answers: Frame.masked(0x88, Frame.number(code)))
        }

    static let badCloses: [WebSocketCase] =
        [
            WebSocketCase("one byte", Frame.bare(0x88, [0x03]), failsWith: .truncatedCloseCode),
            WebSocketCase(
                "a reason that is not UTF-8", Frame.close(1000, [0x61, 0xED, 0xA0, 0x80]),
                failsWith: .invalidCloseReason),
            WebSocketCase(
                "a reason that is cut", Frame.close(1000, [0xE2, 0x82]), failsWith: .invalidCloseReason),
        ]
        + [0, 999, 1004, 1005, 1006, 1015, 1016, 1100, 2000, 2999, 5000, 65535].map { code in
            WebSocketCase("code \(code)", Frame.close(code), failsWith: .invalidCloseCode(code))
        }

    static let ends: [WebSocketCase] = [
        WebSocketCase("nothing", [], ended: true, failsWith: .endedWithoutClose),
        WebSocketCase(
            "a message", Frame.bare(0x81, "a"), ended: true, hears: [.text("a")],
            failsWith: .endedWithoutClose),
        WebSocketCase("half a header", [0x81], ended: true, failsWith: .endedInsideMessage),
        WebSocketCase("half a payload", [0x81, 2, 0x61], ended: true, failsWith: .endedInsideMessage),
        WebSocketCase(
            "between fragments", Frame.bare(0x01, "a"), ended: true, failsWith: .endedInsideMessage),
        WebSocketCase(
            "in a close frame", [0x88, 2, 0x03], ended: true, failsWith: .endedInsideMessage),
    ]
}
