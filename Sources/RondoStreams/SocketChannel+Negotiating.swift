internal import RondoCore

// A proxy is spoken to, on its connection and before anything else.
//
// What it says is looked at before it is taken (MSG_PEEK), and no more is taken than the negotiation
// consumes: what the host behind the proxy says first stays in the kernel, for TLS or for the owner.
extension SocketChannel {
    /// The most that a proxy may say, in bytes; HTTP clients allow a head about as much.
    package static let negotiationLimit = 65_536
    /// How much of it is looked at in one go.
    private static let negotiationPiece = 4_096

    struct Negotiating {
        var value: any ChannelNegotiation
        var unsent: ArraySlice<UInt8> = []
        var received = 0
        /// Nothing is left but to send.
        var isDone = false
    }

    func beginNegotiating(_ connected: Connected, _ value: any ChannelNegotiation) {
        var negotiating = Negotiating(value: value)
        let step = negotiating.value.begin()
        take(step, connected, negotiating)
    }

    func negotiate(_ ready: RunLoop.Source.Interest, _ connected: Connected, _ before: Negotiating) {
        guard before.unsent.isEmpty else { return send(connected, before) }
        guard ready.contains(.read) else { return }
        var negotiating = before
        do throws(SocketError) {
            guard let step = try receive(connected, &negotiating) else { return }
            take(step, connected, negotiating)
        } catch {
            failNegotiating(error)
        }
    }

    private func take(_ step: NegotiationStep, _ connected: Connected, _ before: Negotiating) {
        var negotiating = before
        switch step {
        case .exchange(let bytes): negotiating.unsent = bytes[...]
        case .done(let bytes):
            negotiating.unsent = bytes[...]
            negotiating.isDone = true
        case .failed(let error): return fail(.negotiation(error))
        }
        send(connected, negotiating)
    }

    private func send(_ connected: Connected, _ before: Negotiating) {
        var negotiating = before
        do throws(SocketError) {
            try negotiating.send(over: connected.socket)
        } catch {
            return failNegotiating(error)
        }
        if negotiating.isDone && negotiating.unsent.isEmpty { return isDirect(connected) }
        phase = .negotiating(connected, negotiating)
        interest.set(negotiating.unsent.isEmpty ? .read : .write, of: connected.source)
    }

    /// Nil: nothing has come.
    private func receive(
        _ connected: Connected, _ negotiating: inout Negotiating
    ) throws(SocketError) -> NegotiationStep? {
        var piece = [UInt8](repeating: 0, count: Self.negotiationPiece)
        let count: Int
        switch try connected.socket.peek(into: &piece) {
        case .bytes(let found): count = found
        case .wantsRead: return nil
        case .end: return .failed(negotiating.value.receiveEnd())
        }
        var consumed = 0
        let step = piece.withUnsafeBytes {
            negotiating.value.receive(UnsafeRawBufferPointer(rebasing: $0.prefix(count)), consumed: &consumed)
        }
        precondition(
            (0...count).contains(consumed), "bug in Rondo: a negotiation took more than there was")
        try connected.socket.discard(consumed, using: &piece)
        negotiating.received += consumed
        switch step {
        case .exchange where negotiating.received > Self.negotiationLimit:
            return .failed(
                NegotiationError(
                    .protocolViolation,
                    description: "the proxy \(configuration.route?.host ?? "") says more than "
                        + "\(Self.negotiationLimit) bytes before it lets a connection through"))
        // What nobody takes would be found again and again.
        case .exchange(let answer) where consumed == 0 && answer.isEmpty:
            preconditionFailure("bug in Rondo: a negotiation neither takes what the proxy says nor answers")
        case .exchange, .done, .failed:
            return step
        }
    }

    private func failNegotiating(_ error: SocketError) {
        let (host, port) =
            configuration.route.map { ($0.host, $0.port) } ?? (configuration.host, configuration.port)
        fail(.broken(host: host, port: port, error))
    }
}

extension SocketChannel.Negotiating {
    mutating func send(over socket: Socket) throws(SocketError) {
        while !unsent.isEmpty {
            let result = unsent.withUnsafeBytes { bytes in
                Result { () throws(SocketError) in try socket.write(bytes) }
            }
            guard case .bytes(let count) = try result.get() else { return }
            unsent = unsent.dropFirst(count)
        }
    }
}
