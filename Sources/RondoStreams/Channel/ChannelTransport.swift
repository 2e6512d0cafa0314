internal import RondoCore

/// A connected socket with its source, and with TLS if the connection is secured.
struct ChannelTransport {
    let socket: Socket
    let source: RunLoop.Source
    /// TLS with the host, or with a proxy before it; nil: plain text.
    var engine: TLSEngine?

    /// True if decrypted bytes wait, for which the socket does not become readable.
    var hasPendingPlaintext: Bool { engine?.hasPendingPlaintext ?? false }

    /// True if encrypted bytes still wait for the socket.
    var hasUnsentBytes: Bool { engine?.hasUnsentBytes ?? false }

    /// True if TLS leads to the host itself, not only to a proxy before it.
    var isSecuredToHost: Bool { engine.map { !$0.leadsToProxy } ?? false }

    /// Looks at a connection between two uses: true if nothing has come, nor the end.
    func checkQuiet() -> Bool {
        guard let engine else { return socket.isQuiet() }
        // The kernel is asked first, since OpenSSL takes longer to find that there is nothing: see W5 over
        // HTTPS.
        let isSilent = engine.failure == nil && !engine.hasPendingPlaintext && socket.isQuiet()
        return isSilent || engine.checkQuiet()
    }

    /// Ends this side's stream and closes. The source must have been removed before (rule SRC-27: another
    /// file may get the descriptor's number at once).
    ///
    /// - Parameter closesDescriptor: False leaves the descriptor open, for the program that owns it.
    func close(closesDescriptor: Bool) {
        if let engine {
            // On a descriptor that the program keeps, no more than close_notify can be sent, without waiting.
            if closesDescriptor, LingeringClose.begin(socket, engine) { return }
            engine.shutdownAll()
            engine.detach()
        }
        socket.close(closesDescriptor: closesDescriptor)
    }

    // MARK: - Writing

    /// Writes as many bytes of `unsent` as the connection accepts, and removes them.
    ///
    /// - Returns: The event to wait for: `.write` to send the rest or, when all is sent, `.read` for the
    ///   answer.
    func send(_ unsent: inout ArraySlice<UInt8>) throws(TransportError) -> RunLoop.Source.Interest {
        do throws(TLSError) {
            if let engine { return try Self.send(&unsent, by: engine) }
        } catch {
            throw .tls(error)
        }
        while !unsent.isEmpty {
            let result = unsent.withUnsafeBytes { bytes in
                Result { () throws(SocketError) in try socket.write(bytes) }
            }
            switch result {
            case .success(.bytes(let count)): unsent = unsent.dropFirst(count)
            case .success(.wantsWrite): return .write
            case .failure(let error): throw .socket(error)
            }
        }
        return .read
    }

    private static func send(
        _ unsent: inout ArraySlice<UInt8>, by engine: TLSEngine
    ) throws(TLSError) -> RunLoop.Source.Interest {
        while !unsent.isEmpty {
            let result = unsent.withUnsafeBytes { bytes in
                Result { () throws(TLSError) in try engine.write(bytes) }
            }
            switch try result.get() {
            case .bytes(let count): unsent = unsent.dropFirst(count)
            case .wantsRead: return .read
            case .wantsWrite: return .write
            }
        }
        return try engine.flush() == .wantsWrite ? .write : .read
    }

    /// Calls `body` with as many bytes of `pieces` as fit into one TLS record. There must be at least one
    /// piece.
    static func withOneRecord<Failure: Error>(
        _ pieces: [UnsafeRawBufferPointer], _ body: (UnsafeRawBufferPointer) throws(Failure) -> Int
    ) throws(Failure) -> Int {
        guard pieces[0].count < TLSEngine.recordLimit else { return try body(pieces[0]) }
        var record: [UInt8] = []
        record.reserveCapacity(min(TLSEngine.recordLimit, pieces.reduce(0) { $0 + $1.count }))
        for piece in pieces where record.count < TLSEngine.recordLimit {
            record.append(contentsOf: piece.prefix(TLSEngine.recordLimit - record.count))
        }
        let result = record.withUnsafeBytes { bytes in Result { () throws(Failure) in try body(bytes) } }
        return try result.get()
    }

    // MARK: - Reading without consuming

    enum Peeked {
        case bytes(Int)
        case end
        case waits(for: RunLoop.Source.Interest)
    }

    /// Copies the bytes that have arrived without consuming them.
    func peek(into piece: inout [UInt8]) throws(TransportError) -> Peeked {
        guard let engine else {
            do throws(SocketError) {
                switch try socket.peek(into: &piece) {
                case .bytes(let found): return .bytes(found)
                case .wantsRead: return .waits(for: .read)
                case .end: return .end
                }
            } catch {
                throw .socket(error)
            }
        }
        let found = piece.withUnsafeMutableBytes { buffer in
            Result { () throws(TLSError) in try engine.peek(into: buffer) }
        }
        switch found {
        case .success(.bytes(let count)): return .bytes(count)
        case .success(.end), .success(.truncated): return .end
        case .success(.wantsRead): return .waits(for: .read)
        case .success(.wantsWrite): return .waits(for: .write)
        case .failure(let error): throw .tls(error)
        }
    }

    /// Consumes bytes that `peek` has returned.
    func discard(_ count: Int, using piece: inout [UInt8]) throws(TransportError) {
        guard let engine else {
            do throws(SocketError) {
                return try socket.discard(count, using: &piece)
            } catch {
                throw .socket(error)
            }
        }
        let result = piece.withUnsafeMutableBytes { buffer in
            Result { () throws(TLSError) in
                try engine.read(into: UnsafeMutableRawBufferPointer(rebasing: buffer.prefix(count)))
            }
        }
        if case .failure(let error) = result { throw .tls(error) }
    }
}

/// The reason why bytes could not be moved.
enum TransportError: Error {
    case socket(SocketError)
    case tls(TLSError)

    /// The error that a channel to `host` reports.
    func channelError(host: String, port: Int) -> ChannelError {
        switch self {
        case .socket(let error): .broken(host: host, port: port, error)
        case .tls(let error): .tls(error)
        }
    }
}
