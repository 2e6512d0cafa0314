internal import RondoCore

// Reading, writing and ending the streams of an open connection.
extension SocketChannel {
    /// Reads the bytes that have arrived, at most as many as `buffer` holds.
    ///
    /// - Parameter peeks: Copies the bytes without consuming them, of a channel that leaves them.
    package func read(
        into buffer: UnsafeMutableRawBufferPointer, peeks: Bool = false
    ) throws(ChannelError) -> ReadResult {
        if plainDescriptor >= 0 {
            do throws(SocketError) {
                return ReadResult(try Socket.read(plainDescriptor, into: buffer, peeks: peeks))
            } catch {
                throw broken(error)
            }
        }
        guard let engine, !peeks else { throw notOpen }
        do throws(TLSError) {
            let neededWrite = engine.readNeedsWrite
            let result = try engine.read(into: buffer)
            if engine.readNeedsWrite != neededWrite { updateInterest() }
            return switch result {
            case .bytes(let count): .bytes(count)
            case .wantsRead, .wantsWrite: .wouldBlock
            case .end: .end
            case .truncated: .truncated
            }
        } catch {
            // Nothing more is written, for which the descriptor may be watched.
            updateInterest()
            throw .tls(error)
        }
    }

    /// Whether bytes are to stay in the kernel until the client reads them: it keeps the descriptor when the
    /// channel is closed. Over TLS they could not.
    var leavesBytes: Bool { !closesDescriptor && plainDescriptor >= 0 }

    /// Writes bytes, perhaps fewer than given.
    ///
    /// - Returns: How many bytes were accepted; 0 means that the connection accepts none now: set
    ///   `wantsWrite`.
    package func write(_ bytes: UnsafeRawBufferPointer) throws(ChannelError) -> Int {
        if plainDescriptor >= 0 {
            do throws(SocketError) {
                return try Socket.write(bytes, to: plainDescriptor).count
            } catch {
                throw broken(error)
            }
        }
        guard let engine else { throw notOpen }
        do throws(TLSError) {
            let before = interest(of: engine)
            let result = try engine.write(bytes)
            if interest(of: engine) != before { updateInterest() }
            return if case .bytes(let count) = result { count } else { 0 }
        } catch {
            // As in `read`.
            updateInterest()
            throw .tls(error)
        }
    }

    /// Writes the bytes of several pieces with one call, perhaps fewer than given.
    ///
    /// Over TLS the pieces that fit into one record are copied together, so that a head and a body do not
    /// become two records.
    /// - Returns: How many bytes were accepted; 0 means that the connection accepts none now: set
    ///   `wantsWrite`.
    package func write(gathering pieces: [UnsafeRawBufferPointer]) throws(ChannelError) -> Int {
        guard let first = pieces.first else { return 0 }
        guard pieces.count > 1 else { return try write(first) }
        guard case .open(let transport) = phase, transport.engine == nil else {
            return try ChannelTransport.withOneRecord(pieces) { bytes throws(ChannelError) in try write(bytes)
            }
        }
        do throws(SocketError) {
            return try transport.socket.write(gathering: pieces).count
        } catch {
            throw broken(error)
        }
    }

    /// Ends the stream of this side: FIN, or close_notify over TLS. Bytes written before go first; reading
    /// still works.
    package func endWriting() {
        guard case .open(let transport) = phase else { return }
        guard let engine = transport.engine else { return transport.socket.shutdownWriting() }
        engine.endWriting()
        updateInterest()
    }

    /// True if decrypted bytes wait: a read returns them even if the socket is not readable.
    package var hasBufferedBytes: Bool { plainDescriptor < 0 && engine?.hasPendingPlaintext ?? false }

    /// Whether a read would find bytes or the end. Has no effect, unlike `checkIdle()`, which makes
    /// OpenSSL read, after which the socket is no longer readable.
    package var hasUnreadBytes: Bool { hasBufferedBytes || phase.openTransport?.socket.isReadable() ?? false }

    /// Whether the peer has proved its identity: its certificate was checked in full and had no problem, so
    /// nothing was overlooked. False without TLS.
    package var isPeerVerified: Bool { plainDescriptor < 0 && engine?.isPeerVerified ?? false }

    /// The results of the TLS handshake; nil before it is done, and without TLS.
    package var tlsInformation: TLSInformation? { engine?.information }

    /// Whether TLS has resumed an earlier session.
    package var isTLSResumed: Bool { engine?.isResumed ?? false }

    /// The local address of the connection, while there is one.
    package var localAddress: SocketAddress? { transport?.socket.localAddress }

    /// Whether a write would be accepted at least in part, or fail.
    var hasSpace: Bool { spaceDescriptor.map { SocketCalls.isWritable($0) } ?? false }

    /// The descriptor to check for space; nil: there is no space, because bytes accepted before go first.
    var spaceDescriptor: Int32? {
        if plainDescriptor >= 0 { return plainDescriptor }
        return phase.hasWork ? nil : phase.openTransport?.socket.descriptor
    }

    /// Whether the channel must be served for something that its owner has already requested: opening,
    /// securing, or sending accepted bytes.
    var isBusy: Bool { phase.hasWork || engine?.owesEnd ?? false }

    /// Looks at an idle connection. Over TLS this reads what has come, and processes TLS's own messages.
    ///
    /// - Returns: Whether it is open, and neither bytes nor an end have arrived.
    package func checkIdle() -> Bool {
        if plainDescriptor >= 0 { return SocketCalls.poll(plainDescriptor, for: POLLIN) == 0 }
        return phase.openTransport?.checkQuiet() ?? false
    }

    // MARK: - Readiness

    /// Tells the owner for what the socket is ready. What TLS has still to send goes first.
    func reportReadiness(_ ready: RunLoop.Source.Interest, _ engine: TLSEngine?) {
        let canRead = engine?.canRead(ready) ?? ready.contains(.read)
        var canWrite = engine?.canWrite(ready) ?? ready.contains(.write)
        if canWrite, let engine, engine.hasToSend {
            canWrite = engine.sendRest()
            updateInterest()
        }
        if canRead && wantsRead {
            // This is the usual case, in which nothing else has to be done.
            guard engine != nil || canWrite else {
                handler?(.readable)
                return
            }
            guard reportReadable() else { return }
        }
        if canWrite && wantsWrite && isOpen { handler?(.writable) }
    }

    /// - Returns: False if the owner has released the channel: another owner may use it by now, on another
    ///   thread.
    @discardableResult
    func reportReadable() -> Bool {
        // Only this thread could have released the channel, so the comparison is safe.
        let use = registration.use
        handler?(.readable)
        guard registration.use == use else { return false }
        askForPassIfPlaintextIsPending()
        return true
    }

    func updateInterest() {
        guard let source = phase.openSource else { return }
        registration.setInterest(interest(of: plainDescriptor < 0 ? engine : nil), of: source)
    }

    private func interest(of engine: TLSEngine?) -> RunLoop.Source.Interest {
        var wanted: RunLoop.Source.Interest = []
        if wantsRead { wanted.insert(.read) }
        if wantsWrite { wanted.insert(.write) }
        return engine?.interest(for: wanted) ?? wanted
    }

    private func broken(_ error: SocketError) -> ChannelError {
        .broken(host: configuration.host, port: configuration.port, error)
    }

    private var notOpen: ChannelError { broken(SocketError(code: ENOTCONN, operation: .read)) }
}
