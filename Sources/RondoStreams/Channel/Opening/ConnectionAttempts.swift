internal import RondoCore

/// The attempts to connect to the addresses of a host until one succeeds; it performs the actions of a
/// `Connector`.
final class ConnectionAttempts {
    /// The result of an input. Each case but `connecting` ends the attempts.
    enum Progress {
        case connecting(SocketAddress)
        /// An attempt was begun and succeeded at once.
        case connectedAtOnce(ChannelTransport, SocketAddress)
        /// An attempt has succeeded.
        case connected(ChannelTransport, SocketAddress)
        /// Every address has failed.
        case failed([SocketError])
    }

    private struct Attempt {
        let socket: Socket
        let address: SocketAddress
        let source: RunLoop.Source
    }

    /// A Unix-domain socket whose queue of connections is full.
    private struct Busy {
        let id: Connector.AttemptID
        let address: SocketAddress
        /// Seconds until the next attempt.
        let pause: Double
    }

    private let sources: any ChannelSources
    private let localEnd: ConnectSettings.LocalEnd?
    private var connector = Connector()
    private var running: [Connector.AttemptID: Attempt] = [:]
    private var busy: Busy?
    /// The timers until the next attempt.
    private var delays: [Timer] = []
    private var isOver = false
    /// True while `start` runs, in a pass of the channel, where a finished connection may be reported at
    /// once. Later attempts may be made in a timer's callback, which is no event that a run of the loop
    /// returns for.
    private var isStarting = false

    /// - Parameter localEnd: The local end of the connection; nil: the kernel's choice.
    init(_ sources: any ChannelSources, from localEnd: ConnectSettings.LocalEnd? = nil) {
        self.sources = sources
        self.localEnd = localEnd
    }

    // MARK: - Inputs

    /// Must be called once.
    func start(_ addresses: [SocketAddress]) -> Progress? {
        isStarting = true
        defer { isStarting = false }
        return perform(connector.start(addresses, now: now))
    }

    /// Continues an attempt whose socket is writable.
    func continueAttempt(of source: RunLoop.Source) -> Progress? {
        guard let (id, attempt) = running.first(where: { $0.value.source === source }) else { return nil }
        do throws(SocketError) {
            guard try attempt.socket.finishConnecting(to: attempt.address) else { return nil }
            return perform(connector.attemptSucceeded(id))
        } catch {
            return fail(id, attempt, error)
        }
    }

    /// Whether an attempt has succeeded or failed, and was not continued yet.
    var hasAnswer: Bool { running.values.contains { SocketCalls.isWritable($0.socket.descriptor) } }

    /// The source of an attempt whose socket the kernel refuses to watch.
    var refusedSource: RunLoop.Source? { running.values.first { $0.source.refusalCode != nil }?.source }

    func endRefused(_ source: RunLoop.Source) -> Progress? {
        guard let code = source.refusalCode,
            let (id, attempt) = running.first(where: { $0.value.source === source })
        else { return nil }
        return fail(id, attempt, SocketError(code: code, operation: .connect, address: attempt.address))
    }

    /// Continues if a delay has ended.
    func checkDelays() -> Progress? {
        guard let busy else { return perform(connector.timeReached(now)) }
        return delays.contains { !$0.isValid } ? startAttempt(busy.id, busy.address) : nil
    }

    func cancel() {
        for attempt in running.values { dispose(attempt) }
        end()
    }

    // MARK: - The connector's actions

    private var now: UInt64 { UInt64(LoopClock.now.nanoseconds) }

    private func perform(_ actions: [Connector.Action]) -> Progress? {
        var progress: Progress?
        for action in actions where !isOver {
            switch action {
            case .start(let id, let address):
                progress = startAttempt(id, address)
            case .waitUntil(let time):
                startDelay(seconds: Double(Int64(bitPattern: time &- now)) / 1e9)
            case .cancel(let id):
                if let attempt = running.removeValue(forKey: id) { dispose(attempt) }
            case .connected(let id):
                guard let winner = running.removeValue(forKey: id) else { return nil }
                end()
                // The winner keeps its source.
                sources.setInterest([], of: winner.source)
                return .connected(
                    ChannelTransport(socket: winner.socket, source: winner.source), winner.address)
            case .failed(let errors):
                end()
                return .failed(errors)
            }
        }
        return progress
    }

    private func startAttempt(_ id: Connector.AttemptID, _ address: SocketAddress) -> Progress? {
        do throws(SocketError) {
            let socket = try connect(to: address)
            // Within this machine a connection is established when connect() returns, so neither a
            // registration with the kernel nor a timer is needed. These cost 6 % of a GET with a connection
            // of its own (W15). The reason for a refusal is not known here and is fetched when the socket is
            // ready.
            let stands = isStarting && address.isOfThisMachine && socket.peerAddress != nil
            let source = sources.makeSource(socket.descriptor, interest: stands ? [] : .write)
            running[id] = Attempt(socket: socket, address: address, source: source)
            busy = nil
            if stands, case .connected(let transport, _) = perform(connector.attemptSucceeded(id)) {
                return .connectedAtOnce(transport, address)
            }
            return .connecting(address)
        } catch {
            if error.code == EAGAIN, case .unix = address {
                tryLater(id, address)
                return nil
            }
            return perform(connector.attemptFailed(id, error, now: now))
        }
    }

    /// Begins to connect. Where no descriptor is left, those are given back first that are kept only for
    /// speed.
    private func connect(to address: SocketAddress) throws(SocketError) -> Socket {
        do throws(SocketError) {
            return try Socket.connecting(to: address, from: localEnd)
        } catch {
            guard error.operation == .open, DescriptorShortage.isReason(error.code) else { throw error }
            DescriptorShortage.giveBack()
            return try Socket.connecting(to: address, from: localEnd)
        }
    }

    private func fail(_ id: Connector.AttemptID, _ attempt: Attempt, _ error: SocketError) -> Progress? {
        running[id] = nil
        dispose(attempt)
        return perform(connector.attemptFailed(id, error, now: now))
    }

    private func dispose(_ attempt: Attempt) {
        sources.remove(attempt.source)
        attempt.socket.close()
    }

    private func end() {
        isOver = true
        running = [:]
        stopDelays()
    }

    // MARK: - Delays

    /// The seconds until a Unix-domain socket with a full queue is tried again: at first, doubled each time,
    /// up to the longest. The kernel does not report when there is room: a blocking socket waits for that, a
    /// non-blocking one gets `EAGAIN`.
    static let busyPause = (first: 0.01, longest: 0.32)

    private func tryLater(_ id: Connector.AttemptID, _ address: SocketAddress) {
        let pause = busy.map { min($0.pause * 2, Self.busyPause.longest) } ?? Self.busyPause.first
        busy = Busy(id: id, address: address, pause: pause)
        startDelay(seconds: pause)
    }

    private func startDelay(seconds: Double) {
        stopDelays()
        delays = sources.startTimers(after: seconds)
    }

    private func stopDelays() {
        sources.stop(delays)
        delays = []
    }
}
