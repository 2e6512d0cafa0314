internal import RondoCore

// Reading, writing and ending the streams of an open connection.
extension SocketChannel {
    /// Reads the bytes that have arrived, at most as many as `buffer` holds.
    package func read(into buffer: UnsafeMutableRawBufferPointer) throws(ChannelError) -> ReadResult {
        if plainDescriptor >= 0 {
            do throws(SocketError) {
                switch try Socket.read(plainDescriptor, into: buffer) {
                case .bytes(let count): return .bytes(count)
                case .wantsRead: return .wouldBlock
                case .end: return .end
                }
            } catch {
                throw broken(error)
            }
        }
        guard let engine else { throw notOpen }
        do throws(TLSError) {
            let neededWrite = tlsWaits.readNeedsWrite
            let result = try tlsWaits.read(into: buffer, by: engine)
            if tlsWaits.readNeedsWrite != neededWrite { updateInterest() }
            return result
        } catch {
            throw .tls(error)
        }
    }

    /// Writes bytes, perhaps fewer than given.
    ///
    /// - Returns: How many bytes were accepted; 0 means that the connection accepts none now: set
    ///   `wantsWrite`.
    package func write(_ bytes: UnsafeRawBufferPointer) throws(ChannelError) -> Int {
        if plainDescriptor >= 0 {
            do throws(SocketError) {
                switch try Socket.write(bytes, to: plainDescriptor) {
                case .bytes(let count): return count
                case .wantsWrite: return 0
                }
            } catch {
                throw broken(error)
            }
        }
        guard let engine else { throw notOpen }
        do throws(TLSError) {
            let before = interest(of: engine)
            let count = try tlsWaits.write(bytes, by: engine)
            if interest(of: engine) != before { updateInterest() }
            return count
        } catch {
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
            switch try transport.socket.write(gathering: pieces) {
            case .bytes(let count): return count
            case .wantsWrite: return 0
            }
        } catch {
            throw broken(error)
        }
    }

    /// Ends the stream of this side: FIN, or close_notify over TLS. Bytes written before go first; reading
    /// still works.
    package func endWriting() {
        guard case .open(let transport) = phase else { return }
        guard let engine = transport.engine else { return transport.socket.shutdownWriting() }
        tlsWaits.endWriting(engine)
        updateInterest()
    }

    /// True if decrypted bytes wait: a read returns them even if the socket is not readable.
    package var hasBufferedBytes: Bool {
        plainDescriptor < 0 && engine?.hasPendingPlaintext ?? false
    }

    /// Whether a read would find bytes or the end. Has no effect, unlike `checkIdle()`, which makes
    /// OpenSSL read, after which the socket is no longer readable.
    package var hasUnreadBytes: Bool {
        hasBufferedBytes || phase.openTransport?.socket.isReadable() ?? false
    }

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
    var isBusy: Bool {
        phase.hasWork || isOpen && tlsWaits.owesEnd
    }

    /// Looks at an idle connection. Over TLS this reads what has come, and processes TLS's own messages.
    ///
    /// - Returns: Whether it is open, and neither bytes nor an end have arrived.
    package func checkIdle() -> Bool {
        if plainDescriptor >= 0 { return SocketCalls.poll(plainDescriptor, for: POLLIN) == 0 }
        return phase.openTransport?.checkQuiet() ?? false
    }

    // MARK: - Readiness

    func moveBytes(_ ready: RunLoop.Source.Interest, _ engine: TLSEngine?) {
        // Without TLS there are no waits to be considered.
        let canRead = engine == nil ? ready.contains(.read) : tlsWaits.canRead(ready)
        var canWrite = engine == nil ? ready.contains(.write) : tlsWaits.canWrite(ready)
        if canWrite, let engine, tlsWaits.hasToFlush(engine) {
            canWrite = tlsWaits.flush(engine)
            updateInterest()
        }
        if canRead && wantsRead {
            // This is the usual case, in which nothing else has to be done.
            guard engine != nil || canWrite else {
                handler?(.readable)
                return
            }
            guard readable() else { return }
        }
        if canWrite && wantsWrite && isOpen { handler?(.writable) }
    }

    /// - Returns: False if the owner has released the channel: another owner may use it by now, on another
    ///   thread.
    @discardableResult
    func readable() -> Bool {
        // A new owner has another gate. Only this thread could have released the channel, so the comparison
        // is safe.
        let gate = gate
        handler?(.readable)
        guard self.gate === gate else { return false }
        signalIfPlaintextIsPending()
        return true
    }

    func updateInterest() {
        guard let source = phase.openSource else { return }
        interest.set(interest(of: plainDescriptor < 0 ? engine : nil), of: source)
    }

    private func interest(of engine: TLSEngine?) -> RunLoop.Source.Interest {
        tlsWaits.interest(of: engine, wantsRead: wantsRead, wantsWrite: wantsWrite)
    }

    private func broken(_ error: SocketError) -> ChannelError {
        .broken(host: configuration.host, port: configuration.port, error)
    }

    private var notOpen: ChannelError { broken(SocketError(code: ENOTCONN, operation: .read)) }
}
