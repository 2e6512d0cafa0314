internal import RondoCore

// Reading, writing and their ends, on a connection that is open.
extension SocketChannel {
    /// Reads the bytes that are there, at most as many as `buffer` takes.
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

    /// Hands bytes over, perhaps fewer than given.
    ///
    /// - Returns: How many were taken; 0 means that nothing can be taken now: set `wantsWrite`.
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

    /// Hands the bytes of several pieces over in one go, perhaps fewer than given.
    ///
    /// Over TLS the pieces that fit into one record are copied together, so that a head and a body do not
    /// become two.
    /// - Returns: How many were taken; 0 means that nothing can be taken now: set `wantsWrite`.
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

    /// Says that this side will send no more: FIN, or close_notify over TLS. What was written before goes
    /// first; the peer is still read.
    package func endWriting() {
        guard case .open(let transport) = phase else { return }
        guard let engine = transport.engine else { return transport.socket.shutdownWriting() }
        tlsWaits.endWriting(engine)
        updateInterest()
    }

    /// Plaintext that was decrypted already: a read gives it, however quiet the socket is.
    package var hasBufferedBytes: Bool {
        plainDescriptor < 0 && engine?.hasPendingPlaintext ?? false
    }

    /// Whether a read would find something, bytes or the end; a look that changes nothing. (That of
    /// `isAliveWhenIdle` makes OpenSSL read, and the socket falls silent.)
    package var hasUnreadBytes: Bool {
        hasBufferedBytes || phase.openTransport?.socket.isReadable() ?? false
    }

    /// Whether the peer has proved its identity: its certificate was checked in full and nothing was wrong with it, so that
    /// nothing had to be overlooked. False without TLS.
    package var isPeerVerified: Bool { plainDescriptor < 0 && engine?.isPeerVerified ?? false }

    /// What TLS has agreed upon; nil before, and without TLS.
    package var tlsInformation: TLSInformation? { engine?.information }

    /// Whether TLS has taken an earlier session up again.
    package var isTLSResumed: Bool { engine?.isResumed ?? false }

    /// This machine's end of the connection, while there is one.
    package var localAddress: SocketAddress? { transport?.socket.localAddress }

    /// Whether a write would be taken at least in part, or fail.
    var hasSpace: Bool { spaceDescriptor.map { SocketCalls.isWritable($0) } ?? false }

    /// On which to look whether there is space; nil: there is none, since what was taken before goes first.
    var spaceDescriptor: Int32? {
        if plainDescriptor >= 0 { return plainDescriptor }
        return phase.hasWork ? nil : phase.openTransport?.socket.descriptor
    }

    /// Whether it has to be served for something that its owner has asked for already: to be opened or
    /// secured, or to send what was taken.
    var isBusy: Bool {
        phase.hasWork || isOpen && tlsWaits.owesEnd
    }

    /// Of a connection that is not in use: whether it is as it should be, open and silent.
    package var isAliveWhenIdle: Bool {
        if plainDescriptor >= 0 { return SocketCalls.poll(plainDescriptor, for: POLLIN) == 0 }
        return phase.openTransport?.isQuiet ?? false
    }

    // MARK: - Readiness

    func moveBytes(_ ready: RunLoop.Source.Interest, _ engine: TLSEngine?) {
        // Without TLS there are no such waits to be looked at.
        let canRead = engine == nil ? ready.contains(.read) : tlsWaits.canRead(ready)
        var canWrite = engine == nil ? ready.contains(.write) : tlsWaits.canWrite(ready)
        if canWrite, let engine, tlsWaits.hasToFlush(engine) {
            canWrite = tlsWaits.flush(engine)
            updateInterest()
        }
        if canRead && wantsRead {
            // Nearly always there is nothing more to do.
            guard engine != nil || canWrite else {
                handler?(.readable)
                return
            }
            guard readable() else { return }
        }
        if canWrite && wantsWrite && isOpen { handler?(.writable) }
    }

    /// - Returns: False if the owner has let go of the channel: another one may have it by now, on another thread.
    @discardableResult
    func readable() -> Bool {
        // Another owner has another gate; and only on this thread could this one let go of the channel.
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
