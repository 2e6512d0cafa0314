import RondoCore
import RondoTestSupport
import Testing

@testable import RondoStreams

/// Connections of which nothing is kept but the descriptor, and channels made of them again.
@Suite(.timeLimit(.minutes(5)), .leavesNothing) struct ParkedSocketTests {
    /// A channel that is open and in no loop, and the other end of its connection.
    private static func connected(_ listener: TestListener, in loop: RunLoop) throws -> (
        Conversation, Int32
    ) {
        let talk = Conversation(SocketChannel(to: listener.address, .init(host: "peer", port: 1)))
        talk.open(in: loop)
        try loop.run { talk.channel.isOpen }
        let peer = listener.accept()
        talk.channel.removeFromAllLoops()
        return (talk, peer)
    }

    private static func receive(_ peer: Int32) -> String {
        var buffer = [UInt8](repeating: 0, count: 100)
        let count = recv(peer, &buffer, buffer.count, 0)
        return String(decoding: buffer.prefix(max(0, count)), as: UTF8.self)
    }

    @Test func `a parked connection goes on as a channel, in another mode`() throws {
        let listener = try TestListener()
        let findings = try onStreamThread { loop in
            let (talk, peer) = try Self.connected(listener, in: loop)
            defer { close(peer) }
            let (address, descriptor) = (talk.channel.remoteAddress, talk.channel.descriptor)
            guard let parked = talk.channel.park() else { return ["not parked"] }
            #expect(parked.descriptor == descriptor && !talk.channel.isOpen && parked.isQuiet)
            // The first channel has nothing to do with it any more.
            talk.channel.close()
            let again = Conversation(SocketChannel(resuming: parked, .init(host: "peer", port: 1)))
            #expect(again.channel.isOpen && again.channel.remoteAddress == address)
            again.channel.schedule(in: loop, forMode: .tracking)
            again.say("there")
            let said = Self.receive(peer)
            #expect(send(peer, "back", 4, 0) == 4)
            try loop.run(inMode: .tracking) { !again.text.isEmpty }
            again.channel.close()
            return [said, again.text, Self.receive(peer)] + talk.words + again.words
        }
        #expect(findings == ["there", "back", "", "connecting", "connected", "open", "readable"])
    }

    @Test(arguments: [true, false])
    func `a parked connection is quiet until its peer has spoken or ended`(speaks: Bool) throws {
        let listener = try TestListener()
        let findings = try onStreamThread { loop in
            let (talk, peer) = try Self.connected(listener, in: loop)
            guard let parked = talk.channel.park() else { return ["not parked"] }
            let before = parked.isQuiet
            if speaks { _ = send(peer, "?", 1, 0) } else { shutdown(peer, Int32(SHUT_WR)) }
            // Loopback delivers within the call.
            let after = parked.isQuiet
            parked.close()
            let end = Self.receive(peer)
            close(peer)
            return ["\(before)", "\(after)", end]
        }
        #expect(findings == ["true", "false", ""])
    }

    @Test func `a connection that needs more than its descriptor is not parked`() throws {
        let listener = try TestListener()
        let findings = try onStreamThread { loop in
            let (talk, peer) = try Self.connected(listener, in: loop)
            defer { close(peer) }
            talk.channel.closesDescriptor = false
            let lent = talk.channel.park()
            talk.channel.closesDescriptor = true
            let wasOpen = talk.channel.isOpen
            talk.channel.close()
            let closed = talk.channel.park()
            let created = SocketChannel(.init(host: "peer", port: 1)).park()
            return [lent, closed, created].map { "\($0 == nil)" } + ["\(wasOpen)"]
        }
        #expect(findings == ["true", "true", "true", "true"])
    }
}
