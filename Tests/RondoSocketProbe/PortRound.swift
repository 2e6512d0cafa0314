import Rondo
import RondoMutex
import RondoProbeSupport

/// Ports of this process and socket ports, with messages of all threads.
final class PortRound: Round {
    private let loops: Loops
    private let happenings: Happenings
    /// The receiving ports, and the port that sends to each.
    private let receivers: [Port]
    private let senders: [Port]
    private let inboxes: [Inbox]
    /// True if no port is invalidated, so that every message must arrive.
    private let isCalm: Bool
    private let sent = Mutex(0)

    init(_ loops: Loops, _ random: inout Random) throws {
        self.loops = loops
        happenings = Happenings(&random)
        isCalm = random.isOne(in: 3)
        let socket = random.isOne(in: 2) ? SocketPort(tcpPort: 0) : Self.unixPort(random.next())
        let remote = socket.map { port in
            SocketPort(
                remoteWithProtocolFamily: port.protocolFamily, socketType: port.socketType,
                protocol: port.protocol, address: port.address)
        }
        guard let socket, let remote else { throw POSIXError(.EADDRNOTAVAIL) }
        let local = Port()
        receivers = [local, socket]
        senders = [local, remote]
        inboxes = receivers.indices.map { [happenings, isCalm] number in
            Inbox("\(number)", happenings, isCalm: isCalm)
        }
        for (port, inbox) in zip(receivers, inboxes) {
            port.setDelegate(inbox)
            let (loop, mode) = loops.place(&random)
            loop.add(port, forMode: mode)
        }
    }

    /// A port of a Unix-domain socket in the abstract namespace.
    private static func unixPort(_ name: UInt64) -> SocketPort? {
        var address = Data()
        withUnsafeBytes(of: sa_family_t(AF_UNIX)) { address.append(contentsOf: $0) }
        address.append(contentsOf: [0] + Array("rondo-stress-\(getpid())-\(name)".utf8))
        return SocketPort(
            protocolFamily: AF_UNIX, socketType: Int32(SOCK_STREAM.rawValue), protocol: 0, address: address)
    }

    func step(_ random: inout Random, thread: Int, number: Int) {
        let index = random.number(below: 2)
        let (loop, mode) = loops.place(&random)
        switch random.number(below: 60) {
        case 0 where !isCalm: receivers[index].invalidate()
        case 1 where !isCalm: senders[index].invalidate()
        case 2 where !isCalm: receivers[index].setDelegate(nil)
        case 3: receivers[index].setDelegate(inboxes[index])
        case 4...9: loop.add(receivers[index], forMode: mode)
        case 10...12 where !isCalm: loop.remove(receivers[index], forMode: mode)
        case 13: _ = receivers[index].whyNotDelivering
        default:
            let text = Data("\(index) \(thread) \(number)".utf8)
            let isSent = senders[index].send(
                before: Date(timeIntervalSinceNow: isCalm ? 30 : 0.01), msgid: number,
                components: [text], from: random.isOne(in: 4) ? receivers[1] : nil, reserved: 0)
            if isSent { sent.withLock { $0 += 1 } }
        }
    }

    func finish() -> [String] {
        if isCalm {
            let sent = sent.withLock { $0 }
            let came = happenings.count(awaiting: sent, for: 30)
            if came != sent { happenings.fail("\(sent) messages were sent, and \(came) came") }
        }
        for port in receivers + senders { port.invalidate() }
        for port in receivers + senders where port.isValid { happenings.fail("a port is valid") }
        return happenings.failures
    }

    private final class Inbox: PortDelegate, Sendable {
        private let name: String
        private let happenings: Happenings
        private let isCalm: Bool

        init(_ name: String, _ happenings: Happenings, isCalm: Bool) {
            self.name = name
            self.happenings = happenings
            self.isCalm = isCalm
        }

        func handle(_ message: PortMessage) {
            guard let data = message.components?.first as? NSData else { return happenings.fail("no text") }
            let text = String(decoding: data as Data, as: UTF8.self)
            if text == "answer" { return }
            happenings.once(text)
            if !text.hasPrefix(name) { happenings.fail("\(text) came to port \(name)") }
            _ = message.sendPort?.send(
                before: Date(), msgid: 0, components: [Data("answer".utf8)], from: nil, reserved: 0)
            if !isCalm, happenings.chance(60) == 0 { message.receivePort?.invalidate() }
            happenings.runNested()
        }
    }
}
