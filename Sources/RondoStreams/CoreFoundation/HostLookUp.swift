internal import Glibc
internal import RondoCore
internal import RondoMutex

/// One look-up for a `CFHost`, from its start to its only result. Any thread.
final class HostLookUp: Sendable {
    /// The name or address that a host was made with.
    enum Subject: Sendable {
        case name(String, Resolver)
        /// A `struct sockaddr`.
        case address(Data)
    }

    enum Found: Sendable {
        case addresses([Data])
        case names([String])
    }

    enum Outcome: Sendable {
        case found(Found)
        case failed(CFStreamError)
    }

    /// The most threads that look up names by address at the same time: each is blocked for as long as a name
    /// server takes, even if its look-up was cancelled.
    static let threadLimit = 16
    private static let threads = Mutex(0)

    private struct State {
        var outcome: Outcome?
        var request: Resolver.Request?
    }

    let info: CFHostInfoType
    /// True if the caller waits for the result; false if the client is called.
    let isWaitedFor: Bool
    private let state = Mutex(State())
    private let isThere = DispatchSemaphore(value: 0)

    init(_ info: CFHostInfoType, isWaitedFor: Bool) {
        self.info = info
        self.isWaitedFor = isWaitedFor
    }

    /// Nil until the result has come.
    var outcome: Outcome? { state.withLock { $0.outcome } }

    /// Blocks the thread until there is a result. Must be called at most once.
    func wait() -> Outcome {
        isThere.wait()
        return outcome ?? .failed(.posix(ECANCELED))
    }

    /// Starts the look-up for `subject`, and calls `completion` on any thread, perhaps before this returns.
    func begin(_ subject: Subject, completion: @escaping @Sendable () -> Void) {
        switch (info, subject) {
        case (.addresses, .address(let address)):
            put(.found(.addresses([address])), completion)
        case (.addresses, .name(let name, let resolver)):
            findAddresses(of: name, by: resolver, completion)
        case (.names, .name(let name, _)):
            put(.found(.names([name])), completion)
        case (.names, .address(let address)):
            findName(of: address, completion)
        case (.reachability, _):
            put(.failed(.posix(EOPNOTSUPP)), completion)
        }
    }

    func cancel() {
        state.withLock { $0.request }?.cancel()
        put(.failed(.posix(ECANCELED))) {}
    }

    /// Stores the result; only the first one counts.
    private func put(_ outcome: Outcome, _ completion: () -> Void) {
        let isFirst = state.withLock { state in
            guard state.outcome == nil else { return false }
            state.outcome = outcome
            return true
        }
        guard isFirst else { return }
        isThere.signal()
        completion()
    }

    private func findAddresses(
        of name: String, by resolver: Resolver, _ completion: @escaping @Sendable () -> Void
    ) {
        let known =
            Resolver.numeric(host: name, port: 0).map { [$0] } ?? Resolver.loopback(host: name, port: 0)
        if let known { return put(Self.outcome(of: .success(known)), completion) }
        let request = resolver.resolve(host: name, port: 0) { [self] in
            put(Self.outcome(of: $0), completion)
        }
        let isOver = state.withLock { state in
            state.request = request
            return state.outcome != nil
        }
        // The look-up may have been cancelled before the request was stored.
        if isOver { request.cancel() }
    }

    private static func outcome(of result: Resolver.Outcome) -> Outcome {
        switch result {
        case .success(let addresses):
            .found(.addresses(addresses.compactMap { $0.withSockaddr { Data($0) } }))
        case .failure(let error): .failed(CFStreamError(error))
        }
    }

    // MARK: - Names by address

    private func findName(of address: Data, _ completion: @escaping @Sendable () -> Void) {
        let mayStart = Self.threads.withLock { threads in
            guard threads < Self.threadLimit else { return false }
            threads += 1
            return true
        }
        guard mayStart else { return put(.failed(.netDatabase(EAI_AGAIN)), completion) }
        do throws(SystemError) {
            try SystemThread.start(name: "rondo.resolver") { [self] in
                let outcome = Self.name(of: address)
                Self.threads.withLock { $0 -= 1 }
                put(outcome, completion)
            }
        } catch {
            Self.threads.withLock { $0 -= 1 }
            put(.failed(.posix(error.code)), completion)
        }
    }

    /// Calls `getnameinfo`. Blocks.
    private static func name(of address: Data) -> Outcome {
        var name = [CChar](repeating: 0, count: Int(NI_MAXHOST))
        let code = address.withUnsafeBytes { bytes in
            getnameinfo(
                bytes.assumingMemoryBound(to: sockaddr.self).baseAddress, socklen_t(clamping: bytes.count),
                &name, socklen_t(name.count), nil, 0, NI_NAMEREQD)
        }
        let systemCode = errno
        guard code == 0 else { return .failed(.netDatabase(code, systemCode: systemCode)) }
        return .found(
            .names([String(decoding: name.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)]))
    }
}
