// No import of Rondo's here: these are Foundation's ports and run loops.
import Foundation
import RondoMutex

/// Foundation's own `SocketPort` on a thread that runs Foundation's loop, as a program has it that knows nothing of
/// Rondo.
///
/// `@unchecked Sendable`: the port is used on its thread alone, once that has begun; what it has received has a lock.
final class FoundationPortPeer: NSObject, PortDelegate, @unchecked Sendable {
    struct Received: Sendable, Equatable {
        let msgid: UInt32
        let components: [Data]
        /// The address of the port for the answer.
        let sendPort: Data?
    }

    private let port: Foundation.SocketPort
    private let received = Mutex<[Received]>([])
    private let isOver = Mutex(false)
    private let ended = DispatchSemaphore(value: 0)

    /// - Parameter answers: Whether it answers each message through its send port.
    init?(answers: Bool = false) {
        guard let port = Foundation.SocketPort(tcpPort: 0) else { return nil }
        self.port = port
        self.answers = answers
        super.init()
        port.setDelegate(self)
        Thread.detachNewThread { [self] in serve() }
    }

    private func serve() {
        port.schedule(in: .current, forMode: .default)
        while !isOver.withLock({ $0 }) {
            _ = RunLoop.current.run(mode: .default, before: Date(timeIntervalSinceNow: 0.05))
        }
        port.remove(from: .current, forMode: .default)
        port.setDelegate(nil)
        port.invalidate()
        ended.signal()
    }

    private let answers: Bool

    /// The number of its port, from the port's `struct sockaddr_in`.
    var tcpPort: UInt16 {
        port.address.withUnsafeBytes {
            UInt16(bigEndian: $0.loadUnaligned(fromByteOffset: 2, as: UInt16.self))
        }
    }

    var messages: [Received] { received.withLock { $0 } }

    func handle(_ message: PortMessage) {
        let data = (message.components ?? []).compactMap { ($0 as? NSData).map { Data(referencing: $0) } }
        received.withLock {
            $0.append(
                Received(
                    msgid: message.msgid, components: data,
                    sendPort: (message.sendPort as? Foundation.SocketPort)?.address))
        }
        guard answers else { return }
        // The port for the answer is a component where a program of Foundation's has sent it.
        let target = message.components?.compactMap { $0 as? Foundation.SocketPort }.first ?? message.sendPort
        _ = target?.send(
            before: Date(timeIntervalSinceNow: 10), msgid: Int(message.msgid) + 1,
            components: NSMutableArray(array: data), from: port, reserved: 0)
    }

    func stop() {
        isOver.withLock { $0 = true }
        _ = ended.wait(timeout: .now() + 30)
    }

    /// Sends by a remote port of Foundation's.
    static func send(_ components: [Data], msgid: Int, toTCPPort number: UInt16) -> Bool {
        guard let remote = Foundation.SocketPort(remoteWithTCPPort: number, host: "localhost") else {
            return false
        }
        defer { remote.invalidate() }
        return remote.send(
            before: Date(timeIntervalSinceNow: 10), msgid: msgid,
            components: NSMutableArray(array: components), from: nil, reserved: 0)
    }
}
