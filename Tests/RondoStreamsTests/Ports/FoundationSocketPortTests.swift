import RondoCore
import RondoMutex
import RondoTestSupport
import Testing

@testable import RondoStreams

/// Socket ports and those of Foundation, in both directions. (Foundation's remote ports keep their connections when they
/// are invalidated, so this suite does not count descriptors.)
@Suite(.timeLimit(.minutes(5))) struct FoundationSocketPortTests {
    @Test func `PM-12 Foundation's SocketPort receives what Rondo's sends`() throws {
        let peer = try #require(FoundationPortPeer())
        defer { peer.stop() }
        let remote = try #require(SocketPort(remoteWithTCPPort: peer.tcpPort, host: "localhost"))
        let answers = SocketPort()
        // Not larger: Foundation's forgets the first part of a message that comes in several.
        let data = [Data("I cannot weave".utf8), Data((0..<1_000).map { UInt8(truncatingIfNeeded: $0) })]
        #expect(
            remote.send(
                before: .distantFuture, msgid: 77, components: NSMutableArray(array: data), from: answers,
                reserved: 0))
        try waitFor("the message") { peer.messages.count == 1 ? () : nil }
        // One at a time: Foundation's loses messages that come together.
        for number in 0..<200 {
            #expect(remote.send("message number \(number)", before: .distantFuture, msgid: number))
            try waitFor("message \(number)") { peer.messages.count == number + 2 ? () : nil }
        }
        #expect(peer.messages[0] == .init(msgid: 77, components: data, sendPort: answers.address))
        #expect(peer.messages.dropFirst().map(\.msgid) == (0..<200).map { UInt32($0) })
        answers.invalidate()
    }

    @Test func `PM-12 Rondo's SocketPort receives what Foundation's sends`() throws {
        let local = SocketPort()
        let number = try #require(local.socketAddress?.port)
        let inbox = PortInbox(local)
        let data = [Data("I cannot weave".utf8), Data(count: 100_000)]
        let sender = LoopThread { _ in
            for msgid in 0..<50 {
                #expect(FoundationPortPeer.send(data, msgid: msgid, toTCPPort: number))
            }
        }
        try onLoopThread { loop in
            loop.add(local, forMode: .default)
            inbox.onMessage = { message in
                #expect((message.components?[1] as? NSData)?.length == 100_000)
                // Foundation's names the port itself, which is no port for an answer.
                #expect(message.sendPort == nil)
            }
            while inbox.count < 50, loop.run(untilSource: .default) == .handledSource {}
        }
        try sender.value()
        #expect(inbox.texts == [String](repeating: "I cannot weave", count: 50))
        #expect(inbox.numbers.sorted() == (0..<50).map { UInt32($0) })
        local.invalidate()
    }

    @Test func `PM-12 PM-6 Foundation's port answers Rondo's by the send port and by a component`() throws {
        let peer = try #require(FoundationPortPeer(answers: true))
        defer { peer.stop() }
        let remote = try #require(SocketPort(remoteWithTCPPort: peer.tcpPort, host: nil))
        let (first, second) = (SocketPort(), SocketPort())
        let (inbox, other) = (PortInbox(first), PortInbox(second))
        try onLoopThread { loop in
            loop.add(first, forMode: .default)
            loop.add(second, forMode: .default)
            #expect(remote.send("by the send port", before: .distantFuture, msgid: 1, from: first))
            while inbox.count == 0, loop.run(untilSource: .default) == .handledSource {}
            #expect(
                remote.send(
                    before: .distantFuture, msgid: 2, components: [Data("by a component".utf8), second],
                    from: nil, reserved: 0))
            while inbox.count + other.count < 2, loop.run(untilSource: .default) == .handledSource {}
        }
        #expect(inbox.texts == ["by the send port"])
        #expect(inbox.numbers == [2])
        #expect(other.texts == ["by a component"])
        #expect(other.numbers == [3])
        first.invalidate()
        second.invalidate()
    }
}
