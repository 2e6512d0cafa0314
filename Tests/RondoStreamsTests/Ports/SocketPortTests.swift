import RondoMutex
import RondoTestSupport
import Testing

@testable import RondoCore
@testable import RondoStreams

/// Ports of several processes, and of one, over sockets.
@Suite(.leavesNothing, .timeLimit(.minutes(5))) struct SocketPortTests {
    // MARK: Making

    @Test func `PM-11 a port takes a free number, or the one that it is given`() throws {
        let free = try #require(SocketPort(tcpPort: 0))
        defer { free.invalidate() }
        let number = try #require(free.socketAddress?.port)
        #expect(number >= 1_024)
        #expect(free.protocolFamily == PF_INET)
        #expect(free.socketType == Int32(SOCK_STREAM.rawValue))
        #expect(free.protocol == Int32(IPPROTO_TCP))
        #expect(free.socket >= 0)
        #expect(SocketPort(tcpPort: number) == nil)
        free.invalidate()
        #expect(free.socket == -1)
        let again = try #require(SocketPort(tcpPort: number))
        #expect(again.socketAddress?.port == number)
        again.invalidate()
    }

    @Test func `PM-15 a port binds to the address given, and to loopback without one`() throws {
        let port = SocketPort()
        #expect(port.socketAddress?.withPort(0) == .loopback(port: 0))
        port.invalidate()
        for address: SocketAddress in [.ipv4(0, port: 0), .ipv6(high: 0, low: 1, port: 0, scope: 0)] {
            let given = try #require(SocketPort(at: address))
            #expect(given.socketAddress?.withPort(0) == address)
            given.invalidate()
        }
        #expect(SocketPort(at: .ipv4(0xC000_0201, port: 0)) == nil)
        // What does not go together.
        let address = try #require(SocketAddress.loopback(port: 0).sockaddrData)
        #expect(SocketPort(protocolFamily: PF_INET, socketType: 1, protocol: 6, address: Data([1])) == nil)
        #expect(SocketPort(protocolFamily: PF_INET6, socketType: 1, protocol: 6, address: address) == nil)
        #expect(SocketPort(protocolFamily: PF_INET, socketType: 3, protocol: 0, address: address) == nil)
    }

    @Test func `PM-11 a socket that is bound already becomes the port's`() throws {
        let server = try ListeningSocket(.loopback(port: 0), StreamListener.Configuration())
        let own = fcntl(server.descriptor, F_DUPFD_CLOEXEC, 0)
        let port = try #require(
            SocketPort(protocolFamily: PF_INET, socketType: 1, protocol: 6, socket: own))
        #expect(port.socketAddress == server.address)
        server.close()
        #expect(try exchange(to: port, "adopted") == ["adopted"])
        port.invalidate()
        #expect(fcntl(own, F_GETFD) == -1)
        #expect(SocketPort(protocolFamily: PF_INET, socketType: 1, protocol: 6, socket: -1) == nil)
        // One that does not listen would be silent; it stays the caller's.
        let plain = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        #expect(SocketPort(protocolFamily: PF_INET, socketType: 1, protocol: 6, socket: plain) == nil)
        #expect(fcntl(plain, F_GETFD) >= 0)
        close(plain)
    }

    @Test func `PM-11 Unix-domain sockets and datagrams work too`() throws {
        let path = "/tmp/rondo-port-\(UUID().uuidString.prefix(8))"
        let unix = try #require(SocketPort(at: .unix(path: path)))
        #expect(try exchange(to: unix, "by a file") == ["by a file"])
        unix.invalidate()
        #expect(access(path, F_OK) == -1)
        let kind = Int32(SOCK_DGRAM.rawValue)
        for address: SocketAddress in [.loopback(port: 0), .unix(path: path)] {
            let port = try #require(SocketPort(at: address, type: kind))
            #expect(try exchange(to: port, "a datagram") == ["a datagram"])
            port.invalidate()
        }
        #expect(access(path, F_OK) == -1)
    }

    @Test func `PM-11 a host is looked up, and none is this machine`() throws {
        for host in [nil, "", "127.0.0.1", "localhost"] as [String?] {
            let remote = try #require(SocketPort(remoteWithTCPPort: 80, host: host))
            #expect(remote.socketAddress == .loopback(port: 80))
            #expect(remote.socket == -1)
        }
        #expect(SocketPort(remoteWithTCPPort: 80, host: "::1")?.protocolFamily == PF_INET6)
        #expect(SocketPort(remoteWithTCPPort: 80, host: "name.invalid") == nil)
    }

    @Test func `PM-14 remote ports for one address are equal and share a connection`() throws {
        let local = SocketPort()
        let inbox = PortInbox(local)
        let number = try #require(local.socketAddress?.port)
        let first = try #require(SocketPort(remoteWithTCPPort: number, host: "localhost"))
        let second = try #require(SocketPort(remoteWithTCPPort: number, host: "127.0.0.1"))
        #expect(first == second)
        #expect(first.hash == second.hash)
        #expect(first !== second)
        #expect(first != SocketPort(remoteWithTCPPort: 1, host: nil))
        #expect(first != local)
        try onLoopThread { loop in
            loop.add(local, forMode: .default)
            #expect(first.send("one"))
            #expect(second.send("two"))
            first.invalidate()
            #expect(!first.send("not"))
            #expect(second.send("three"))
            while inbox.texts.count < 3, loop.run(untilSource: .default) == .handledSource {}
            #expect(local.connectionCount == 1)
        }
        #expect(inbox.texts == ["one", "two", "three"])
        local.invalidate()
        second.invalidate()
    }

    // MARK: Messages

    @Test func `PM-2 PM-3 messages come to the delegate in the modes that hold the port`() throws {
        let local = SocketPort()
        let inbox = PortInbox(local)
        let remote = try local.remote
        try onLoopThread { loop in
            loop.add(local, forMode: RunLoop.Mode("work"))
            loop.add(Port(), forMode: .default)
            for number in 0..<100 { #expect(remote.send("\(number)")) }
            inbox.onMessage = { _ in #expect(loop.currentMode == RunLoop.Mode("work")) }
            loop.poll(.default)
            #expect(inbox.texts.isEmpty)
            while inbox.texts.count < 100,
                loop.run(untilSource: RunLoop.Mode("work")) == .handledSource
            {}
        }
        #expect(inbox.texts == (0..<100).map { "\($0)" })
        local.invalidate()
    }

    @Test func `PM-6 an answer comes through the send port, which is none where none was given`() throws {
        let (local, answers) = (SocketPort(), SocketPort())
        let remote = try local.remote
        let (inbox, answerBox) = (PortInbox(local), PortInbox(answers))
        try onLoopThread { loop in
            loop.add(local, forMode: .default)
            loop.add(answers, forMode: .default)
            inbox.onMessage = { message in
                guard message.msgid == 41 else { return #expect(message.sendPort == nil) }
                #expect(message.receivePort === local)
                #expect(message.components?.last as? SocketPort == (try? answers.remote))
                #expect(
                    message.sendPort?.send(
                        before: .distantFuture, msgid: 42, components: [Data("pong".utf8)], from: local,
                        reserved: 0) == true)
            }
            answerBox.onMessage = { message in
                #expect(message.msgid == 42)
                loop.stop()
            }
            #expect(remote.send("without"))
            #expect(
                remote.send(
                    before: .distantFuture, msgid: 41, components: [Data("ping".utf8), answers],
                    from: answers,
                    reserved: 0))
            #expect(loop.run(in: .default, for: 60, returnAfterSourceHandled: false) == .stopped)
        }
        #expect(inbox.texts == ["without", "ping"])
        #expect(answerBox.texts == ["pong"])
        local.invalidate()
        answers.invalidate()
    }

    @Test func `PM-6 PM-3 all answers to a peer go over one connection, in order`() throws {
        let (local, answers) = (SocketPort(), SocketPort())
        let remote = try local.remote
        let (inbox, answerBox) = (PortInbox(local), PortInbox(answers))
        let total = 300
        inbox.onMessage = { message in
            #expect(
                message.sendPort?.send(
                    before: .distantFuture, msgid: Int(message.msgid),
                    components: message.components.map {
                        NSMutableArray(array: $0)
                    }, from: nil, reserved: 0) == true)
        }
        let server = LoopThread { loop in
            loop.add(local, forMode: .default)
            while inbox.count < total, loop.run(untilSource: .default) == .handledSource {}
        }
        try onLoopThread { loop in
            loop.add(answers, forMode: .default)
            for number in 0..<total {
                #expect(remote.send("\(number)", before: .distantFuture, msgid: number, from: answers))
            }
            while answerBox.count < total, loop.run(untilSource: .default) == .handledSource {}
            #expect(answers.connectionCount == 1)
        }
        try server.value()
        #expect(answerBox.numbers == (0..<total).map { UInt32($0) })
        local.invalidate()
        answers.invalidate()
    }

    @Test func `PM-3 two loops that hold a socket port keep the order of each sender`() throws {
        let local = SocketPort()
        let inbox = PortInbox(local)
        let (senders, each) = (3, 1_000)
        let done = Latch()
        inbox.onMessage = { _ in if inbox.count == senders * each { done.open() } }
        let workers = (0..<2).map { _ in
            LoopThread { loop in
                loop.add(local, forMode: .default)
                loop.run()
            }
        }
        for worker in workers { _ = try worker.loop }
        let threads = try (0..<senders).map { sender in
            // Two for one address share a connection, so each sends as one of three sockets.
            let address = try #require(local.socketAddress)
            return LoopThread { _ in
                guard let socket = try? Socket.connecting(to: address),
                    SocketCalls.wait(socket.descriptor, for: POLLOUT, until: .never)
                else { return false }
                for number in 0..<each {
                    guard
                        let bytes = try? WireMessage.bytes(
                            msgid: UInt32(number), signature: PortWireTests.signature,
                            components: [(1, Data("\(sender)".utf8))], maximum: 1_000)
                    else { return false }
                    guard socket.sendAll(bytes) else { return false }
                }
                return true
            }
        }
        for thread in threads { #expect(try thread.value()) }
        try done.wait()
        for sender in 0..<senders {
            let own = zip(inbox.texts, inbox.numbers).filter { $0.0 == "\(sender)" }.map(\.1)
            #expect(own == (0..<each).map { UInt32($0) })
        }
        local.invalidate()
        for worker in workers {
            try worker.loop.wakeUp()
            try worker.value()
        }
    }

    @Test func `PM-9 socket ports are made invalid and dropped while peers send`() throws {
        for round in 0..<60 {
            let keeper = Port()
            let worker = LoopThread { loop in
                loop.add(keeper, forMode: .default)
                loop.run()
            }
            let loop = try worker.loop
            let sender: LoopThread<Void>
            do {
                let local = SocketPort()
                let inbox = PortInbox(local)
                let remote = try local.remote
                loop.add(local, forMode: .default)
                sender = LoopThread { _ in
                    while remote.send("x", before: Date(timeIntervalSinceNow: 10)) {}
                }
                try waitFor("messages") { inbox.count > round % 3 ? () : nil }
                // Without the loop's reference the last one may be that of a callback which is under way.
                if round.isMultiple(of: 2) {
                    local.invalidate()
                } else {
                    loop.remove(local, forMode: .default)
                }
            }
            try sender.value()
            keeper.invalidate()
            loop.wakeUp()
            try worker.value()
        }
    }

    @Test func `PM-5 a port that another process cannot reach is refused`() throws {
        let local = SocketPort()
        let remote = try local.remote
        #expect(!remote.send(before: .distantFuture, components: [Port()], from: nil, reserved: 0))
        #expect(!remote.send(before: .distantFuture, components: [1], from: nil, reserved: 0))
        #expect(!remote.send(before: .distantFuture, components: nil, from: Port(), reserved: 0))
        // In this process they are all the same.
        #expect(local.send(before: .distantPast, components: [Port()], from: Port(), reserved: 0))
        local.invalidate()
    }

    @Test func `PM-2 send is false if nothing listens, or the receiver takes nothing by the date`() throws {
        let refused = try RefusedPort()
        let nothing = try #require(SocketPort(remoteWithTCPPort: refused.port, host: nil))
        #expect(!nothing.send("x", before: Date(timeIntervalSinceNow: 10)))
        let local = SocketPort()
        let remote = try local.remote
        // No loop takes it: it is more than the kernel's buffers hold.
        let large = String(repeating: "x", count: 15 << 20)
        #expect(!remote.send(large, before: Date(timeIntervalSinceNow: 0.05)))
        // What was cut off is dropped, and the next message is whole.
        let inbox = PortInbox(local)
        try onLoopThread { loop in
            loop.add(local, forMode: .default)
            #expect(remote.send("next", before: Date(timeIntervalSinceNow: 10)))
            while inbox.texts.isEmpty, loop.run(untilSource: .default) == .handledSource {}
        }
        #expect(inbox.texts == ["next"])
        local.invalidate()
    }

    @Test func `PM-4 a full queue holds peers back, and nothing is lost`() throws {
        let local = SocketPort()
        local.maximumQueuedMessages = 4
        let inbox = PortInbox(local)
        let total = 3_000
        let senders = try (0..<3).map { sender in
            let remote = try local.remote
            return LoopThread { _ in
                for number in 0..<total / 3 {
                    #expect(remote.send("\(sender) \(number)", before: .distantFuture))
                }
            }
        }
        let longest = Mutex(0)
        try onLoopThread { loop in
            loop.add(local, forMode: .default)
            inbox.onMessage = { _ in
                let waiting = loop.debugDescription.firstMatch(of: /(\d+) messages? waits?/)
                longest.withLock { $0 = max($0, waiting.flatMap { Int($0.1) } ?? 0) }
            }
            while inbox.count < total, loop.run(untilSource: .default) == .handledSource {}
        }
        for sender in senders { try sender.value() }
        #expect(1...4 ~= longest.withLock { $0 })
        for sender in 0..<3 {
            #expect(
                inbox.texts.filter { $0.hasPrefix("\(sender) ") }
                    == (0..<total / 3).map { "\(sender) \($0)" })
        }
        local.invalidate()
    }

    /// The kernel always reports room on a socket that is not connected.
    @Test func `PM-2 PM-4 a full queue of datagrams holds a sender back, until the date`() throws {
        let path = "/tmp/rondo-port-\(UUID().uuidString.prefix(8))"
        let local = try #require(SocketPort(at: .unix(path: path), type: Int32(SOCK_DGRAM.rawValue)))
        // Ends a sender that does not end by itself: there is no receiver any more.
        defer { local.invalidate() }
        let inbox = PortInbox(local)
        let remote = try local.remote
        // No loop takes them.
        let filling = LoopThread { _ in
            var count = 0
            while remote.send("\(count)", before: Date(timeIntervalSinceNow: 0.02)) { count += 1 }
            return count
        }
        let count = try filling.value()
        #expect(count > 0)
        let numbers = Mutex<[pid_t]>([])
        let waiting = LoopThread { _ in
            numbers.withLock { $0.append(threadNumber()) }
            return remote.send("last", before: .distantFuture)
        }
        let number = try waitFor("the thread") { numbers.withLock { $0.first } }
        try waitUntilAsleep(thread: number)
        try onLoopThread { loop in
            loop.add(local, forMode: .default)
            while inbox.count <= count, loop.run(untilSource: .default) == .handledSource {}
        }
        #expect(try waiting.value())
        #expect(inbox.texts == (0..<count).map { "\($0)" } + ["last"])
    }

    @Test func `PM-2 a message of megabytes comes whole`() throws {
        let local = SocketPort()
        let remote = try local.remote
        let text = String(repeating: "0123456789abcdef", count: 1 << 19)
        let sender = LoopThread { _ in remote.send(text, before: .distantFuture) }
        let inbox = PortInbox(local)
        try onLoopThread { loop in
            loop.add(local, forMode: .default)
            while inbox.texts.isEmpty, loop.run(untilSource: .default) == .handledSource {}
        }
        #expect(try sender.value())
        #expect(inbox.texts == [text])
        // One that is too long is not even sent, unless both ends allow it.
        let long = String(repeating: "x", count: 16 << 20)
        #expect(!remote.send(long, before: .distantFuture))
        #expect(local.maximumMessageSize == 16 << 20)
        for port in [local, remote] { port.maximumMessageSize = 17 << 20 }
        let again = LoopThread { _ in remote.send(long, before: .distantFuture) }
        try onLoopThread { loop in
            loop.add(local, forMode: .default)
            while inbox.count < 2, loop.run(untilSource: .default) == .handledSource {}
        }
        #expect(try again.value())
        #expect(inbox.texts.last?.utf8.count == 16 << 20)
        local.invalidate()
    }

    @Test func `PM-9 a port that is invalid closes its socket and connections`() throws {
        let local = SocketPort()
        let remote = try local.remote
        let number = try #require(local.socketAddress?.port)
        let inbox = PortInbox(local)
        try onLoopThread { loop in
            loop.add(local, forMode: .default)
            inbox.onMessage = { _ in local.invalidate() }
            #expect(remote.send("last", before: .distantFuture))
            #expect(loop.run(in: .default, for: 60, returnAfterSourceHandled: false) == .finished)
        }
        #expect(!local.isValid)
        #expect(local.connectionCount == 0)
        #expect(!local.send("x"))
        #expect(!remote.send("x", before: Date(timeIntervalSinceNow: 10)))
        let again = try #require(SocketPort(tcpPort: number))
        again.invalidate()
    }

    @Test func `PM-9 a port that is dropped closes its socket and connections`() throws {
        let dropped = WeakPort()
        try onLoopThread { loop in
            let local = SocketPort()
            dropped.port.withLock { $0.object = local }
            let remote = try? local.remote
            loop.add(local, forMode: .default)
            #expect(remote?.send("x") == true)
            loop.run(untilSource: .default)
        }
        #expect(dropped.port.withLock { $0.object } == nil)
    }

    // MARK: What it says of itself

    /// One thread adds the port, and before it notes that another one removes it; or the other way round.
    @Test func `PM-1 RL-16 whichever thread notes its change last, the sockets are in the modes of the port`()
        throws
    {
        let port = try #require(SocketPort(tcpPort: 0))
        defer { port.invalidate() }
        let inbox = PortInbox(port)
        let (remote, backing) = (try port.remote, try #require(port.backing))
        try onLoopThread { loop in
            loop.add(port, forMode: .default)
            loop.remove(port, forMode: .default)
            backing.entered(loop, .default)
            // With a socket in it the mode would not be empty.
            #expect(loop.run(in: .default, for: 60, returnAfterSourceHandled: true) == .finished)
            loop.add(port, forMode: .default)
            backing.left(loop, .default)
            #expect(remote.send("heard", before: .distantFuture))
            while inbox.texts.isEmpty, loop.run(untilSource: .default) == .handledSource {}
            // And a connection, which is there by now.
            backing.left(loop, .default)
            #expect(remote.send("again", before: .distantFuture))
            while inbox.count < 2, loop.run(untilSource: .default) == .handledSource {}
            loop.remove(port, forMode: .default)
            backing.entered(loop, .default)
            #expect(loop.run(in: .default, for: 60, returnAfterSourceHandled: true) == .finished)
        }
        #expect(inbox.texts == ["heard", "again"])
    }

    @Test func `PM-1 a socket port says where it listens, and why nothing comes`() throws {
        try onLoopThread { loop in
            let port = SocketPort()
            port.label = "control"
            let address = port.socketAddress?.description ?? ""
            #expect(port.whyNotDelivering.reason == .notScheduled)
            loop.add(port, forMode: .default)
            let lines = loop.debugDescription
            #expect(lines.contains("socket port “control” \(address)"), "\(lines)")
            #expect(
                lines.contains("“socket port on \(address)”, descriptor \(port.socket), reading"), "\(lines)")
            #expect(port.whyNotDelivering.reason == .loopNeverRan)
            port.invalidate()
            #expect(port.whyNotDelivering.reason == .invalid)
        }
    }
}

/// Sees whether a port is gone.
private final class WeakPort: Sendable {
    struct Reference: Sendable { weak var object: Port? }

    let port = Mutex(Reference())
}
