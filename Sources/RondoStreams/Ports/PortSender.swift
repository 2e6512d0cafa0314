internal import Glibc
internal import RondoCore
internal import RondoMutex

/// Sends messages to a port of another process: by one connection, which all remote ports for one address
/// share (rule PM-14), or by single datagrams.
///
/// `@unchecked Sendable`: only the thread that holds the semaphore `access` uses the connection.
final class PortSender: @unchecked Sendable {
    /// A weak reference to a sender that is in use. A class, because Swift 6.3 misreads a weak reference that
    /// is a field of a dictionary's values where a `?` follows it.
    private final class Known {
        weak var sender: PortSender?
        let id: ObjectIdentifier

        init(_ sender: PortSender) {
            self.sender = sender
            id = ObjectIdentifier(sender)
        }
    }

    private static let known = Mutex<[PortSignature: Known]>([:])

    let signature: PortSignature
    private let access = DispatchSemaphore(value: 1)
    private var connection: Socket?

    private init(_ signature: PortSignature) { self.signature = signature }

    /// The sender that all remote ports for `signature` share.
    static func shared(for signature: PortSignature) -> PortSender {
        known.withLock { known in
            if let sender = known[signature]?.sender { return sender }
            let sender = PortSender(signature)
            known[signature] = Known(sender)
            return sender
        }
    }

    deinit {
        let (signature, id) = (signature, ObjectIdentifier(self))
        Self.known.withLock { known in if known[signature]?.id == id { known[signature] = nil } }
    }

    /// Writes a whole message before `limitDate`.
    ///
    /// If only a part is written by then, the connection is closed, which cuts the message off; the next
    /// message makes a new connection.
    func send(_ message: Data, before limitDate: Date) -> Bool {
        let end = LoopClock.systemNow.advanced(bySeconds: limitDate.timeIntervalSinceNow)
        guard let address = signature.socketAddress, let kind = signature.kind, waitForAccess(until: end)
        else { return false }
        defer { access.signal() }
        switch kind {
        case .stream: return sendByConnection(message, to: address, until: end)
        case .datagrams: return sendDatagram(message, to: address, until: end)
        }
    }

    private func sendByConnection(
        _ message: Data, to address: SocketAddress, until end: LoopInstant
    ) -> Bool {
        // Only the first write may reveal that the peer has closed the connection meanwhile, so a second
        // attempt follows.
        for _ in 0..<2 {
            let isNew = connection == nil || !isAlive
            guard let socket = isNew ? connect(to: address, until: end) : connection else { return false }
            connection = socket
            switch write(message, to: socket, until: end) {
            case .all: return true
            case .nothing(let isBroken):
                if isBroken { connection = nil }
                if !isBroken || isNew { return false }
            case .part:
                connection = nil
                return false
            }
        }
        return false
    }

    private func waitForAccess(until end: LoopInstant) -> Bool {
        while true {
            let rest = end.seconds(since: LoopClock.systemNow)
            if access.wait(timeout: .now() + max(0, min(rest, 3_600))) == .success { return true }
            if rest <= 0 { return false }
        }
    }

    private var isAlive: Bool {
        guard let connection else { return false }
        return SocketCalls.poll(connection.descriptor, for: SocketCalls.readingHasEnded) == 0
    }

    private func connect(to address: SocketAddress, until end: LoopInstant) -> Socket? {
        while true {
            do throws(SocketError) {
                let socket = try Socket.connecting(to: address)
                guard SocketCalls.wait(socket.descriptor, for: POLLOUT, until: end),
                    try socket.finishConnecting(to: address)
                else { return nil }
                return socket
            } catch {
                // A Unix socket reports a full queue in this way.
                guard error.code == EAGAIN, SocketCalls.pause(until: end) else { return nil }
            }
        }
    }

    private enum Written {
        case all
        case part
        /// No byte was written; the connection has failed, or accepted nothing until the date.
        case nothing(isBroken: Bool)
    }

    private func write(_ message: Data, to socket: Socket, until end: LoopInstant) -> Written {
        message.withUnsafeBytes { bytes in
            var rest = bytes[...]
            while !rest.isEmpty {
                let outcome = SocketCalls.send(
                    socket.descriptor, UnsafeRawBufferPointer(rebasing: rest).baseAddress, rest.count)
                switch outcome {
                case .bytes(let count): rest = rest.dropFirst(count)
                case .failed: return rest.count == bytes.count ? .nothing(isBroken: true) : .part
                case .wouldBlock:
                    guard SocketCalls.wait(socket.descriptor, for: POLLOUT, until: end) else {
                        return rest.count == bytes.count ? .nothing(isBroken: false) : .part
                    }
                }
            }
            return .all
        }
    }

    private func sendDatagram(_ message: Data, to address: SocketAddress, until end: LoopInstant) -> Bool {
        let kind = signature.type | Int32(SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)
        let descriptor = socket(address.family, kind, 0)
        guard descriptor >= 0 else { return false }
        defer { close(descriptor) }
        var hasWaited = false
        while true {
            switch SocketCalls.send(descriptor, message, to: address) {
            case .bytes(let count): return count == message.count
            case .failed: return false
            case .wouldBlock:
                // For a Unix socket that is not connected the kernel always reports room, also while the
                // receiver's queue is full.
                guard SocketCalls.wait(descriptor, for: POLLOUT, until: end),
                    !hasWaited || SocketCalls.pause(until: end)
                else { return false }
                hasWaited = true
            }
        }
    }
}
