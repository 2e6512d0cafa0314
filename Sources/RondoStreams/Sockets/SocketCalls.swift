// recv and send on a descriptor, shared by plain sockets and the BIO under TLS.
//
// MSG_NOSIGNAL: if the peer is gone, the call must return an error instead of raising SIGPIPE, which would
// end the program. errno is read on the line after the call, before anything that Swift might insert (a
// release, an allocation) can change it.
//
// RondoCore's `systemCall` is not used: "would block" is a regular result here, and throwing it with the
// call's name would cost more than the call.

internal import Glibc
internal import RondoCore

/// The system calls on a socket's descriptor, without allocations.
package enum SocketCalls {
    enum Outcome {
        /// The number of bytes moved; 0 from a receive is the peer's end.
        case bytes(Int)
        case wouldBlock
        /// The value of `errno`.
        case failed(Int32)
    }

    /// Makes calls on the descriptor return EAGAIN where they would wait.
    static func setNonBlocking(
        _ descriptor: Int32, for operation: SocketError.Operation
    ) throws(SocketError) {
        let flags = fcntl(descriptor, F_GETFL)
        guard flags >= 0, fcntl(descriptor, F_SETFL, flags | O_NONBLOCK) >= 0 else {
            throw SocketError(code: errno, operation: operation)
        }
    }

    static func receive(_ descriptor: Int32, _ start: UnsafeMutableRawPointer?, _ count: Int) -> Outcome {
        retrying { recv(descriptor, start, count, 0) }
    }

    static func peek(_ descriptor: Int32, _ start: UnsafeMutableRawPointer?, _ count: Int) -> Outcome {
        retrying { recv(descriptor, start, count, Int32(MSG_PEEK)) }
    }

    static func send(_ descriptor: Int32, _ start: UnsafeRawPointer?, _ count: Int) -> Outcome {
        retrying { Glibc.send(descriptor, start, count, Int32(MSG_NOSIGNAL)) }
    }

    static func send(_ descriptor: Int32, _ message: msghdr) -> Outcome {
        var message = message
        return retrying { sendmsg(descriptor, &message, Int32(MSG_NOSIGNAL)) }
    }

    static func retrying(_ call: () -> Int) -> Outcome {
        while true {
            let result = call()
            if result >= 0 { return .bytes(result) }
            let code = errno
            switch code {
            case EINTR: continue
            case EAGAIN: return .wouldBlock
            default: return .failed(code)
            }
        }
    }

    /// `POLLRDHUP`: the peer has ended the connection, or this side is shut down for reading. glibc's header
    /// defines it under `_GNU_SOURCE` only.
    static let readingHasEnded: Int32 = 0x2000

    /// The events that `poll(2)` finds on a descriptor now, of `events`; errors and hang-ups are always
    /// included.
    static func poll(_ descriptor: Int32, for events: Int32) -> Int32 {
        var entry = pollfd(fd: descriptor, events: Int16(truncatingIfNeeded: events), revents: 0)
        while Glibc.poll(&entry, 1, 0) < 0 {
            // A descriptor that cannot be polled is unusable, and the callers ask for just that.
            guard errno == EINTR else { return POLLNVAL }
        }
        return Int32(entry.revents)
    }

    /// Whether a write would accept bytes at once, or fail.
    static func isWritable(_ descriptor: Int32) -> Bool {
        descriptor >= 0 && poll(descriptor, for: POLLOUT) != 0
    }

    /// Polls many descriptors with one call, without waiting; negative ones are skipped.
    static func poll(_ entries: inout [pollfd]) {
        while Glibc.poll(&entries, nfds_t(entries.count), 0) < 0 {
            if errno == EINTR { continue }
            // As for a single descriptor that cannot be polled.
            for index in entries.indices where entries[index].fd >= 0 {
                entries[index].revents = Int16(POLLNVAL)
            }
            return
        }
    }

    /// The descriptors on which `poll(2)` finds bytes, an end or an error now, with one call. Has no effect
    /// on them. Any thread.
    package static func readable(among descriptors: [Int32]) -> Set<Int32> {
        var entries = descriptors.map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
        // Fails for lack of memory: the result is then unknown, and the caller may try again.
        let count = try? systemCall("poll") { Glibc.poll(&entries, nfds_t(entries.count), 0) }
        guard let count, count > 0 else { return [] }
        return Set(entries.lazy.filter { $0.revents != 0 }.map(\.fd))
    }
}
