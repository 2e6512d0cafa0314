// Name resolution: glibc's getaddrinfo on a few threads of our own.
//
// getaddrinfo blocks for as long as a name server takes, and no other call honours nsswitch, /etc/hosts, mDNS
// and resolved like all other programs on the machine. The threads start when there is something to look up,
// at most `threadLimit` of them, and end after `idleSeconds` without work; `LookUpQueue` tells how many there
// are when. They are not Dispatch's, whose pool is limited by the number of cores and belongs to the program.
//
// Threads: any may make and cancel requests. A completion is called on one of the resolver's threads, or
// inside `resolve` if nothing is looked up, and must do no more than pass the outcome on. Shared state is in
// two Mutexes: the resolver's (a `LookUpQueue`) and each request's (its completion, taken once). A completion
// is always called with neither held.

internal import Glibc
package import RondoCore
internal import RondoMutex

/// Looks names up on threads of its own, a few at the same time.
package final class Resolver: Sendable {
    package static let shared = Resolver()

    /// The most look-ups made at the same time, without those that take longer than `patienceSeconds`.
    /// Further ones wait.
    package static let lookUpLimit = 4
    /// The most threads, and so the most look-ups made at the same time with those that take longer.
    package static let threadLimit = 32
    /// How long a look-up keeps others from being made, in seconds.
    package static let patienceSeconds = 1
    /// The most requests without an answer; those for one host and port are answered together. Further
    /// requests fail, so that the queue cannot grow without limit.
    package static let waitingLimit = 4_096
    /// How long an idle thread lives, in seconds.
    package static let idleSeconds = 10

    package typealias Outcome = Result<[SocketAddress], ResolveError>
    package typealias Lookup = @Sendable (_ host: String, _ port: UInt16) -> Outcome

    private let queue: Mutex<LookUpQueue>
    private let work = DispatchSemaphore(value: 0)
    /// The thread that stands by waits here.
    private let standby = DispatchSemaphore(value: 0)
    private let lookup: Lookup
    private let idleTime: DispatchTimeInterval

    /// - Parameter lookup: The function that the threads call; tests pass their own.
    package init(
        idleTime: DispatchTimeInterval = .seconds(Resolver.idleSeconds),
        patience: DispatchTimeInterval = .seconds(Resolver.patienceSeconds),
        lookup: @escaping Lookup = Resolver.addresses(host:port:)
    ) {
        queue = Mutex(LookUpQueue(patience: patience))
        self.idleTime = idleTime
        self.lookup = lookup
    }

    /// Looks `host` up, and calls `completion` on one of the resolver's threads, before or after this call
    /// returns.
    ///
    /// If nothing can be looked up, because the system has no thread for it or too many requests wait,
    /// `completion` is called before this returns and on the calling thread: there is no other one. With
    /// Dispatch the caller would have to wait for a thread.
    ///
    /// Call `numeric(host:port:)` first: an address needs no thread.
    @discardableResult
    package func resolve(
        host: String, port: UInt16, completion: @escaping @Sendable (Outcome) -> Void
    ) -> Request {
        let request = Request(host: host, port: port, completion: completion)
        if let call = queue.withLock({ $0.add(request, now: .now()) }) {
            answer(call)
        } else {
            request.finish(.failure(.tooManyLookups(host: host)))
        }
        return request
    }

    /// The number of threads; for tests.
    package var threadCount: Int { queue.withLock { $0.threads } }
}

// MARK: - Request

extension Resolver {
    /// The host without the brackets that an IPv6 address has in a URL.
    static func withoutBrackets(_ host: String) -> String {
        host.hasPrefix("[") && host.hasSuffix("]") ? String(host.dropFirst().dropLast()) : host
    }

    /// A request for a host's addresses. Requests for one host and port share a look-up.
    package final class Request: Sendable {
        package let host: String
        package let port: UInt16
        private let completion: Mutex<(@Sendable (Outcome) -> Void)?>

        init(host: String, port: UInt16, completion: @escaping @Sendable (Outcome) -> Void) {
            self.host = host
            self.port = port
            self.completion = Mutex(completion)
        }

        /// Cancels the request: a completion that has not begun is never called. (It may be running on the
        /// resolver's thread just now.)
        package func cancel() {
            // Released after the lock, because it may hold the last reference to anything.
            let completion = takeCompletion()
            _ = completion
        }

        var isOver: Bool { completion.withLock { $0 == nil } }

        fileprivate func finish(_ outcome: Outcome) { takeCompletion()?(outcome) }

        private func takeCompletion() -> (@Sendable (Outcome) -> Void)? {
            completion.withLock { completion in
                defer { completion = nil }
                return completion
            }
        }
    }
}

// MARK: - Threads

extension Resolver {
    private func answer(_ call: LookUpQueue.Call) {
        switch call {
        case .enough: break
        case .wake: work.signal()
        case .start: startThread()
        }
    }

    private func startThread() {
        do throws(SystemError) {
            try SystemThread.start(name: "rondo.resolver") { [self] in serve() }
        } catch {
            failForLackOfThreads(error.code)
        }
    }

    /// Handles a failure to start a thread. If other threads run, they serve the waiting requests; otherwise
    /// all waiting requests fail, because no thread would serve them.
    private func failForLackOfThreads(_ code: Int32) {
        let abandoned = queue.withLock { $0.noteNotStarted() }
        for request in abandoned {
            request.finish(.failure(ResolveError(host: request.host, code: EAI_SYSTEM, systemCode: code)))
        }
    }

    /// Runs on a thread of the resolver until it ends.
    private func serve() {
        while true {
            switch queue.withLock({ $0.next(now: .now()) }) {
            case .lookUp(let place, let call):
                answer(call)
                let outcome = lookup(place.host, place.port)
                let (requests, needsNoStandby) = queue.withLock { ($0.end(place), $0.needsNoStandby) }
                if needsNoStandby { standby.signal() }
                for request in requests { request.finish(outcome) }
            case .standBy(let time):
                // A signal more than is needed makes the thread ask again.
                _ = standby.wait(timeout: time)
                queue.withLock { $0.endStandby() }
            case .idle:
                guard work.wait(timeout: .now() + idleTime) == .timedOut else { continue }
                if queue.withLock({ $0.endIdle() }) { return }
                work.wait()
            }
        }
    }
}

// MARK: - Looking up

extension Resolver {
    /// The address that `host` spells as numbers, in every form that C's functions accept (`127.0.0.1`,
    /// `::1`, `fe80::1%eth0`, `127.1`, `0x7f000001`); nil if it is a name. The caller must remove brackets.
    package static func numeric(host: String, port: UInt16) -> SocketAddress? {
        // Nearly every host is a name, which has no colon and begins with no digit. Calling C's functions for
        // each name took 5 % of the instructions of a GET with a connection of its own (W15).
        let beginsWithDigit = host.utf8.first.map { 0x30...0x39 ~= $0 } ?? false
        guard beginsWithDigit || host.utf8.contains(UInt8(ascii: ":")) else { return nil }
        if let address = SocketAddress(literal: host, port: port) { return address }
        // The old forms of IPv4 contain no other characters.
        let letters = "0123456789abcdefABCDEFxX."
        guard beginsWithDigit, host.allSatisfy(letters.contains) else { return nil }
        // Text that is no number is a name, not an error.
        return try? lookUp(host, port, flags: AI_NUMERICHOST).get().first
    }

    /// The addresses of this machine, if `host` is `localhost` or a name below it, which always mean this
    /// machine (RFC 6761, section 6.3). As in curl and browsers, neither a file nor a name server is asked,
    /// because their answers could lead elsewhere. Nil for all other names.
    ///
    /// IPv4 comes first, because most servers that listen on only one of the two use IPv4.
    package static func loopback(host: String, port: UInt16) -> [SocketAddress]? {
        var name = host.lowercased()
        if name.last == "." { name.removeLast() }
        guard name == "localhost" || name.hasSuffix(".localhost"), name.first != "." else { return nil }
        return [.loopback(port: port), .ipv6(high: 0, low: 1, port: port, scope: 0)]
    }

    /// The addresses of `host` by `getaddrinfo`, in the order in which they should be tried (RFC 6724).
    /// Blocks.
    package static func addresses(host: String, port: UInt16) -> Outcome {
        // AI_ADDRCONFIG is not set: it does not count loopback addresses, so a machine with IPv4 alone would
        // not find ::1. Unusable addresses are sorted last anyway, and the connector does not wait for them.
        lookUp(host, port, flags: 0)
    }

    private static func lookUp(_ host: String, _ port: UInt16, flags: Int32) -> Outcome {
        // getaddrinfo would stop reading at a NUL, and resolves the empty name to this machine.
        guard !host.isEmpty, !host.utf8.contains(0) else {
            return .failure(ResolveError(host: host, code: EAI_NONAME))
        }
        var hints = addrinfo()
        hints.ai_family = AF_UNSPEC
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        hints.ai_flags = flags
        var list: UnsafeMutablePointer<addrinfo>?
        errno = 0
        var code = getaddrinfo(host, nil, &hints, &list)
        // It reads files and asks name servers, for which it needs descriptors.
        if code != 0, DescriptorShortage.isReason(errno) {
            DescriptorShortage.giveBack()
            errno = 0
            code = getaddrinfo(host, nil, &hints, &list)
        }
        let systemCode = errno
        guard code == 0 else {
            return .failure(ResolveError(host: host, code: code, systemCode: systemCode))
        }
        defer { freeaddrinfo(list) }
        var addresses: [SocketAddress] = []
        for entry in sequence(first: list, next: { $0?.pointee.ai_next }).prefix(while: { $0 != nil }) {
            guard let entry = entry?.pointee, let start = entry.ai_addr else { continue }
            let bytes = UnsafeRawBufferPointer(start: start, count: Int(entry.ai_addrlen))
            // /etc/hosts may list an address twice.
            if let address = SocketAddress(sockaddr: bytes)?.withPort(port), !addresses.contains(address) {
                addresses.append(address)
            }
        }
        return addresses.isEmpty
            ? .failure(ResolveError(host: host, code: EAI_NONAME)) : .success(addresses)
    }
}
