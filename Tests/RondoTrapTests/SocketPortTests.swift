// The only import of Foundation's names is Rondo: so the ports by these names are Rondo's. The tests of Foundation's own
// SocketPort, as a program has them that was written for Foundation.
import Rondo
import RondoMutex
import RondoTestSupport
import Testing

@Suite(.leavesNothing, .timeLimit(.minutes(5))) struct SocketPortTrapTests {
    @Test func `PM-16 PM-17 trap 5 the names of ports mean Rondo's types`() {
        #expect(String(reflecting: Port.self) == "RondoCore.Port")
        #expect(String(reflecting: SocketPort.self) == "RondoStreams.SocketPort")
        #expect(String(reflecting: PortMessage.self) == "RondoCore.PortMessage")
        #expect(String(reflecting: (any PortDelegate).self) == "RondoCore.PortDelegate")
        #expect(NSSocketPort.self == SocketPort.self)
        #expect(String(reflecting: Foundation.SocketPort.self) == "Foundation.SocketPort")
    }

    @Test func `trap 5 what is scheduled in .current is served by Rondo's loop`() throws {
        try onLoopThread { loop in
            guard let local = SocketPort(tcpPort: 0), let number = tcpPort(of: local),
                let remote = SocketPort(remoteWithTCPPort: number, host: "localhost")
            else {
                Issue.record("no port could be made")
                return
            }
            defer { local.invalidate() }
            let data = Data("I cannot weave".utf8)
            let delegate = Receiver { message in
                #expect(message.components as? [AnyHashable] == [data as NSData])
                CFRunLoopStop(CFRunLoopGetCurrent())
            }
            local.setDelegate(delegate)
            local.schedule(in: .current, forMode: .default)
            remote.schedule(in: .current, forMode: .default)
            let sent = remote.send(
                before: Date(timeIntervalSinceNow: 5), components: NSMutableArray(array: [data]), from: nil,
                reserved: 0)
            #expect(sent)
            #expect(loop.run(in: .default, for: 60, returnAfterSourceHandled: false) == .stopped)
            local.remove(from: .current, forMode: .default)
            remote.remove(from: .current, forMode: .default)
            remote.invalidate()
        }
    }

    @Test func `PM-3 128 ports get a message each`() throws {
        let received = Mutex(0)
        try onLoopThread { loop in
            let data = Data("I cannot weave".utf8)
            let delegate = Receiver { message in
                #expect(message.components as? [AnyHashable] == [data as NSData])
                let count = received.withLock { count in
                    count += 1
                    return count
                }
                if count == 128 { loop.stop() }
            }
            let pairs = (0..<128).compactMap { _ -> (local: SocketPort, remote: SocketPort)? in
                guard let local = SocketPort(tcpPort: 0), let number = tcpPort(of: local),
                    let remote = SocketPort(remoteWithTCPPort: number, host: "localhost")
                else { return nil }
                local.setDelegate(delegate)
                local.schedule(in: .current, forMode: .default)
                return (local, remote)
            }
            #expect(pairs.count == 128)
            for pair in pairs {
                #expect(
                    pair.remote.send(
                        before: Date(timeIntervalSinceNow: 5), components: NSMutableArray(array: [data]),
                        from: nil, reserved: 0))
            }
            #expect(loop.run(in: .default, for: 60, returnAfterSourceHandled: false) == .stopped)
            for pair in pairs { pair.local.invalidate() }
        }
        #expect(received.withLock { $0 } == 128)
    }

    @Test func `PM-1 the example of a worker with a port`() throws {
        let worker = Receiver { message in
            _ = message.sendPort?.send(
                before: .distantFuture, msgid: 1, components: [Data("done".utf8)], from: nil, reserved: 0)
        }
        let port = Port()
        port.setDelegate(worker)
        let thread = LoopThread { loop in
            loop.add(port, forMode: .default)
            loop.run()
        }
        try onLoopThread { loop in
            let answers = Port()
            let receiver = Receiver { message in
                #expect((message.components?.first as? Data) == Data("done".utf8))
                loop.stop()
            }
            answers.setDelegate(receiver)
            RunLoop.current.add(answers, forMode: .default)
            #expect(
                PortMessage(send: port, receive: answers, components: [Data("do".utf8)])
                    .send(before: .distantFuture))
            #expect(loop.run(in: .default, for: 60, returnAfterSourceHandled: false) == .stopped)
        }
        port.invalidate()
        try thread.loop.wakeUp()
        try thread.value()
        withExtendedLifetime(worker) {}
    }
}

private func tcpPort(of port: SocketPort) -> UInt16? {
    port.address.withUnsafeBytes { bytes in
        bytes.count < 4 ? nil : UInt16(bigEndian: bytes.loadUnaligned(fromByteOffset: 2, as: UInt16.self))
    }
}

private final class Receiver: NSObject, PortDelegate, Sendable {
    private let block: @Sendable (PortMessage) -> Void

    init(_ block: @escaping @Sendable (PortMessage) -> Void) { self.block = block }

    func handle(_ message: PortMessage) { block(message) }
}
