import Foundation
import RondoHTTP
import Testing

@Suite struct WebSocketWriterTests {
    @Test(arguments: [0, 1, 125, 126, 65535, 65536])
    func `WS-8 a message is one frame, its length in the shortest form`(_ count: Int) throws {
        let bytes = WebSocketFrameTests.bytes(count)
        #expect(try sent(.binary(Data(bytes))) == Frame.masked(0x82, bytes))
        #expect(try sent(.binary(Data(bytes)), by: .server) == Frame.bare(0x82, bytes))
    }

    @Test func `WS-8 the frames of RFC 6455 5.7 as they are sent`() throws {
        #expect(try sent(.text("Hello")) == [UInt8](hex: "81 85 37 fa 21 3d 7f 9f 4d 51 58"))
        #expect(try sent(.text("Hello"), by: .server) == [UInt8](hex: "81 05 48 65 6c 6c 6f"))
        #expect(
            try sent(.text("Hello"), by: .server, frameSize: 3) == [UInt8](hex: "01 03 48 65 6c 80 02 6c 6f"))
    }

    @Test func `WS-8 a long message goes in fragments, each with its mask from the start`() throws {
        let text = "Grüße, Jürgen"
        let sent = try sent(.text(text), frameSize: 3)
        // A fragment need not end with a character.
        let bytes = Array(text.utf8)
        #expect(
            sent.starts(
                with: Frame.masked(0x01, Array(bytes[..<3])) + Frame.masked(0x00, Array(bytes[3..<6]))))
        var outcome = WebSocketOutcome()
        var server = WebSocketConnection(.server)
        outcome.hear(Drip.cuts(of: sent)[1], on: &server)
        #expect(outcome.events == [.text(text)])
    }

    @Test func `WS-8 each frame has a fresh key`() throws {
        var connection = WebSocketConnection()
        connection.limits.maximumSentFrameSize = 4
        var output: [UInt8] = []
        try connection.send(.binary(Data(count: 4000)), into: &output)
        // Zeros, masked: what is left is the key.
        let keys = stride(from: 0, to: output.count, by: 10).map { Array(output[$0 + 2..<$0 + 6]) }
        #expect(keys.count == 1000)
        #expect(Set(keys).count > 990)
        for (index, key) in keys.enumerated() {
            #expect(Array(output[10 * index + 6..<10 * index + 10]) == key)
        }
    }

    @Test func `WS-8 a second message waits until the first has been sent`() throws {
        var connection = WebSocketConnection(generator: FixedKeys())
        connection.limits.maximumSentFrameSize = 1
        var output: [UInt8] = []
        try connection.startSending(.text("ab"))
        #expect(connection.isSendingMessage == true)
        do throws(WebSocketError) {
            try connection.send(.text("c"), into: &output)
            Issue.record("it was sent")
        } catch {
            #expect(error == .local(.messageInProgress))
        }
        #expect(try connection.sendNextFrame(into: &output) == false)
        try connection.send(ping: [], into: &output)
        #expect(try connection.sendNextFrame(into: &output) == true)
        #expect(connection.isSendingMessage == false)
        try connection.send(.text("c"), into: &output)
        #expect(
            output == Frame.masked(0x01, "a") + Frame.masked(0x89, "") + Frame.masked(0x80, "b")
                + Frame.masked(0x81, "c"))
    }

    @Test(arguments: [1, 2, 3, 5, 64, 4096, 1 << 20], [false, true])
    func `WS-8 each end receives the messages of the other`(_ frameSize: Int, _ isCompressed: Bool) throws {
        let messages: [WebSocketMessage] = [
            .text(""), .text("a"), .text(String(repeating: "κόσμε 🎵 ", count: 40)), .binary(Data()),
            .binary(Data(WebSocketFrameTests.bytes(5000))), .text(String(repeating: "again ", count: 100)),
        ]
        let agreed = isCompressed ? WebSocketCompression() : nil
        for role in [WebSocketRole.client, .server] {
            var sender = WebSocketConnection(role, compression: agreed)
            var receiver = WebSocketConnection(role == .client ? .server : .client, compression: agreed)
            sender.limits.maximumSentFrameSize = frameSize
            var (outcome, output) = (WebSocketOutcome(), [UInt8]())
            for message in messages { try sender.send(message, into: &output) }
            try sender.send(close: WebSocketClose(sending: 1000), into: &output)
            outcome.hear(output.indices.map { output[$0...$0] }, on: &receiver)
            #expect(outcome.events == messages.map { .message($0) } + [.close(1000), .closed])
            #expect(outcome.error == nil)
        }
    }

    @Test(arguments: [5, 1 << 20], [false, true])
    func `WS-26 after a message is withdrawn the other end can read the next one`(
        _ frameSize: Int, _ isCompressed: Bool
    ) throws {
        let agreed = isCompressed ? WebSocketCompression() : nil
        var sender = WebSocketConnection(compression: agreed)
        var receiver = WebSocketConnection(.server, compression: agreed)
        sender.limits.maximumSentFrameSize = frameSize
        let message = WebSocketMessage.text(String(repeating: "again ", count: 100))
        var (outcome, output, withdrawn) = (WebSocketOutcome(), [UInt8](), [UInt8]())
        try sender.send(message, into: &output)
        // The next one refers to this where it can.
        try sender.startSending(.text(String(repeating: "withdrawn ", count: 100)))
        _ = try sender.sendNextFrame(into: &withdrawn)
        sender.withdrawMessage()
        let isSending = sender.isSendingMessage
        #expect(!isSending)
        let next = WebSocketMessage.text(String(repeating: "withdrawn again ", count: 100))
        try sender.send(next, into: &output)
        outcome.hear([output[...]], on: &receiver)
        #expect(outcome.events == [.message(message), .message(next)])
        #expect(outcome.error == nil)
    }

    private func sent(
        _ message: WebSocketMessage, by role: WebSocketRole = .client, frameSize: Int? = nil
    ) throws -> [UInt8] {
        var connection = WebSocketConnection(role, generator: FixedKeys())
        if let frameSize { connection.limits.maximumSentFrameSize = frameSize }
        var output: [UInt8] = []
        try connection.send(message, into: &output)
        return output
    }
}
