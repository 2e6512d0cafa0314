internal import CRondoOpenSSL
internal import RondoCore

// Reading and writing plaintext.
extension TLSEngine {
    /// Whether a read would return something for which the socket does not become readable: bytes that were
    /// decrypted already, or an end that was met behind the last ones. The TLS connection below (with a
    /// proxy) may have decrypted only half a record of this one; a read then consumes that half and wants
    /// more, so the caller does not spin.
    package var hasPendingPlaintext: Bool {
        SSL_pending(ssl) > 0 || reading.hasUnreadOutcome || carrier?.hasPendingPlaintext ?? false
    }

    /// Whether bytes of an earlier write still wait for the socket; call `flush()` when it is writable.
    package var hasUnsentBytes: Bool { writing.unsent != nil }

    /// Reads records until the buffer is full, a record is shorter than the longest, or no more bytes are
    /// here.
    ///
    /// A short record is taken for the end of the peer's message, which saves the call that finds nothing; if
    /// more bytes follow after all, the socket is still readable.
    package func read(into buffer: UnsafeMutableRawBufferPointer) throws(TLSError) -> ReadResult {
        if let failure { throw failure }
        guard let start = buffer.baseAddress, buffer.count > 0 else { return .bytes(0) }
        OpenSSLErrors.clear()
        reading.hasUnreadOutcome = false
        reading.needsWrite = false
        var filled = 0
        while filled < buffer.count {
            var count = 0
            let result = SSL_read_ex(ssl, start + filled, buffer.count - filled, &count)
            if result == 1 {
                filled += count
                // The rest of a record that was read in part is always short, so its length says nothing.
                if count < Self.recordLimit && !reading.hasRestOfRecord { break }
                reading.hasRestOfRecord = false
                continue
            }
            let outcome = outcome(of: result)
            if case .failed(let reason) = outcome {
                let error = fail(reason)
                if filled == 0 { throw error }
            }
            if filled > 0 {
                reading.needsWrite = outcome == .wantsWrite
                reading.hasUnreadOutcome = outcome != .wantsRead && outcome != .wantsWrite
                break
            }
            switch outcome {
            case .wantsRead: return .wantsRead
            case .wantsWrite:
                reading.needsWrite = true
                return .wantsWrite
            case .end: return .end
            case .closed: return .truncated
            case .done, .failed, .waits: return .bytes(0)
            }
        }
        reading.hasRestOfRecord = filled == buffer.count && hasPendingPlaintext
        return .bytes(filled)
    }

    /// Copies the bytes that a read would return, at most one record, without consuming them.
    package func peek(into buffer: UnsafeMutableRawBufferPointer) throws(TLSError) -> ReadResult {
        if let failure { throw failure }
        OpenSSLErrors.clear()
        var count = 0
        let result = SSL_peek_ex(ssl, buffer.baseAddress, buffer.count, &count)
        switch outcome(of: result) {
        case .done: return .bytes(count)
        case .wantsRead: return .wantsRead
        case .wantsWrite: return .wantsWrite
        case .end: return .end
        case .closed: return .truncated
        case .failed(let reason): throw fail(reason)
        case .waits: return .wantsRead
        }
    }

    /// Encrypts bytes and sends as many as the socket takes; all bytes that OpenSSL was given count as
    /// written.
    ///
    /// `.wantsRead` and `.wantsWrite` mean that no byte was taken, because bytes of an earlier write still
    /// wait.
    package func write(_ bytes: UnsafeRawBufferPointer) throws(TLSError) -> WriteResult {
        switch try flush() {
        case .done: break
        case .wantsRead: return .wantsRead
        case .wantsWrite: return .wantsWrite
        }
        var written = 0
        while written < bytes.count {
            let piece = UnsafeRawBufferPointer(rebasing: bytes[written...].prefix(Self.recordLimit))
            let (outcome, count) = send(piece)
            switch outcome {
            case .done:
                written += count
            case .wantsRead, .wantsWrite:
                writing.needsRead = outcome == .wantsRead
                writing.unsent = Array(piece)
                return .bytes(written + piece.count)
            case .end, .closed, .failed, .waits:
                let error = failWriting(outcome)
                if written == 0 { throw error }
                return .bytes(written)
            }
        }
        return .bytes(written)
    }

    /// Sends the bytes that an earlier write has left, see `hasUnsentBytes`.
    package func flush() throws(TLSError) -> Progress {
        writing.needsRead = false
        if let error = failure ?? writing.failure { throw error }
        while let rest = writing.unsent {
            let (outcome, count) = rest.withUnsafeBytes { send($0) }
            switch outcome {
            case .done: writing.unsent = count < rest.count ? Array(rest[count...]) : nil
            case .wantsRead:
                writing.needsRead = true
                return .wantsRead
            case .wantsWrite: return .wantsWrite
            case .end, .closed, .failed, .waits: throw failWriting(outcome)
            }
        }
        return .done
    }

    private func failWriting(_ outcome: TLSOutcome) -> TLSError {
        writing.stop()
        var reason = TLSError.Reason.system(EPIPE)
        if case .failed(let found) = outcome { reason = found }
        guard case .system = reason else { return fail(reason) }
        let error = TLSError(reason, host: peerName, isServers: isServers)
        writing.failure = error
        return error
    }

    /// Sends bytes in one record: as many as fit into it, which is fewer than `recordLimit` if the peer has
    /// asked for shorter records (RFC 6066 §4), or, if the socket would block, none.
    private func send(_ piece: UnsafeRawBufferPointer) -> (TLSOutcome, count: Int) {
        OpenSSLErrors.clear()
        var count = 0
        let result = SSL_write_ex(ssl, piece.baseAddress, piece.count, &count)
        return result == 1 ? (.done, count) : (outcome(of: result), 0)
    }

    /// Looks whether an idle connection can be used again: it is open, and the peer has sent nothing but
    /// messages of TLS itself, such as session tickets, which this call reads and processes.
    package func checkQuiet() -> Bool {
        guard failure == nil else { return false }
        OpenSSLErrors.clear()
        var byte: UInt8 = 0
        var count = 0
        let result = SSL_peek_ex(ssl, &byte, 1, &count)
        guard result != 1 else { return false }
        let outcome = outcome(of: result)
        if case .failed(let reason) = outcome {
            failure = TLSError(reason, host: peerName, isServers: isServers)
        }
        return outcome == .wantsRead
    }
}
