internal import RondoCore

// Reading, writing and their ends, on a connection that is open.
extension SocketChannel {
    /// Reads what is there, at most as much as `buffer` takes.
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
        guard case .open(_, let engine?) = phase else { throw notOpen }
        do throws(TLSError) {
            let result = try engine.read(into: buffer)
            setReadWaitsForWrite(result == .wantsWrite)
            switch result {
            case .bytes(let count): return .bytes(count)
            case .wantsRead, .wantsWrite: return .wouldBlock
            case .end: return .end
            case .truncated: return .truncated
            }
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
        guard case .open(_, let engine?) = phase else { throw notOpen }
        do throws(TLSError) {
            let result = try engine.write(bytes)
            writeWaitsForRead = result == .wantsRead
            updateInterest()
            if case .bytes(let count) = result { return count }
            return 0
        } catch {
            throw .tls(error)
        }
    }

    /// Says that this side will send no more: FIN, or close_notify over TLS. What was written before goes
    /// first; the peer is still read.
    package func endWriting() {
        guard case .open(let connected, let engine) = phase else { return }
        guard let engine else { return connected.socket.shutdownWriting() }
        owesEnd = engine.shutdown() != .done
        updateInterest()
    }

    /// Plaintext that was decrypted already: a read gives it, however quiet the socket is.
    package var hasBufferedBytes: Bool {
        if case .open(_, let engine?) = phase { engine.hasPendingPlaintext } else { false }
    }

    /// Whether a read would find something, bytes or the end; a look that changes nothing. (That of
    /// `isAliveWhenIdle` makes OpenSSL read, and the socket falls silent.)
    package var hasUnreadBytes: Bool {
        guard case .open(let connected, _) = phase else { return false }
        return hasBufferedBytes || connected.socket.isReadable()
    }

    /// Whether the peer is known to be who it says: its certificate was checked in full, nothing was wrong with it,
    /// and so nobody has had to let it through. False without TLS.
    package var isPeerVerified: Bool {
        guard case .open(_, let engine?) = phase else { return false }
        return engine.isPeerVerified
    }

    /// Whether a write would be taken at least in part, or fail.
    var hasSpace: Bool { spaceDescriptor.map { SocketCalls.isWritable($0) } ?? false }

    /// On which to look whether there is space; nil: there is none, since what was taken before goes first.
    var spaceDescriptor: Int32? {
        if plainDescriptor >= 0 { return plainDescriptor }
        guard case .open(let connected, let engine) = phase, !(engine?.hasUnsentBytes ?? false) else {
            return nil
        }
        return connected.socket.descriptor
    }

    /// Whether it has to be served for something that its owner has asked for already: to be opened or
    /// secured, or to send what was taken.
    var isBusy: Bool {
        switch phase {
        case .created, .closed: false
        case .starting, .resolving, .connecting, .standing, .negotiating, .upgrading, .securing: true
        case .open(_, let engine): owesEnd || engine?.hasUnsentBytes ?? false
        }
    }

    /// Of a connection that nobody uses: whether it is as it should be, open and silent.
    package var isAliveWhenIdle: Bool {
        guard case .open(let connected, let engine) = phase else { return false }
        return engine?.isQuiet() ?? connected.socket.isQuiet()
    }

    /// Which of these descriptors of channels that nobody uses have something to read: their channels may have
    /// died (`isAliveWhenIdle`). One look at all of them, which changes nothing; any thread.
    package static func stirring(among descriptors: [Int32]) -> Set<Int32> {
        SocketCalls.readable(among: descriptors)
    }

    // MARK: - Readiness

    func descriptorIsReady(_ ready: RunLoop.Source.Interest) {
        if plainDescriptor >= 0 { return move(ready, nil) }
        switch phase {
        case .negotiating(let connected, let negotiating):
            negotiate(ready, connected, negotiating)
        case .securing(let connected, let engine):
            handshake(connected, engine)
        case .open(_, let engine):
            move(ready, engine)
        case .created, .starting, .resolving, .connecting, .standing, .upgrading, .closed:
            break
        }
    }

    private func move(_ ready: RunLoop.Source.Interest, _ engine: TLSEngine?) {
        let canRead = ready.contains(.read) || (readWaitsForWrite && ready.contains(.write))
        var canWrite = ready.contains(.write) || (writeWaitsForRead && ready.contains(.read))
        if canWrite, let engine, engine.hasUnsentBytes || owesEnd {
            do throws(TLSError) {
                canWrite = try engine.flush() == .done
                if canWrite, owesEnd { owesEnd = engine.shutdown() != .done }
            } catch {
                // Thrown again by the next write; what the peer has said is still read until then.
                canWrite = true
                owesEnd = false
            }
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

    func signalIfPlaintextIsPending() {
        if wantsRead && hasBufferedBytes { turns?.signalAndWakeUp() }
    }

    private func setReadWaitsForWrite(_ waits: Bool) {
        guard waits != readWaitsForWrite else { return }
        readWaitsForWrite = waits
        updateInterest()
    }

    func updateInterest() {
        guard case .open(let connected, let engine) = phase else { return }
        var wanted: RunLoop.Source.Interest = []
        if wantsRead || writeWaitsForRead { wanted.insert(.read) }
        if wantsWrite || owesEnd || engine?.hasUnsentBytes ?? false || (wantsRead && readWaitsForWrite) {
            wanted.insert(.write)
        }
        interest.set(wanted, of: connected.source)
    }

    private func broken(_ error: SocketError) -> ChannelError {
        .broken(host: configuration.host, port: configuration.port, error)
    }

    private var notOpen: ChannelError { broken(SocketError(code: ENOTCONN, operation: .read)) }
}
