// permessage-deflate on bytes: the frames of RFC 7692 §7.2.3, what breaks it, and both ends with each agreement.

import Foundation
import RondoHTTP
import Testing

@Suite struct WebSocketCompressionTests {
    // MARK: Receiving

    @Test(arguments: messages)
    func `WS-24 compressed messages are the same however their frames arrive`(_ example: WebSocketCase) {
        example.hearInEveryWay { #expect($0 == example.expected) }
        var expected = example.expected
        expected.events.append(.text("after"))
        example.hearInEveryWay(trailing: Frame.bare(0x81, "after")) { #expect($0 == expected) }
    }

    @Test(arguments: failures)
    func `WS-24 an invalid compressed message fails the connection`(_ example: WebSocketCase) {
        example.hearInEveryWay { #expect($0 == example.expected) }
        example.hearInEveryWay(trailing: Frame.bare(0x81, "after")) { #expect($0 == example.expected) }
    }

    @Test func `WS-24 a bomb costs no more than a message may have`() throws {
        // 64 MiB of zeros, a thousandth of that on the wire. Behind the ended stream stands an empty block (§7.2.3.4).
        let bomb = Array(Deflater.encode(Data(count: 64 << 20), .none)) + [0x00]
        #expect(bomb.count < 80_000)
        let before = try residentSize()
        var outcome = WebSocketOutcome()
        var connection = WebSocketConnection(compression: WebSocketCompression())
        outcome.hear([Frame.bare(0xC2, bomb)[...]], on: &connection)
        #expect(outcome.error == .peer(.messageTooLong(limit: 1_048_576)))
        #expect(outcome.error?.closeCode == 1009)
        #expect(try residentSize() - before < 16 << 20)
    }

    @Test func `WS-24 a message of exactly the limit comes through, compressed too`() throws {
        let bytes = WebSocketFrameTests.bytes(100_000)
        let compressed = Array(Deflater.encode(Data(bytes), .none)) + [0x00]
        for (limit, isTooLong) in [(100_000, false), (99_999, true)] {
            var connection = WebSocketConnection(compression: WebSocketCompression())
            connection.limits.maximumMessageSize = limit
            var outcome = WebSocketOutcome()
            outcome.hear([Frame.bare(0xC2, compressed)[...]], on: &connection)
            #expect(outcome.error == (isTooLong ? .peer(.messageTooLong(limit: limit)) : nil))
            #expect(outcome.events == (isTooLong ? [] : [.binary(bytes)]))
        }
    }

    @Test func `WS-24 a message that is passed over is not decompressed`() throws {
        var connection = WebSocketConnection(compression: WebSocketCompression())
        var (outcome, output) = (WebSocketOutcome(), [UInt8]())
        outcome.hear([Frame.bare(0x41, [0xF2, 0x48])[...]], on: &connection)
        try connection.send(close: .empty, into: &output)
        outcome.hear(
            [(Frame.bare(0x80, [0xFF, 0xFF]) + Frame.bare(0xC1, [0xFF]) + Frame.close(1000))[...]],
            on: &connection)
        #expect(outcome == WebSocketOutcome(events: [.close(1000), .closed]))
    }

    // MARK: Sending

    @Test func `WS-24 the frames of RFC 7692 7.2.3 as they are sent`() throws {
        let (first, second) = ("c1 07 f2 48 cd c9 c9 07 00", "c1 05 f2 00 11 00 00")
        var agreed = WebSocketCompression()
        #expect(try sent(["Hello", "Hello"], agreed) == [UInt8](hex: "\(first) \(second)"))
        agreed.client.keepsContext = false
        #expect(try sent(["Hello", "Hello"], agreed) == [UInt8](hex: "\(first) \(second)"))
        agreed.server.keepsContext = false
        #expect(try sent(["Hello", "Hello"], agreed) == [UInt8](hex: "\(first) \(first)"))
    }

    @Test func `WS-24 a message of less than 64 bytes is sent as it is, and so is what is no message`() throws
    {
        let agreed = WebSocketCompression()
        let (short, long) = (String(repeating: "a", count: 63), String(repeating: "a", count: 64))
        #expect(try sent([short], agreed, from: nil) == Frame.bare(0x81, short))
        let compressed = try sent([long], agreed, from: nil)
        #expect(compressed.first == 0xC1 && compressed.count < 20)
        #expect(try sent([""], agreed) == Frame.bare(0x81, ""))
        var connection = WebSocketConnection(.server, compression: agreed)
        var output: [UInt8] = []
        try connection.send(ping: Array(long.utf8), into: &output)
        #expect(output == Frame.bare(0x89, long))
    }

    @Test func `WS-24 RSV1 stands on the first fragment only`() throws {
        var connection = WebSocketConnection(.server, compression: WebSocketCompression())
        connection.limits.maximumSentFrameSize = 100
        var (frames, isLast) = ([UInt8](), false)
        try connection.startSending(.binary(Data(WebSocketFrameTests.bytes(1000))))
        while !isLast {
            var output: [UInt8] = []
            isLast = try connection.sendNextFrame(into: &output)
            frames += output.prefix(1)
        }
        #expect(frames == [0x42] + [UInt8](repeating: 0x00, count: 8) + [0x80])
    }

    @Test func `WS-23 with a window of 8 bits messages are sent uncompressed`() throws {
        let text = String(repeating: "a", count: 1000)
        var agreed = WebSocketCompression()
        agreed.client.windowBits = 8
        #expect(try sent([text], agreed).first == 0xC1)
        agreed.server.windowBits = 8
        #expect(try sent([text], agreed) == Frame.bare(0x81, text))
    }

    @Test(arguments: [8, 9, 12, 15], [false, true])
    func `WS-23 both ends keep to what was agreed on`(_ windowBits: Int, _ keepsContext: Bool) throws {
        var agreed = WebSocketCompression()
        (agreed.client.windowBits, agreed.client.keepsContext) = (windowBits, keepsContext)
        var client = WebSocketConnection(compression: agreed)
        var server = WebSocketConnection(.server, compression: agreed)
        client.limits.maximumSentFrameSize = 3000
        // Each message repeats the one before, and itself from 5,000 bytes before: further than the smaller windows reach.
        var generator = SystemRandomNumberGenerator()
        let block = (0..<5000).map { _ in UInt8.random(in: 0...255, using: &generator) }
        let message = WebSocketMessage.binary(Data(block + block + block))
        var (outcome, output, sizes) = (WebSocketOutcome(), [UInt8](), [Int]())
        for _ in 0..<3 {
            let before = output.count
            try client.send(message, into: &output)
            sizes.append(output.count - before)
        }
        outcome.hear([output[...]], on: &server)
        #expect(outcome.events == [.message(message), .message(message), .message(message)])
        // What came before is referred to where that is allowed, and in reach.
        #expect((sizes[1] < 1000) == (keepsContext && windowBits == 15))
        #expect((sizes[0] < 6000) == (windowBits == 15))
    }

    // MARK: Inside

    /// Returns the bytes that a server sends, unmasked.
    private func sent(
        _ texts: [String], _ agreed: WebSocketCompression, from minimum: Int? = 0
    ) throws -> [UInt8] {
        var connection = WebSocketConnection(.server, compression: agreed)
        if let minimum { connection.limits.minimumCompressedSize = minimum }
        var output: [UInt8] = []
        for text in texts { try connection.send(.text(text), into: &output) }
        return output
    }

    /// Bytes of this process's memory that are in use.
    private func residentSize() throws -> Int {
        let fields = try String(contentsOfFile: "/proc/self/statm", encoding: .utf8).split(separator: " ")
        return (Int(fields[1]) ?? 0) * sysconf(Int32(_SC_PAGESIZE))
    }

    // MARK: Cases

    private static let agreed = WebSocketCompression()
    private static let withoutContext = {
        var agreed = WebSocketCompression()
        agreed.server.keepsContext = false
        return agreed
    }()

    private static let hello = [UInt8](hex: "c1 07 f2 48 cd c9 c9 07 00")
    /// Refers to the first.
    private static let helloAgain = [UInt8](hex: "c1 05 f2 00 11 00 00")
    private static let helloEnded = [UInt8](hex: "c1 08 f3 48 cd c9 c9 07 00 00")

    private static func message(
        _ name: String, _ bytes: [UInt8], in agreed: WebSocketCompression = agreed, _ texts: String...
    ) -> WebSocketCase {
        WebSocketCase(name, bytes, compression: agreed, hears: texts.map { .text($0) })
    }

    static let messages: [WebSocketCase] = [
        // RFC 7692 §7.2.3
        message("§7.2.3.1 one block", hello, "Hello"),
        message(
            "§7.2.3.1 fragments", [UInt8](hex: "41 03 f2 48 cd 80 04 c9 c9 07 00"), "Hello"),
        message("§7.2.3.2 shared window", hello + helloAgain, "Hello", "Hello"),
        message("§7.2.3.2 no shared window", hello + hello, in: withoutContext, "Hello", "Hello"),
        message(
            "§7.2.3.3 no compression", [UInt8](hex: "c1 0b 00 05 00 fa ff 48 65 6c 6c 6f 00"), "Hello"
        ),
        message("§7.2.3.4 a stream that ends", helloEnded, "Hello"),
        message(
            "§7.2.3.5 two blocks", [UInt8](hex: "c1 0d f2 48 05 00 00 00 ff ff ca c9 c9 07 00"),
            "Hello"),
        message("§7.2.3.6 nothing", [UInt8](hex: "c1 01 00"), ""),
        // Beside them.
        message(
            "uncompressed between", hello + Frame.bare(0x81, "Hi") + helloAgain, "Hello", "Hi",
            "Hello"),
        message(
            "the window outlives the end of its stream", helloEnded + helloAgain, "Hello", "Hello"),
        message(
            "streams that end, without a window", helloEnded + helloEnded, in: withoutContext, "Hello",
            "Hello"),
        message(
            "a stream that ends without a block behind it",
            [UInt8](hex: "c1 07 f3 48 cd c9 c9 07 00") + helloAgain,
            "Hello", "Hello"),
        message("no bytes at all", hello + [0xC1, 0x00] + helloAgain, "Hello", "", "Hello"),
        message(
            "two ended streams in a message",
            [UInt8](hex: "c1 0f f3 48 cd c9 c9 07 00 f3 48 cd c9 c9 07 00 00"), "HelloHello"),
        message(
            "the last fragment is empty", [UInt8](hex: "41 07 f2 48 cd c9 c9 07 00 80 00"), "Hello"),
        WebSocketCase(
            "control frames between", [UInt8](hex: "41 03 f2 48 cd 89 00 80 04 c9 c9 07 00"),
            compression: agreed,
            hears: [.ping(""), .text("Hello")], answers: Frame.masked(0x8A, "")),
    ]

    private static func failure(
        _ name: String, _ bytes: [UInt8], in agreed: WebSocketCompression = agreed, limit: Int? = nil,
        after events: [WebSocketEvent] = [], _ fault: WebSocketError.Peer
    ) -> WebSocketCase {
        WebSocketCase(name, bytes, compression: agreed, limit: limit, hears: events, failsWith: fault)
    }

    static let failures: [WebSocketCase] = [
        failure("RSV1 on a continuation", Frame.bare(0x41, [0xF2]) + [0xC0, 0x00], .reservedBits(0x40)),
        failure("RSV1 on a ping", Frame.bare(0xC9, "a"), .reservedBits(0x40)),
        failure("RSV1 on a close", Frame.bare(0xC8, ""), .reservedBits(0x40)),
        failure("RSV2", Frame.bare(0xE1, [0xF2]), .reservedBits(0x20)),
        failure(
            "no block of that type", Frame.bare(0xC1, [0xFF, 0xFF]),
            .corruptCompression(detail: "invalid block type")),
        failure(
            "further back than the window", hello + helloAgain, in: withoutContext, after: [.text("Hello")],
            .corruptCompression(detail: "invalid distance too far back")),
        failure(
            "lengths that do not match", Frame.bare(0xC1, [0x00, 0x01, 0x00, 0x00, 0x00, 0x61, 0x00]),
            .corruptCompression(detail: "invalid stored block lengths")),
        failure(
            "the middle of a block", [UInt8](hex: "c2 0a 00 20 00 df ff 48 65 6c 6c 6f"),
            .corruptCompression(detail: "it ends in the middle of a block")),
        failure("text that is not UTF-8", [UInt8](hex: "c1 07 00 01 00 fe ff ff 00"), .invalidText),
        failure(
            "the fault of the text comes before that of the stream",
            [UInt8](hex: "c1 07 00 01 00 fe ff ff ff"), .invalidText),
        failure("too long", hello, limit: 4, .messageTooLong(limit: 4)),
        failure(
            "too long together", [UInt8](hex: "c1 0f f3 48 cd c9 c9 07 00 f3 48 cd c9 c9 07 00 00"), limit: 9,
            .messageTooLong(limit: 9)),
        failure("nothing may come", hello, limit: 0, .messageTooLong(limit: 0)),
    ]
}
