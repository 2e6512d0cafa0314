// A host in Core Foundation's interface: a name or an address, and the result of a look-up.
//
// `Resolver` looks names up; for an address, a thread is started that lives until the result. The result is
// stored under the host's lock; then a source is signalled, which reads it and calls the client, on a loop
// and in a mode of the host. Without a client or a schedule, the caller waits for the result.
//
// The source exists only while a look-up is in progress, because otherwise it would keep its modes from being
// empty. It retains the host, and the host refers to it weakly.
//
// Threads: any may call. The client is called with no lock held.

internal import Glibc
public import RondoCore
internal import RondoMutex

/// A host whose addresses or names are looked up: Core Foundation's `CFHost`, made by functions such as
/// `CFHostCreateWithName` (rule CS-19).
public final class CFHost: Sendable {
    package typealias CallBack = @Sendable (CFHost, CFHostInfoType, CFStreamError) -> Void

    /// The addresses and names of the host, given or found.
    private struct Knowledge {
        var addresses: Listing?
        var names: Listing?

        mutating func learn(_ found: HostLookUp.Found) {
            switch found {
            case .addresses(let addresses): self.addresses = Listing(addresses.map { NSData(data: $0) })
            case .names(let names): self.names = Listing(names.map { NSString(string: $0) })
            }
        }
    }

    /// An array of addresses or names. `@unchecked Sendable`: neither the array nor its objects are ever
    /// changed.
    private struct Listing: @unchecked Sendable {
        let array: NSArray

        init(_ objects: [NSObject]) { array = NSArray(array: objects) }
    }

    private struct State {
        var known: Knowledge
        var client: CallBack?
        var modes: [LoopMode] = []
        var lookUp: HostLookUp?
        weak var source: RunLoop.Source?
    }

    private let state: Mutex<State>
    private let subject: HostLookUp.Subject

    private init(_ subject: HostLookUp.Subject, _ known: Knowledge) {
        self.subject = subject
        state = Mutex(State(known: known))
    }

    /// - Parameter resolver: Tests pass their own.
    package convenience init(name: String, resolver: Resolver = .shared) {
        var known = Knowledge()
        known.learn(.names([name]))
        self.init(.name(name, resolver), known)
    }

    /// - Parameter address: A `struct sockaddr`.
    package convenience init(address: Data) {
        var known = Knowledge()
        known.learn(.addresses([address]))
        self.init(.address(address), known)
    }

    /// Makes a host with the addresses and names of another one, but without its client and its schedule.
    package convenience init(copying host: CFHost) {
        self.init(host.subject, host.state.withLock { $0.known })
    }

    deinit { state.withLock { $0.lookUp }?.cancel() }

    // MARK: - Results

    /// Addresses as `NSData`, or names as `NSString`; nil if they were not found yet. The array lives until a
    /// look-up replaces it.
    package func array(_ info: CFHostInfoType) -> NSArray? {
        state.withLock { state in
            switch info {
            case .addresses: state.known.addresses?.array
            case .names: state.known.names?.array
            case .reachability: nil
            }
        }
    }

    // MARK: - Client and schedule

    /// Replaces the client; nil: `start` waits for results.
    package func setClient(_ client: CallBack?) {
        let replaced = state.withLock { state in
            defer { state.client = client }
            return state.client
        }
        // Released with no lock held.
        withExtendedLifetime(replaced) {}
    }

    package func schedule(in loop: RunLoop, forMode mode: RunLoop.Mode) {
        let scheduled = LoopMode(loop: loop, mode: mode)
        let source = state.withLock { state -> RunLoop.Source? in
            guard !state.modes.contains(scheduled) else { return nil }
            state.modes.append(scheduled)
            return state.lookUp?.isWaitedFor == false ? makeSource(&state) : nil
        }
        guard let source else { return }
        add(source, in: scheduled)
        // The result may have come while the host was scheduled nowhere.
        if state.withLock({ $0.lookUp?.outcome != nil }) { source.signalAndWakeUp() }
    }

    package func unschedule(from loop: RunLoop, forMode mode: RunLoop.Mode) {
        let (source, modes) = state.withLock { state in
            state.modes.removeAll { $0 == LoopMode(loop: loop, mode: mode) }
            _ = learnIfAbandoned(&state)
            return (state.source, state.modes)
        }
        if let source { loop.remove(source, forMode: mode, keeping: modes) }
    }

    /// Adds the source to a mode. Called with no lock held, because an instrument may be called.
    private func add(_ source: RunLoop.Source, in scheduled: LoopMode) {
        scheduled.loop.add(source, forMode: scheduled.mode)
        // The host may have left the mode meanwhile.
        let modes = state.withLock { $0.modes }
        guard !modes.contains(scheduled) else { return }
        scheduled.loop.remove(source, forMode: scheduled.mode, keeping: modes)
    }

    /// The source of the look-up in progress, made on demand. Called under the lock.
    private func makeSource(_ state: inout State) -> RunLoop.Source {
        if let source = state.source, source.isValid { return source }
        let source = RunLoop.Source { [self] in perform() }
        source.label = "CFHost"
        state.source = source
        return source
    }

    // MARK: - Looking up

    /// Starts to find out `info`. If the host has a client and is scheduled, the client is called with the
    /// result; otherwise this call waits for it.
    ///
    /// - Returns: The error if the look-up was not started, or has failed; `.none` if it was started, or has
    ///   succeeded.
    package func start(_ info: CFHostInfoType) -> CFStreamError {
        let begun = state.withLock { state -> (HostLookUp, RunLoop.Source?, [LoopMode])? in
            guard state.lookUp == nil || learnIfAbandoned(&state) else { return nil }
            let isWaitedFor = state.client == nil || state.modes.isEmpty
            let lookUp = HostLookUp(info, isWaitedFor: isWaitedFor)
            state.lookUp = lookUp
            return (lookUp, isWaitedFor ? nil : makeSource(&state), state.modes)
        }
        guard let (lookUp, source, modes) = begun else { return .posix(EALREADY) }
        if let source {
            for scheduled in modes { add(source, in: scheduled) }
        }
        lookUp.begin(subject) { [weak self] in self?.ended(lookUp) }
        guard lookUp.isWaitedFor else { return .none }
        return finish(lookUp, lookUp.wait()) ?? .posix(ECANCELED)
    }

    /// Called on any thread when the look-up has ended.
    private func ended(_ lookUp: HostLookUp) {
        let source = state.withLock { state -> RunLoop.Source? in
            guard state.lookUp === lookUp else { return nil }
            return learnIfAbandoned(&state) ? nil : state.source
        }
        source?.signalAndWakeUp()
    }

    /// Keeps the result of a look-up that has ended and was not reported, if the host is in no mode: its
    /// client is told only if the host enters a mode before the next look-up begins. Called under the lock.
    ///
    /// - Returns: Whether there is such a look-up.
    private func learnIfAbandoned(_ state: inout State) -> Bool {
        guard let lookUp = state.lookUp, !lookUp.isWaitedFor, state.modes.isEmpty,
            let outcome = lookUp.outcome
        else { return false }
        if case .found(let found) = outcome { state.known.learn(found) }
        return true
    }

    /// Runs on the thread of a loop that holds the source.
    private func perform() {
        let (lookUp, client) = state.withLock { ($0.lookUp, $0.client) }
        guard let lookUp, let outcome = lookUp.outcome, let error = finish(lookUp, outcome) else { return }
        client?(self, lookUp.info, error)
    }

    /// Ends `lookUp`: stores the result, and lets another look-up begin.
    ///
    /// - Returns: The result as an error or `.none`; nil if the look-up had ended before.
    private func finish(_ lookUp: HostLookUp, _ outcome: HostLookUp.Outcome) -> CFStreamError? {
        let (isCurrent, source) = state.withLock { state -> (Bool, RunLoop.Source?) in
            guard state.lookUp === lookUp else { return (false, nil) }
            state.lookUp = nil
            if case .found(let found) = outcome { state.known.learn(found) }
            // Another look-up that begins meanwhile makes its own source.
            defer { state.source = nil }
            return (true, state.source)
        }
        source?.invalidateAndWakeUp()
        guard isCurrent else { return nil }
        switch outcome {
        case .found: return CFStreamError.none
        case .failed(let error): return error
        }
    }

    /// Cancels the look-up of `info`: its result is not reported, and a thread that waits for it returns.
    package func cancel(_ info: CFHostInfoType) {
        guard let lookUp = state.withLock({ $0.lookUp }), lookUp.info == info else { return }
        lookUp.cancel()
        _ = finish(lookUp, .failed(.posix(ECANCELED)))
    }

    /// The reason why the client was not called, with a sentence. Any thread may read it.
    public var whyNotDelivering: DeliveryObstacle {
        let (source, modes) = state.withLock { ($0.source, $0.modes) }
        return source?.whyNotDelivering ?? DeliveryObstacle(modes: modes.map { ($0.loop, $0.mode) })
    }
}
