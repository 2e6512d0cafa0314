internal import RondoCore

// A proxy is spoken to, on its connection and before anything else.
//
// What it says is looked at before it is taken (MSG_PEEK), and no more is taken than the negotiation
// consumes: what the host behind the proxy says first stays in the kernel, for TLS or for the owner. Where the
// proxy is spoken to by TLS the same is done with SSL_peek, and what is not taken stays in OpenSSL.
extension SocketChannel {
    /// The most that a proxy may say, in bytes; HTTP clients allow a head about as much.
    package static let negotiationLimit = 65_536
    /// How much of it is looked at in one go.
    private static let negotiationPiece = 4_096

    /// Bytes that a proxy has said so far while it is asked for the way; 0 at any other time.
    package var negotiatedBytes: Int {
        if case .negotiating(_, let negotiating) = phase { negotiating.received } else { 0 }
    }

    struct Negotiating {
        var value: any ChannelNegotiation
        /// TLS with the proxy; nil: there is none.
        let carrier: TLSEngine?
        var unsent: ArraySlice<UInt8> = []
        var received = 0
        /// Nothing is left but to send.
        var isDone = false
    }

    func beginNegotiating(
        _ connected: Connected, _ value: any ChannelNegotiation, through carrier: TLSEngine?
    ) {
        var negotiating = Negotiating(value: value, carrier: carrier)
        let step = negotiating.value.begin()
        take(step, connected, negotiating)
    }

    func negotiate(_ ready: RunLoop.Source.Interest, _ connected: Connected, _ before: Negotiating) {
        guard before.isSent else { return send(connected, before) }
        // TLS may have waited for either.
        guard ready.contains(.read) || before.carrier != nil else { return }
        var negotiating = before
        do throws(ChannelError) {
            guard let step = try receive(connected, &negotiating) else { return }
            take(step, connected, negotiating)
        } catch {
            fail(error)
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
        let awaited: RunLoop.Source.Interest
        do throws(ChannelError) {
            awaited = try send(&negotiating, over: connected)
        } catch {
            return fail(error)
        }
        if negotiating.isDone && negotiating.isSent {
            return isDirect(connected, through: negotiating.carrier)
        }
        phase = .negotiating(connected, negotiating)
        interest.set(awaited, of: connected.source)
        // No socket announces what is decrypted already.
        if negotiating.carrier?.hasPendingPlaintext ?? false { turns?.signalAndWakeUp() }
    }

    /// - Returns: What has to be waited for: to send the rest, or for the answer.
    private func send(
        _ negotiating: inout Negotiating, over connected: Connected
    ) throws(ChannelError) -> RunLoop.Source.Interest {
        guard let carrier = negotiating.carrier else {
            do throws(SocketError) {
                try negotiating.send(over: connected.socket)
            } catch {
                throw broken(error)
            }
            return negotiating.unsent.isEmpty ? .read : .write
        }
        do throws(TLSError) {
            return try negotiating.send(by: carrier)
        } catch {
            throw .tls(error)
        }
    }

    /// Looks at what has come.
    ///
    /// - Returns: How much it is, 0 for the end; nil: nothing.
    private func peek(
        _ connected: Connected, _ carrier: TLSEngine?, _ piece: inout [UInt8]
    ) throws(ChannelError) -> Int? {
        guard let carrier else {
            do throws(SocketError) {
                switch try connected.socket.peek(into: &piece) {
                case .bytes(let found): return found
                case .wantsRead: return nil
                case .end: return 0
                }
            } catch {
                throw broken(error)
            }
        }
        let found = piece.withUnsafeMutableBytes { buffer in
            Result { () throws(TLSError) in try carrier.peek(into: buffer) }
        }
        do throws(TLSError) {
            switch try found.get() {
            case .bytes(let count): return count
            case .end, .truncated: return 0
            case .wantsRead: interest.set(.read, of: connected.source)
            case .wantsWrite: interest.set(.write, of: connected.source)
            }
        } catch {
            throw .tls(error)
        }
        return nil
    }

    /// Takes what was looked at.
    private func discard(
        _ count: Int, _ connected: Connected, _ carrier: TLSEngine?, _ piece: inout [UInt8]
    ) throws(ChannelError) {
        guard let carrier else {
            do throws(SocketError) {
                return try connected.socket.discard(count, using: &piece)
            } catch {
                throw broken(error)
            }
        }
        let result = piece.withUnsafeMutableBytes { buffer in
            Result { () throws(TLSError) in
                try carrier.read(into: UnsafeMutableRawBufferPointer(rebasing: buffer.prefix(count)))
            }
        }
        if case .failure(let error) = result { throw .tls(error) }
    }

    /// Nil: nothing has come.
    private func receive(
        _ connected: Connected, _ negotiating: inout Negotiating
    ) throws(ChannelError) -> NegotiationStep? {
        var piece = [UInt8](repeating: 0, count: Self.negotiationPiece)
        guard let count = try peek(connected, negotiating.carrier, &piece) else { return nil }
        if count == 0 { return .failed(negotiating.value.receiveEnd()) }
        var consumed = 0
        let step = piece.withUnsafeBytes {
            negotiating.value.receive(UnsafeRawBufferPointer(rebasing: $0.prefix(count)), consumed: &consumed)
        }
        precondition(
            (0...count).contains(consumed), "bug in Rondo: a negotiation took more than there was")
        try discard(consumed, connected, negotiating.carrier, &piece)
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

    private func broken(_ error: SocketError) -> ChannelError {
        let (host, port) =
            configuration.route.map { ($0.host, $0.port) } ?? (configuration.host, configuration.port)
        return .broken(host: host, port: port, error)
    }
}

extension SocketChannel.Negotiating {
    /// Nothing waits to be sent.
    var isSent: Bool { unsent.isEmpty && !(carrier?.hasUnsentBytes ?? false) }

    /// - Returns: What TLS waits for; `read` too where all is sent.
    mutating func send(by carrier: TLSEngine) throws(TLSError) -> RunLoop.Source.Interest {
        while !unsent.isEmpty {
            let result = unsent.withUnsafeBytes { bytes in
                Result { () throws(TLSError) in try carrier.write(bytes) }
            }
            switch try result.get() {
            case .bytes(let count): unsent = unsent.dropFirst(count)
            case .wantsRead: return .read
            case .wantsWrite: return .write
            }
        }
        return try carrier.flush() == .wantsWrite ? .write : .read
    }

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
