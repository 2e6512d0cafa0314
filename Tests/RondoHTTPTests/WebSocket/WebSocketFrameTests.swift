// What frames say, by the table: each case whole, byte by byte, at every split, and with trailing frames.

import Foundation
import RondoHTTP
import Testing

@Suite struct WebSocketFrameTests {
    @Test(arguments: messages)
    func `WS-9 messages are the same however their frames arrive`(_ example: WebSocketCase) {
        example.hearInEveryWay { #expect($0 == example.expected) }
    }

    @Test(arguments: messages)
    func `WS-9 frames after a message are read as if they had come alone`(_ example: WebSocketCase) {
        let isServer = example.role == .server
        let trailing = isServer ? Frame.masked(0x8A, "next") : Frame.bare(0x8A, "next")
        var expected = example.expected
        expected.events.append(.pong("next"))
        example.hearInEveryWay(trailing: trailing) { #expect($0 == expected) }
    }

    @Test(arguments: violations)
    func `WS-13 a frame against the rules fails the connection with 1002`(_ example: WebSocketCase) {
        #expect(example.expected.error?.closeCode == 1002)
        example.hearInEveryWay { #expect($0 == example.expected) }
        example.hearInEveryWay(trailing: Frame.bare(0x81, "after")) { #expect($0 == example.expected) }
    }

    @Test(arguments: badText)
    func `WS-12 text that is not UTF-8 fails the connection with 1007`(_ example: WebSocketCase) {
        #expect(example.expected.error?.closeCode == 1007)
        example.hearInEveryWay { #expect($0 == example.expected) }
        example.hearInEveryWay(trailing: Frame.bare(0x81, "after")) { #expect($0 == example.expected) }
    }

    @Test func `WS-12 the first bad byte is enough, before its frame and its message end`() throws {
        // Autobahn's 6.4.1: a surrogate in the middle of a frame of which no more comes.
        let start = Array("κόσμε".utf8) + [0xED]
        let announced: [UInt8] = [0x01, 40]
        var outcome = WebSocketOutcome()
        var connection = WebSocketConnection()
        outcome.hear([(announced + start)[...]], on: &connection)
        #expect(outcome == WebSocketOutcome())
        outcome.hear([[0xA0]], on: &connection)
        #expect(outcome.error == .peer(.invalidText))
    }

    @Test(arguments: tooLong)
    func `WS-11 one byte more than a message may have fails the connection with 1009`(
        _ example: WebSocketCase
    ) {
        #expect(example.expected.error?.closeCode == 1009)
        example.hearInEveryWay { #expect($0 == example.expected) }
    }

    @Test func `WS-11 the limit is looked at before any byte has come`() {
        var outcome = WebSocketOutcome()
        var connection = WebSocketConnection()
        #expect(connection.limits.maximumMessageSize == 1_048_576)
        outcome.hear([[0x82, 127, 0, 0, 0, 0, 0, 0x10, 0, 1]], on: &connection)
        #expect(outcome.error == .peer(.messageTooLong(limit: 1_048_576)))
    }

    @Test func `WS-11 a limit that was changed holds for the rest of a message`() {
        var outcome = WebSocketOutcome()
        var connection = WebSocketConnection()
        outcome.hear([Frame.bare(0x01, "12345")[...]], on: &connection)
        connection.limits.maximumMessageSize = 7
        outcome.hear([Frame.bare(0x00, "67")[...]], on: &connection)
        #expect(outcome.error == nil)
        connection.limits.maximumMessageSize = 3
        outcome.hear([Frame.bare(0x00, "")[...]], on: &connection)
        #expect(outcome.error == .peer(.messageTooLong(limit: 3)))
    }

    @Test func `WS-14 complete messages come before the failure, and nothing after it`() {
        let bytes = Frame.bare(0x81, "whole") + Frame.bare(0x01, "half") + Frame.bare(0x83, "")
        WebSocketCase("", bytes, hears: [.text("whole")], failsWith: .unknownOpcode(3))
            .hearInEveryWay(trailing: Frame.bare(0x81, "after")) {
                #expect($0.events == [.text("whole")] && $0.error == .peer(.unknownOpcode(3)))
                #expect($0.answers == Frame.masked(0x88, [0x03, 0xEA]))
            }
    }

    // MARK: Cases

    private static let hello = Array("Hello".utf8)

    static let messages: [WebSocketCase] = [
        // RFC 6455 §5.7
        WebSocketCase("§5.7 text", [UInt8](hex: "81 05 48 65 6c 6c 6f"), hears: [.text("Hello")]),
        WebSocketCase(
            "§5.7 masked text", [UInt8](hex: "81 85 37 fa 21 3d 7f 9f 4d 51 58"), to: .server,
            hears: [.text("Hello")]),
        WebSocketCase(
            "§5.7 fragments", [UInt8](hex: "01 03 48 65 6c 80 02 6c 6f"), hears: [.text("Hello")]),
        WebSocketCase(
            "§5.7 ping", [UInt8](hex: "89 05 48 65 6c 6c 6f"), hears: [.ping("Hello")],
            answers: [UInt8](hex: "8a 85 37 fa 21 3d 7f 9f 4d 51 58")),
        WebSocketCase(
            "§5.7 masked pong", [UInt8](hex: "8a 85 37 fa 21 3d 7f 9f 4d 51 58"), to: .server,
            hears: [.pong("Hello")]),
        WebSocketCase(
            "§5.7 256 bytes", [UInt8](hex: "82 7e 01 00") + bytes(256), hears: [.binary(bytes(256))]),
        WebSocketCase(
            "§5.7 64 KiB", [UInt8](hex: "82 7f 00 00 00 00 00 01 00 00") + bytes(65536),
            hears: [.binary(bytes(65536))]),
        // Lengths at the borders of their forms.
        WebSocketCase("nothing", Frame.bare(0x81, ""), hears: [.text("")]),
        WebSocketCase("nothing, binary", Frame.bare(0x82, ""), hears: [.binary([])]),
        WebSocketCase("nothing, masked", Frame.masked(0x81, ""), to: .server, hears: [.text("")]),
        WebSocketCase("125 bytes", Frame.bare(0x82, bytes(125)), hears: [.binary(bytes(125))]),
        WebSocketCase("126 bytes", Frame.bare(0x82, bytes(126)), hears: [.binary(bytes(126))]),
        WebSocketCase("65,535 bytes", Frame.bare(0x82, bytes(65535)), hears: [.binary(bytes(65535))]),
        WebSocketCase(
            "300 bytes, masked", Frame.masked(0x82, bytes(300)), to: .server, hears: [.binary(bytes(300))]),
        // Fragments.
        WebSocketCase(
            "many fragments, empty ones too",
            Frame.bare(0x01, "") + Frame.bare(0x00, "a") + Frame.bare(0x00, "") + Frame.bare(0x00, "bc")
                + Frame.bare(0x80, ""), hears: [.text("abc")]),
        WebSocketCase(
            "binary fragments, masked",
            Frame.masked(0x02, bytes(7)) + Frame.masked(0x00, bytes(9)) + Frame.masked(0x80, bytes(3)),
            to: .server, hears: [.binary(bytes(7) + bytes(9) + bytes(3))]),
        WebSocketCase(
            "control frames between fragments",
            Frame.bare(0x01, "a") + Frame.bare(0x89, "one") + Frame.bare(0x00, "b") + Frame.bare(0x8A, "two")
                + Frame.bare(0x80, "c"), hears: [.ping("one"), .pong("two"), .text("abc")],
            answers: Frame.masked(0x8A, "one")),
        WebSocketCase(
            "a ping of 125 bytes", Frame.bare(0x89, bytes(125)), hears: [.ping(bytes(125))],
            answers: Frame.masked(0x8A, bytes(125))),
        WebSocketCase(
            "several", Frame.bare(0x81, "a") + Frame.bare(0x82, "b") + Frame.bare(0x81, "c"),
            hears: [.text("a"), .binary([0x62]), .text("c")]),
        // Text (Autobahn 6.2, 6.3).
        WebSocketCase(
            "characters cut by fragments",
            Frame.bare(0x01, [0xCE]) + Frame.bare(0x00, [0xBA, 0xF0, 0x9F]) + Frame.bare(0x00, [0x8E])
                + Frame.bare(0x80, [0xB5, 0x21]), hears: [.text("κ🎵!")]),
        WebSocketCase(
            "the borders of each length",
            Frame.bare(0x81, "\u{0}\u{7F}\u{80}\u{7FF}\u{800}\u{D7FF}\u{E000}\u{FFFF}\u{10000}\u{10FFFF}"),
            hears: [.text("\u{0}\u{7F}\u{80}\u{7FF}\u{800}\u{D7FF}\u{E000}\u{FFFF}\u{10000}\u{10FFFF}")]),
        // Exactly what a message may have (WS-11).
        WebSocketCase(
            "at the limit", Frame.bare(0x81, "0123456789"), limit: 10, hears: [.text("0123456789")]),
        WebSocketCase(
            "at the limit, in fragments", Frame.bare(0x01, "012345") + Frame.bare(0x80, "6789"), limit: 10,
            hears: [.text("0123456789")]),
    ]

    static let violations: [WebSocketCase] =
        [
            WebSocketCase("a masked frame", Frame.masked(0x81, "a"), failsWith: .maskedFrame),
            WebSocketCase("no mask", Frame.bare(0x81, "a"), to: .server, failsWith: .unmaskedFrame),
            WebSocketCase("RSV1", Frame.bare(0xC1, "a"), failsWith: .reservedBits(0x40)),
            WebSocketCase("RSV2", Frame.bare(0xA1, "a"), failsWith: .reservedBits(0x20)),
            WebSocketCase("RSV3", Frame.bare(0x91, "a"), failsWith: .reservedBits(0x10)),
            WebSocketCase("all three", Frame.bare(0xF2, "a"), failsWith: .reservedBits(0x70)),
            WebSocketCase("RSV1 on a ping", Frame.bare(0xC9, "a"), failsWith: .reservedBits(0x40)),
            WebSocketCase("a continuation first", Frame.bare(0x80, "a"), failsWith: .unexpectedContinuation),
            WebSocketCase(
                "a continuation after a message", Frame.bare(0x81, "a") + Frame.bare(0x00, "b"),
                hears: [.text("a")], failsWith: .unexpectedContinuation),
            WebSocketCase(
                "a message in another", Frame.bare(0x01, "a") + Frame.bare(0x81, "b"),
                failsWith: .interruptedMessage),
            WebSocketCase(
                "half a ping", Frame.bare(0x09, "a"), failsWith: .fragmentedControlFrame(opcode: 9)),
            WebSocketCase(
                "half a close", Frame.bare(0x08, ""), failsWith: .fragmentedControlFrame(opcode: 8)),
            WebSocketCase(
                "a ping of 126 bytes", Frame.bare(0x89, bytes(126)), failsWith: .longControlFrame(opcode: 9)),
            WebSocketCase(
                "a close of 126 bytes", Frame.bare(0x88, bytes(126)), failsWith: .longControlFrame(opcode: 8)),
            WebSocketCase("5 in two bytes", [0x82, 126, 0, 5], failsWith: .lengthNotShortest(5)),
            WebSocketCase("125 in two bytes", [0x82, 126, 0, 125], failsWith: .lengthNotShortest(125)),
            WebSocketCase(
                "65,535 in eight bytes", [0x82, 127, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF],
                failsWith: .lengthNotShortest(65535)),
            WebSocketCase(
                "the top bit of the length", [0x82, 127, 0x80, 0, 0, 0, 0, 1, 0, 0],
                failsWith: .lengthTooLarge),
        ]
        + [3, 4, 5, 6, 7, 11, 12, 13, 14, 15].map { opcode in
            WebSocketCase(
                "opcode \(opcode)", Frame.bare(0x80 | opcode, "a"), failsWith: .unknownOpcode(opcode))
        }

    static let badText: [WebSocketCase] =
        ([
            "80", "bf", "61 80", "c0 80", "c1 bf", "e0 80 80", "e0 9f bf", "ed a0 80", "ed bf bf",
            "f0 80 80 80",
            "f0 8f bf bf", "f4 90 80 80", "f5 80 80 80", "fe", "ff", "c3 28", "e2 28 a1", "e2 82 28",
            "f0 28 8c bc", "f0 90 28 bc", "f0 28 8c 28", "c3", "e2 82", "f0 90 8c",
            "61 62 63 64 65 66 67 68 c3", "61 62 63 64 65 66 67 80 61 62 63 64 65 66 67 68",
        ] as [String]).flatMap { hex in
            let text = [UInt8](hex: hex)
            let (head, tail) = (text.prefix(text.count / 2), text.dropFirst(text.count / 2))
            return [
                WebSocketCase(hex, Frame.bare(0x81, text), failsWith: .invalidText),
                WebSocketCase(
                    "\(hex) in fragments", Frame.bare(0x01, Array(head)) + Frame.bare(0x80, Array(tail)),
                    failsWith: .invalidText),
                WebSocketCase(
                    "\(hex) masked", Frame.masked(0x81, text), to: .server, failsWith: .invalidText),
            ]
        }

    static let tooLong: [WebSocketCase] = [
        WebSocketCase(
            "a frame", Frame.bare(0x82, bytes(11)), limit: 10, failsWith: .messageTooLong(limit: 10)),
        WebSocketCase(
            "fragments", Frame.bare(0x81, "before") + Frame.bare(0x01, "123456") + Frame.bare(0x80, "78901"),
            limit: 10, hears: [.text("before")], failsWith: .messageTooLong(limit: 10)),
        WebSocketCase(
            "2⁶³ − 1 bytes behind another frame",
            Frame.bare(0x02, bytes(10)) + [0x80, 127, 0x7F] + [UInt8](repeating: 0xFF, count: 7), limit: 10,
            failsWith: .messageTooLong(limit: 10)),
    ]

    /// Bytes of no meaning.
    static func bytes(_ count: Int) -> [UInt8] { (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 7) } }
}
