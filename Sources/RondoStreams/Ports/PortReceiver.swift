// The receiving end of a socket port: a listening socket with the connections that peers have made, or a
// datagram socket.
//
// The descriptor sources are in the modes that hold the port, and nothing is read in other modes. Messages go
// into the port's queue; while the queue is full, connections are not read, and TCP holds the senders back.
//
// A peer is not trusted: it may send garbage, announce a message and never send it, or make connections
// without end. The length of messages, the number of connections and the total size of unfinished messages
// are therefore limited (PortLimits); PortConnections chooses the connection to remove.
//
// Threads: any thread may enter, those of two loops at the same time. Decisions and reads are made under the
// lock. Calls that may reach the program are made after it is released (FollowUp), by functions that check
// the state again, because another thread may have changed it meanwhile.

internal import Glibc
internal import RondoCore
internal import RondoMutex

/// Receives messages for a local socket port.
final class PortReceiver: PortBacking {
    /// The seconds for which nothing is accepted after descriptors or memory have run out.
    private static let pauseSeconds: TimeInterval = 0.1
    /// The most connections that are accepted for one readiness of the socket.
    private static let connectionsPerReadiness = 16
    /// The bytes for one datagram: more than UDP's largest, and more than the default limit of Unix sockets.
    private static let datagramSize = 262_144

    private struct State {
        weak var port: Port?
        var source: RunLoop.Source?
        var connections = PortConnections()
        /// Whether datagrams are not read until the queue has room.
        var isHeldBack = false
        /// Whether nothing is accepted for a while.
        var isPaused = false
        /// True if nothing can be accepted any more.
        var hasFailed = false
        var isClosed = false

        var isWatched: Bool { !isHeldBack && !isPaused && !hasFailed }
        var sources: [RunLoop.Source] { (source.map { [$0] } ?? []) + connections.sources }
    }

    /// The calls to make after the lock is released.
    private struct FollowUp {
        var added: [RunLoop.Source] = []
        /// Connections whose `isHeldBack` has changed.
        var changed: [PortConnection] = []
        var removed: [PortConnection] = []
        var broken: [(PortConnection, WireError)] = []
        var endpointHasChanged = false
        var pauses = false
        var failure: Int32?
    }

    let signature: PortSignature
    private let endpoint: PortEndpoint
    private let limits: PortLimits
    private let translator: PortTranslator
    private let state = Mutex(State())

    /// - Parameter signature: The port's; its address is replaced by the socket's own, if the socket has one.
    init(_ endpoint: PortEndpoint, _ signature: PortSignature, _ limits: PortLimits) {
        let address = endpoint.address
        self.endpoint = endpoint
        self.limits = limits
        self.signature = address.map { signature.at($0) } ?? signature
        translator = PortTranslator(own: address)
    }

    /// Must be called once, before anything else.
    func begin(for port: Port) {
        let source = makeSource()
        state.withLock { state in
            state.port = port
            state.source = source
        }
    }

    private func makeSource() -> RunLoop.Source {
        let descriptor = endpoint.descriptor
        let source = RunLoop.Source(fileDescriptor: descriptor, keepsFile: true, interest: .read) {
            [weak self] _, ready in self?.serve(isRefused: ready.isEmpty)
        }
        source.label = "socket port on \(summary)"
        return source
    }

    var summary: String { signature.socketAddress?.description ?? "(unknown address)" }

    /// The descriptor, or -1 once closed.
    var descriptor: Int32 { state.withLock { $0.isClosed ? -1 : endpoint.descriptor } }

    /// The number of connections; for tests.
    var connectionCount: Int { state.withLock { $0.connections.count } }

    /// The port, which the caller retains while it works for it: the last reference must not be released
    /// under the lock.
    private var port: Port? { state.withLock { $0.port } }

    private var schedule: PortSchedule { PortSchedule { [weak self] in self?.port } }

    // MARK: What happens to the port

    func entered(_ loop: RunLoop, _ mode: RunLoop.Mode) {
        schedule.update(state.withLock { $0.sources }, in: loop, mode)
        // The timer that ends a pause may be in modes that run no more.
        endPause()
    }

    func left(_ loop: RunLoop, _ mode: RunLoop.Mode) {
        schedule.update(state.withLock { $0.sources }, in: loop, mode)
    }

    func close() {
        let (isFirst, source, connections) = state.withLock { state in
            defer { state.isClosed = true }
            return (!state.isClosed, state.source, state.connections.removeAll())
        }
        guard isFirst else { return }
        // Before the descriptor is closed, as for connections.
        source?.invalidate()
        endpoint.close()
        for connection in connections { connection.close() }
    }

    func messageWasTaken() {
        guard let port else { return }
        let followUp = state.withLock { state -> FollowUp in
            var followUp = FollowUp()
            guard state.isHeldBack || state.connections.areHeldBack, !state.isClosed, port.isHalfEmpty else {
                return followUp
            }
            followUp.endpointHasChanged = state.isHeldBack
            state.isHeldBack = false
            let connections = state.connections.takeHeldBack()
            followUp.changed = connections
            for connection in connections { takeMessages(of: connection, for: port, &state, &followUp) }
            return followUp
        }
        carryOut(followUp, for: port)
    }

    // MARK: On a loop's thread

    private func serve(isRefused: Bool) {
        guard let port else { return }
        // If the kernel refuses to watch the socket, for example for lack of memory, a new source tries
        // again.
        let another = isRefused ? makeSource() : nil
        let followUp = state.withLock { state -> FollowUp in
            var followUp = FollowUp()
            guard !state.isClosed else { return followUp }
            if let another {
                state.source = another
                followUp.added = [another]
                pause(&state, &followUp)
                return followUp
            }
            switch endpoint {
            case .listening(let socket): accept(from: socket, &state, &followUp)
            case .datagrams(let socket): receive(from: socket, for: port, &state, &followUp)
            }
            return followUp
        }
        carryOut(followUp, for: port)
    }

    private func serve(connection number: Int, isRefused: Bool) {
        guard let port else { return }
        let followUp = state.withLock { state -> FollowUp in
            var followUp = FollowUp()
            guard !state.isClosed, let connection = state.connections[number], !connection.isHeldBack else {
                return followUp
            }
            guard isRefused || port.hasRoomForPeers(bytes: PortLimits.unfinishedBytes) else {
                state.connections.holdBack(connection)
                followUp.changed = [connection]
                return followUp
            }
            // The reader holds no whole message now, so nothing is lost if the connection has ended.
            guard !isRefused, connection.read() else {
                followUp.removed = [state.connections.remove(connection)]
                return followUp
            }
            state.connections.noteRead(of: connection)
            takeMessages(of: connection, for: port, &state, &followUp)
            followUp.removed += state.connections.removeUnfinished(
                beyond: PortLimits.unfinishedBytes, butNot: connection)
            return followUp
        }
        carryOut(followUp, for: port)
    }

    /// Moves whole messages into the port's queue, as far as it has room.
    private func takeMessages(
        of connection: PortConnection, for port: Port, _ state: inout State, _ followUp: inout FollowUp
    ) {
        do throws(WireError) {
            while true {
                guard port.hasRoomForPeers(bytes: PortLimits.unfinishedBytes) else {
                    state.connections.holdBack(connection)
                    followUp.changed.append(connection)
                    break
                }
                guard let message = try connection.nextMessage(maximum: limits.maximumMessageSize) else {
                    break
                }
                port.enqueueFromPeer(translator.content(of: message, on: connection))
            }
            state.connections.count(connection)
        } catch {
            followUp.broken.append((connection, error))
            followUp.removed.append(state.connections.remove(connection))
        }
    }

    // MARK: Connections and datagrams

    private func accept(
        from socket: ListeningSocket, _ state: inout State, _ followUp: inout FollowUp
    ) {
        for _ in 0..<Self.connectionsPerReadiness {
            switch socket.accept() {
            case .connection(let accepted, _): add(accepted, &state, &followUp)
            case .none: return
            case .lost: break
            case .exhausted: return pause(&state, &followUp)
            case .failed(let code):
                state.hasFailed = true
                followUp.endpointHasChanged = true
                followUp.failure = code
                return
            }
        }
    }

    private func add(_ accepted: Socket, _ state: inout State, _ followUp: inout FollowUp) {
        let number = state.connections.nextNumber()
        let source = RunLoop.Source(
            fileDescriptor: accepted.descriptor, keepsFile: true, interest: .read
        ) { [weak self] _, ready in self?.serve(connection: number, isRefused: ready.isEmpty) }
        let connection = PortConnection(accepted, number: number, source: source)
        followUp.removed += state.connections.add(connection, maximum: limits.maximumConnections)
        followUp.added.append(source)
    }

    private func receive(
        from socket: DatagramSocket, for port: Port, _ state: inout State, _ followUp: inout FollowUp
    ) {
        guard port.hasRoomForPeers(bytes: PortLimits.unfinishedBytes) else {
            state.isHeldBack = true
            followUp.endpointHasChanged = true
            return
        }
        withUnsafeTemporaryAllocation(byteCount: Self.datagramSize, alignment: 16) { buffer in
            let (outcome, address) = SocketCalls.receive(socket.descriptor, into: buffer)
            // A datagram that is no message is dropped: it has no connection to close, and its sender address
            // may be forged.
            guard case .bytes(let count) = outcome, count <= limits.maximumMessageSize,
                let message = try? WireMessage(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
            else { return }
            let peer = address.withUnsafeBytes { SocketAddress(sockaddr: $0) }
            port.enqueueFromPeer(translator.content(of: message, from: peer))
        }
    }

    private func pause(_ state: inout State, _ followUp: inout FollowUp) {
        state.isPaused = true
        followUp.endpointHasChanged = true
        followUp.pauses = true
    }

    private func endPause() {
        state.withLock { $0.isPaused = false }
        updateEndpoint()
    }

    // MARK: With no lock held

    private func carryOut(_ followUp: FollowUp, for port: Port) {
        for connection in followUp.removed { connection.close() }
        for source in followUp.added { schedule.update(source) }
        for connection in followUp.changed {
            connection.source.updateInterest { state.withLock { _ in !connection.isHeldBack } }
        }
        if followUp.endpointHasChanged { updateEndpoint() }
        if followUp.pauses { schedule.perform(after: Self.pauseSeconds) { [weak self] in self?.endPause() } }
        for (connection, error) in followUp.broken {
            let peer = connection.peer.map { ", \($0)," } ?? ""
            port.warnOnce(
                .peer,
                "a peer\(peer) has sent bytes that are not a message; its connection was closed (\(error))")
        }
        if let code = followUp.failure {
            port.warnOnce(.socket, "it accepts no connections any more: \(SocketError.sentence(of: code))")
        }
        port.signalIfMessagesWait()
    }

    private func updateEndpoint() {
        state.withLock { $0.source }?.updateInterest { state.withLock { $0.isWatched } }
    }
}
