// Name resolution: glibc's getaddrinfo on a few threads of our own.
//
// getaddrinfo blocks for as long as a name server takes, and there is no other call that honours nsswitch,
// /etc/hosts, mDNS and resolved as every other program on the machine does. Its threads start when there is
// something to look up, at most `threadLimit` of them, and end when nothing came for `idleSeconds`. They are
// not Dispatch's, whose pool is as small as the machine and belongs to the program.
//
// Threads: any may ask and cancel. A completion is called on one of the resolver's threads, or inside the call that asked
// where nothing is looked up, and does no more than hand the answer on. All that is shared is in two Mutexes: the
// resolver's (which requests wait, how many threads there are) and each request's (its completion, taken once). A
// completion is always called with neither held.

internal import Glibc
package import RondoCore
internal import RondoMutex

/// Looks names up on threads of its own, a few at the same time.
package final class Resolver: Sendable {
    package static let shared = Resolver()

    /// Look-ups made at the same time. Further ones wait.
    package static let threadLimit = 4
    /// Requests that may wait; those for one host and port are answered together. A program that asks for more at once
    /// is told so, instead of growing for ever.
    package static let waitingLimit = 4_096
    /// How long a thread without work stays, in seconds.
    package static let idleSeconds = 10

    package typealias Answer = Result<[SocketAddress], ResolveError>
    package typealias Lookup = @Sendable (_ host: String, _ port: UInt16) -> Answer

    private struct State {
        var waiting: [Request] = []
        var threads = 0
        /// Threads that wait for work. Each request wakes one of them or starts another.
        var idle = 0
    }

    private let state = Mutex(State())
    private let work = DispatchSemaphore(value: 0)
    private let lookup: Lookup
    private let idleTime: DispatchTimeInterval

    /// - Parameter lookup: What runs on the threads; tests hand in their own.
    package init(
        idleTime: DispatchTimeInterval = .seconds(Resolver.idleSeconds),
        lookup: @escaping Lookup = Resolver.addresses(host:port:)
    ) {
        self.idleTime = idleTime
        self.lookup = lookup
    }

    /// Looks `host` up, and calls `completion` on a thread of the resolver's, before or after this call returns.
    ///
    /// Where it is not looked up at all, since the system has no thread for it or too many wait, `completion` is called
    /// before this returns, and on the calling thread: there is no other. Dispatch would make the caller wait for one.
    ///
    /// Ask `numeric(host:port:)` first: an address needs no thread.
    @discardableResult
    package func resolve(
        host: String, port: UInt16, completion: @escaping @Sendable (Answer) -> Void
    ) -> Request {
        let request = Request(host: host, port: port, completion: completion)
        enum Step { case start, wake, none, refuse }
        let step: Step = state.withLock { state in
            if state.waiting.count >= Self.waitingLimit { state.waiting.removeAll(where: \.isOver) }
            guard state.waiting.count < Self.waitingLimit else { return .refuse }
            state.waiting.append(request)
            if state.idle > 0 {
                state.idle -= 1
                return .wake
            }
            guard state.threads < Self.threadLimit else { return .none }
            state.threads += 1
            return .start
        }
        switch step {
        case .start: startThread()
        case .wake: work.signal()
        case .none: break
        case .refuse:
            request.finish(.failure(.tooManyLookups(host: host)))
        }
        return request
    }

    /// How many threads there are; for tests.
    package var threadCount: Int { state.withLock { $0.threads } }
}

// MARK: - Request

extension Resolver {
    /// The host without the brackets that an IPv6 address has in a URL.
    static func withoutBrackets(_ host: String) -> String {
        host.hasPrefix("[") && host.hasSuffix("]") ? String(host.dropFirst().dropLast()) : host
    }

    /// A look-up that was asked for.
    package final class Request: Sendable {
        package let host: String
        package let port: UInt16
        private let completion: Mutex<(@Sendable (Answer) -> Void)?>

        fileprivate init(host: String, port: UInt16, completion: @escaping @Sendable (Answer) -> Void) {
            self.host = host
            self.port = port
            self.completion = Mutex(completion)
        }

        /// Gives the look-up up: a completion that has not begun by now is never called. (One may be running
        /// on the resolver's thread just then.)
        package func cancel() {
            // Released after the lock is let go: it may be the last owner of anything.
            let completion = takeCompletion()
            _ = completion
        }

        fileprivate var isOver: Bool { completion.withLock { $0 == nil } }

        fileprivate func isSame(as other: Request) -> Bool { host == other.host && port == other.port }

        fileprivate func finish(_ answer: Answer) { takeCompletion()?(answer) }

        private func takeCompletion() -> (@Sendable (Answer) -> Void)? {
            completion.withLock { completion in
                defer { completion = nil }
                return completion
            }
        }
    }
}

// MARK: - Threads

extension Resolver {
    private func startThread() {
        do throws(SystemError) {
            try SystemThread.start(name: "rondo.resolver") { [self] in serve() }
        } catch {
            failForLackOfThreads(error.code)
        }
    }

    /// The system has no thread for us. If other threads are at work they will serve what waits; if there is none,
    /// everything waiting fails, because no thread would serve it.
    private func failForLackOfThreads(_ code: Int32) {
        let abandoned: [Request] = state.withLock { state in
            state.threads -= 1
            guard state.threads == 0 else { return [] }
            defer { state.waiting = [] }
            return state.waiting
        }
        for request in abandoned {
            request.finish(.failure(ResolveError(host: request.host, code: EAI_SYSTEM, systemCode: code)))
        }
    }

    /// What a thread does from its start to its end.
    private func serve() {
        while let requests = nextRequests() {
            // A request given up while it waited is not looked up at all.
            let waiting = requests.filter { !$0.isOver }
            guard let first = waiting.first else { continue }
            let answer = lookup(first.host, first.port)
            for request in waiting { request.finish(answer) }
        }
    }

    /// The next request, with all that wait for the same: the answer to come is as new as any of them could have
    /// wished for. Nil when none came for `idleTime` and the thread is to end.
    private func nextRequests() -> [Request]? {
        while true {
            let requests: [Request] = state.withLock { state in
                guard let first = state.waiting.first else {
                    state.idle += 1
                    return []
                }
                let requests = state.waiting.filter { $0.isSame(as: first) }
                state.waiting.removeAll { $0.isSame(as: first) }
                return requests
            }
            if !requests.isEmpty { return requests }
            guard work.wait(timeout: .now() + idleTime) == .timedOut else { continue }
            let ends = state.withLock { state in
                // A request counted on this thread while its time ran out: its wake-up is on the way.
                guard state.idle > 0 else { return false }
                state.idle -= 1
                state.threads -= 1
                return true
            }
            if ends { return nil }
            work.wait()
        }
    }
}

// MARK: - Looking up

extension Resolver {
    /// The address that `host` spells as numbers, in every form that C's functions know (`127.0.0.1`, `::1`,
    /// `fe80::1%eth0`, `127.1`, `0x7f000001`), or nil if it is a name. Brackets are the caller's to remove.
    package static func numeric(host: String, port: UInt16) -> SocketAddress? {
        // Nearly every host is a name, which has no colon and begins with no digit: to have C's functions look at each took
        // 5 % of the instructions of a GET with a connection of its own (W15).
        let beginsWithDigit = host.utf8.first.map { 0x30...0x39 ~= $0 } ?? false
        guard beginsWithDigit || host.utf8.contains(UInt8(ascii: ":")) else { return nil }
        if let address = SocketAddress(literal: host, port: port) { return address }
        // The old forms of IPv4 have no other letters than these.
        let letters = "0123456789abcdefABCDEFxX."
        guard beginsWithDigit, host.allSatisfy(letters.contains) else { return nil }
        // What cannot be read as numbers is a name: no error.
        return try? lookUp(host, port, flags: AI_NUMERICHOST).get().first
    }

    /// The addresses of this machine, if `host` is `localhost` or a name below it, which stand for it and nothing else
    /// (RFC 6761, section 6.3), as curl and browsers have it too: neither a file nor a name server is asked, whose
    /// answers could lead elsewhere. Nil for all other names.
    ///
    /// IPv4 first, since most that listen on one of the two listen there.
    package static func loopback(host: String, port: UInt16) -> [SocketAddress]? {
        var name = host.lowercased()
        if name.last == "." { name.removeLast() }
        guard name == "localhost" || name.hasSuffix(".localhost"), name.first != "." else { return nil }
        return [.loopback(port: port), .ipv6(high: 0, low: 1, port: port, scope: 0)]
    }

    /// The addresses of `host`, in the order in which they should be tried (RFC 6724), by `getaddrinfo`.
    /// Blocks.
    package static func addresses(host: String, port: UInt16) -> Answer {
        // Not AI_ADDRCONFIG: it does not count loopback as an address, so a machine with IPv4 alone would
        // not find ::1. Unusable addresses are sorted last anyway, and the connector does not wait for them.
        lookUp(host, port, flags: 0)
    }

    private static func lookUp(_ host: String, _ port: UInt16, flags: Int32) -> Answer {
        // getaddrinfo would read up to the NUL, and resolves the empty name to this machine.
        guard !host.isEmpty, !host.utf8.contains(0) else {
            return .failure(ResolveError(host: host, code: EAI_NONAME))
        }
        var hints = addrinfo()
        hints.ai_family = AF_UNSPEC
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        hints.ai_flags = flags
        var list: UnsafeMutablePointer<addrinfo>?
        let code = getaddrinfo(host, nil, &hints, &list)
        let systemCode = errno
        guard code == 0 else {
            return .failure(ResolveError(host: host, code: code, systemCode: systemCode))
        }
        defer { freeaddrinfo(list) }
        var addresses: [SocketAddress] = []
        for entry in sequence(first: list, next: { $0?.pointee.ai_next }).prefix(while: { $0 != nil }) {
            guard let entry = entry?.pointee, let start = entry.ai_addr else { continue }
            let bytes = UnsafeRawBufferPointer(start: start, count: Int(entry.ai_addrlen))
            // /etc/hosts may name an address twice.
            if let address = SocketAddress(sockaddr: bytes)?.withPort(port), !addresses.contains(address) {
                addresses.append(address)
            }
        }
        return addresses.isEmpty
            ? .failure(ResolveError(host: host, code: EAI_NONAME)) : .success(addresses)
    }
}
