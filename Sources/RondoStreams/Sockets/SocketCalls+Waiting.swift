internal import Glibc
internal import RondoCore

// Calls for threads that wait for a socket themselves, and for datagrams: `SocketPort` and `CFSocket` make them.
extension SocketCalls {
    /// Blocks the thread until `poll(2)` finds `events`, an error or a hang-up, or until `end`.
    ///
    /// - Returns: Whether it has found something. An instant that has passed does not block.
    static func wait(_ descriptor: Int32, for events: Int32, until end: LoopInstant) -> Bool {
        while true {
            let rest = end.seconds(since: LoopClock.machineNow)
            // A millisecond too late rather than one too early; and not so long that the number overflows.
            let milliseconds = rest <= 0 ? 0 : Int32(min(rest * 1_000 + 1, 1_000_000))
            var entry = pollfd(fd: descriptor, events: Int16(truncatingIfNeeded: events), revents: 0)
            let found = Glibc.poll(&entry, 1, milliseconds)
            if found > 0 { return true }
            if found < 0, errno != EINTR { return true }
            if rest <= 0 { return false }
        }
    }

    /// One datagram; without an address, to where the socket is connected.
    static func send(_ descriptor: Int32, _ bytes: Data, to address: SocketAddress?) -> Outcome {
        bytes.withUnsafeBytes { buffer in
            guard let address else { return send(descriptor, buffer.baseAddress, buffer.count) }
            return address.withSockaddr { sockaddr in
                retrying {
                    sendto(
                        descriptor, buffer.baseAddress, buffer.count, Int32(MSG_NOSIGNAL),
                        sockaddr.assumingMemoryBound(to: Glibc.sockaddr.self).baseAddress,
                        socklen_t(sockaddr.count))
                }
            } ?? .failed(ENAMETOOLONG)
        }
    }

    /// One datagram, or the bytes that a connection has, and those of its sender's address, which a connection does not
    /// have. It never waits.
    static func receive(
        _ descriptor: Int32, into buffer: UnsafeMutableRawBufferPointer
    ) -> (outcome: Outcome, address: Data) {
        var storage = sockaddr_storage()
        var size = socklen_t(MemoryLayout<sockaddr_storage>.size)
        return withUnsafeMutableBytes(of: &storage) { bytes in
            let outcome = retrying {
                recvfrom(
                    descriptor, buffer.baseAddress, buffer.count, Int32(MSG_DONTWAIT),
                    bytes.assumingMemoryBound(to: sockaddr.self).baseAddress, &size)
            }
            guard case .bytes = outcome else { return (outcome, Data()) }
            return (outcome, Data(bytes.prefix(min(Int(size), bytes.count))))
        }
    }
}
