internal import RondoCore

extension SocketChannel {
    /// Hands the bytes of several pieces over in one go, perhaps fewer than given.
    ///
    /// Over TLS the pieces that fit into one record are copied together, so that a head and a body do not
    /// become two.
    /// - Returns: How many were taken; 0 means that nothing can be taken now: set `wantsWrite`.
    package func write(gathering pieces: [UnsafeRawBufferPointer]) throws(ChannelError) -> Int {
        guard let first = pieces.first else { return 0 }
        guard pieces.count > 1 else { return try write(first) }
        guard case .open(let connected, nil) = phase else { return try writeOneRecord(first, pieces) }
        do throws(SocketError) {
            switch try connected.socket.write(gathering: pieces) {
            case .bytes(let count): return count
            case .wantsWrite: return 0
            }
        } catch {
            throw .broken(host: configuration.host, port: configuration.port, error)
        }
    }

    private func writeOneRecord(
        _ first: UnsafeRawBufferPointer, _ pieces: [UnsafeRawBufferPointer]
    ) throws(ChannelError) -> Int {
        guard first.count < TLSEngine.recordLimit else { return try write(first) }
        var record: [UInt8] = []
        record.reserveCapacity(min(TLSEngine.recordLimit, pieces.reduce(0) { $0 + $1.count }))
        for piece in pieces where record.count < TLSEngine.recordLimit {
            record.append(contentsOf: piece.prefix(TLSEngine.recordLimit - record.count))
        }
        let result = record.withUnsafeBytes { bytes in
            Result { () throws(ChannelError) in try write(bytes) }
        }
        return try result.get()
    }
}
