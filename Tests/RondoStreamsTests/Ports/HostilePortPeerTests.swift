import RondoCore
import RondoMutex
import RondoTestSupport
import Testing

@testable import RondoStreams

/// Peers of socket ports that do not keep to the format, are slow, or are many.
@Suite(.leavesNothing, .timeLimit(.minutes(5))) struct HostilePortPeerTests {
    @Test func `PM-13 bytes that are not a message close their connection only`() throws {
        let local = SocketPort()
        local.maximumMessageSize = 10_000
        let inbox = PortInbox(local)
        let remote = try local.remote
        var tooLong = try PortWireTests.message()
        tooLong.replaceSubrange(4..<8, with: UInt32(10_001).bytes)
        var doesNotFit = try PortWireTests.message()
        doesNotFit.replaceSubrange(36..<40, with: UInt32(15).bytes)
        let garbage = [Data("GET / HTTP/1.1\r\n\r\n".utf8), tooLong, doesNotFit]
        try onThrowingThread { loop in
            loop.add(local, forMode: .default)
            #expect(remote.send("before"))
            for bytes in garbage {
                let peer = try Socket.connecting(to: try #require(local.socketAddress))
                _ = SocketCalls.wait(peer.descriptor, for: POLLOUT, until: .never)
                #expect(peer.sendAll(bytes))
                while !peer.isReadable() { loop.runBriefly() }
                peer.close()
            }
            #expect(remote.send("after"))
            while inbox.texts.count < 2, loop.run(untilSource: .default) == .handledSource {}
            #expect(local.connectionCount == 1)
        }
        #expect(inbox.texts == ["before", "after"])
        local.invalidate()
    }

    @Test func `PM-13 peers wait while descriptors have run out, and the loop does not spin`() async {
        await #expect(processExitsWith: .success) {
            try onThrowingThread { loop in
                let local = SocketPort()
                let inbox = PortInbox(local)
                let remote = try local.remote
                loop.add(local, forMode: .default)
                loop.poll(.default)
                // In the kernel's queue.
                precondition(remote.send("x"))
                withNoDescriptorLeft {
                    let passes = EventLog()
                    passes.observe(.beforeTimers, of: loop, in: .default)
                    // For several pauses.
                    _ = loop.run(in: .default, for: 0.35, returnAfterSourceHandled: false)
                    precondition(
                        inbox.texts.isEmpty && passes.entries.count < 30, "\(passes.entries.count)")
                }
                while inbox.texts.isEmpty, loop.run(untilSource: .default) == .handledSource {}
                precondition(inbox.texts == ["x"])
                local.invalidate()
            }
        }
    }

    @Test func `PM-13 beyond the greatest number of connections the most silent one goes`() throws {
        #expect(SocketPort.defaultMaximumConnections == 256)
        let local = SocketPort()
        local.maximumConnections = 3
        let inbox = PortInbox(local)
        let remote = try local.remote
        try onThrowingThread { loop in
            loop.add(local, forMode: .default)
            #expect(remote.send("first"))
            while inbox.texts.isEmpty { loop.run(untilSource: .default) }
            // Each begins a message and does not end it.
            let peers = try (0..<10).map { _ in
                let peer = try Socket.connecting(to: try #require(local.socketAddress))
                _ = SocketCalls.wait(peer.descriptor, for: POLLOUT, until: .never)
                #expect(peer.sendAll(try PortWireTests.message().prefix(20)))
                return peer
            }
            let closed = { peers.count { $0.isReadable() } }
            while closed() < 7 { loop.runBriefly() }
            #expect(local.connectionCount == 3)
            // The sender's own connection is gone too, and it makes another one.
            #expect(remote.send("second", before: .distantFuture))
            while inbox.texts.count < 2 { loop.run(untilSource: .default) }
            for peer in peers { peer.close() }
        }
        #expect(inbox.texts == ["first", "second"])
        local.invalidate()
    }

    @Test func `PM-13 a peer that sends a byte at a time is read, and keeps no other waiting`() throws {
        let local = SocketPort()
        let inbox = PortInbox(local)
        let remote = try local.remote
        try onThrowingThread { loop in
            loop.add(local, forMode: .default)
            let slow = try Socket.connecting(to: try #require(local.socketAddress))
            _ = SocketCalls.wait(slow.descriptor, for: POLLOUT, until: .never)
            for (index, byte) in try PortWireTests.message().enumerated() {
                withUnsafeBytes(of: byte) { _ = SocketCalls.send(slow.descriptor, $0.baseAddress, 1) }
                if index == 30 {
                    #expect(remote.send("quick"))
                    while inbox.texts.isEmpty { loop.run(untilSource: .default) }
                }
                loop.runBriefly(0)
            }
            while inbox.texts.count < 2 { loop.run(untilSource: .default) }
            slow.close()
        }
        #expect(inbox.texts == ["quick", "I cannot weave"])
        local.invalidate()
    }

    @Test func `PM-13 beyond the greatest size of unfinished messages the most silent connection goes`()
        throws
    {
        #expect(SocketPort.maximumUnfinishedBytes == 64 << 20)
        var connections = PortConnections()
        let own = try (0..<3).map { _ in
            var ends: [Int32] = [-1, -1]
            try #require(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &ends) == 0)
            close(ends[1])
            let connection = PortConnection(
                try Socket(adopting: ends[0]), number: connections.nextNumber(),
                source: RunLoop.Source(fileDescriptor: ends[0], interest: .read) { _, _ in })
            #expect(connections.add(connection, maximum: 3).isEmpty)
            return connection
        }
        func hear(_ connection: PortConnection, _ bytes: Int) {
            connections.noteRead(of: connection)
            Data(count: bytes).withUnsafeBytes { connection.receive($0) }
            connections.count(connection)
        }
        hear(own[0], 60)
        hear(own[1], 40)
        #expect(connections.removeUnfinished(beyond: 100, butNot: own[1]).isEmpty)
        hear(own[0], 1)
        #expect(connections.removeUnfinished(beyond: 100, butNot: own[0]).map(\.number) == [own[1].number])
        // One alone is bounded by the greatest length of a message.
        hear(own[0], 100)
        #expect(connections.removeUnfinished(beyond: 100, butNot: own[0]).isEmpty)
        hear(own[2], 10)
        #expect(connections.removeUnfinished(beyond: 100, butNot: own[2]).map(\.number) == [own[0].number])
        connections.holdBack(own[2])
        #expect(connections.areHeldBack)
        #expect(connections.remove(own[2]) === own[2])
        #expect(!connections.areHeldBack)
        #expect(connections.count == 0)
    }

    @Test func `PM-13 a datagram that is no message is dropped`() throws {
        let port = try #require(SocketPort(at: .loopback(port: 0), type: Int32(SOCK_DGRAM.rawValue)))
        let sender = try DatagramSocket(
            .loopback(port: 0), type: Int32(SOCK_DGRAM.rawValue), protocolNumber: 0)
        for bytes in [Data(), Data("garbage".utf8), try PortWireTests.message().dropLast()] {
            _ = SocketCalls.send(sender.descriptor, bytes, to: port.socketAddress)
        }
        #expect(try exchange(to: port, "good") == ["good"])
        port.invalidate()
    }

    @Test func `PM-6 PM-13 a send port is where its peer is, and no Unix socket of a peer of the network`()
        throws
    {
        let (port, peer) = (
            SocketAddress.ipv4(0xC000_0201, port: 5), SocketAddress.ipv4(0xC000_0202, port: 9)
        )
        let translator = PortTranslator(own: .ipv4(0, port: 5))
        func sendPort(_ address: SocketAddress, type: Int32 = 1) throws -> SocketAddress? {
            let signature = PortSignature(
                family: address.family, type: type, protocolNumber: 6,
                address: try #require(address.sockaddrData))
            let message = try #require(signature.wireBytes)
            let bytes = try WireMessage.bytes(msgid: 0, signature: message, components: [], maximum: 1_000)
            let read = try bytes.withUnsafeBytes { try WireMessage($0) }
            return (translator.content(of: read, from: peer).sender as? SocketPort)?.socketAddress
        }
        #expect(try sendPort(port) == port)
        #expect(try sendPort(.ipv4(0, port: 7)) == peer.withPort(7))
        #expect(try sendPort(.ipv6(high: 0, low: 0, port: 7, scope: 0)) == peer.withPort(7))
        // The port itself.
        #expect(try sendPort(.ipv4(0, port: 5)) == nil)
        #expect(try sendPort(.unix(path: "/run/other.sock")) == nil)
        #expect(try sendPort(port, type: 3) == nil)
        let mapped = SocketAddress.ipv6(high: 0, low: 0xffff_7f00_0001, port: 5, scope: 0)
        let own = PortTranslator(own: mapped)
        let loopback = PortSignature.tcp(.loopback(port: 5))
        let head = try #require(loopback.wireBytes)
        let bytes = try WireMessage.bytes(msgid: 0, signature: head, components: [], maximum: 1_000)
        let read = try bytes.withUnsafeBytes { try WireMessage($0) }
        #expect(own.content(of: read, from: peer).sender == nil)
    }
}
