internal import Glibc
internal import RondoCore

// Calls for threads that wait for a socket, or a pipe, themselves, and for datagrams.
extension SocketCalls {
    /// Blocks the thread until `poll(2)` finds `events`, an error or a hang-up, or until `end`.
    ///
    /// - Parameter other: A descriptor that ends the wait, too, when it has bytes; -1: none.
    /// - Returns: Whether something was found. An instant in the past does not block.
    static func wait(
        _ descriptor: Int32, for events: Int32, until end: LoopInstant, orBytesOf other: Int32 = -1
    ) -> Bool {
        var entries = (
            pollfd(fd: descriptor, events: Int16(truncatingIfNeeded: events), revents: 0),
            pollfd(fd: other, events: Int16(POLLIN), revents: 0)
        )
        while true {
            let rest = end.seconds(since: LoopClock.systemNow)
            // Rounded up by a millisecond, so as not to be too early; limited, so that the number cannot
            // overflow.
            let milliseconds = rest <= 0 ? 0 : Int32(min(rest * 1_000 + 1, 1_000_000))
            let found = withUnsafeMutableBytes(of: &entries) {
                Glibc.poll($0.assumingMemoryBound(to: pollfd.self).baseAddress, 2, milliseconds)
            }
            if found > 0 { return true }
            if found < 0, errno != EINTR { return true }
            if rest <= 0 { return false }
        }
    }

    /// Blocks the thread for a few milliseconds before another attempt to reach a Unix socket whose queue, of
    /// connections or of datagrams, is full: `poll(2)` does not tell when there is room.
    ///
    /// - Returns: False, without a pause, if `end` has passed.
    static func pause(until end: LoopInstant) -> Bool {
        guard end > LoopClock.systemNow else { return false }
        _ = Glibc.poll(nil, 0, pauseMilliseconds)
        return true
    }

    private static let pauseMilliseconds: Int32 = 5

    /// Sends one datagram; without an address, to the peer that the socket is connected to.
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

    /// Receives one datagram, or the bytes of a connection, together with the bytes of the sender's address,
    /// which is empty for a connection. Never waits.
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
