internal import RondoCore

/// The attempts to connect to the addresses of a host, one of which wins: does what the `Connector` decides.
final class ConnectionAttempts {
    /// What has come of an input, for the connection.
    enum Progress {
        case connecting(SocketAddress)
        /// The attempt was begun, and the connection stands already. Nothing is left to do here.
        case connectedAtOnce(ChannelTransport, SocketAddress)
        /// Nothing is left to do here.
        case connected(ChannelTransport, SocketAddress)
        /// Every address has failed, and nothing is left to do here.
        case failed([SocketError])
    }

    private struct Attempt {
        let socket: Socket
        let address: SocketAddress
        let source: RunLoop.Source
    }

    /// A Unix socket's address whose queue is full.
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
    /// Until the next attempt.
    private var delays: [Timer] = []
    private var isOver = false
    /// The first attempts are made in a pass of the channel, where a connection may be told of. Later ones may be made by a
    /// timer, which is no event that a run of the loop returns for.
    private var isStarting = false

    /// - Parameter localEnd: This machine's end of the connection; nil: as the kernel chooses.
    init(_ sources: any ChannelSources, from localEnd: ConnectSettings.LocalEnd? = nil) {
        self.sources = sources
        self.localEnd = localEnd
    }

    // MARK: - Inputs

    /// To be called once.
    func start(_ addresses: [SocketAddress]) -> Progress? {
        isStarting = true
        defer { isStarting = false }
        return perform(connector.start(addresses, now: now))
    }

    /// An attempt's socket is writable.
    func isReady(_ source: RunLoop.Source) -> Progress? {
        guard let (id, attempt) = running.first(where: { $0.value.source === source }) else { return nil }
        do throws(SocketError) {
            guard try attempt.socket.finishConnecting(to: attempt.address) else { return nil }
            return perform(connector.attemptSucceeded(id))
        } catch {
            return fail(id, attempt, error)
        }
    }

    /// The source of an attempt whose socket the kernel will not watch.
    var refusedSource: RunLoop.Source? { running.values.first { $0.source.refusalCode != nil }?.source }

    func endRefused(_ source: RunLoop.Source) -> Progress? {
        guard let code = source.refusalCode,
            let (id, attempt) = running.first(where: { $0.value.source === source })
        else { return nil }
        return fail(id, attempt, SocketError(code: code, operation: .connect, address: attempt.address))
    }

    /// A delay may have ended.
    func checkDelays() -> Progress? {
        guard let busy else { return perform(connector.timeReached(now)) }
        return delays.contains { !$0.isValid } ? startAttempt(busy.id, busy.address) : nil
    }

    func cancel() {
        for attempt in running.values { dispose(attempt) }
        end()
    }

    // MARK: - What the connector decides

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
            let socket = try Socket.connecting(to: address, from: localEnd)
            // Within this machine a connection stands when the call that asks for it returns; so neither a look at the kernel
            // nor a timer is needed for it, which are 6 % of a GET with a connection of its own (W15). Why one was refused
            // is left to be asked for.
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

    /// Seconds until a Unix socket is tried again whose queue is full: at first, doubled each time, and at
    /// most. The kernel does not tell when there is room: a socket that may block waits for that, another one
    /// is turned away (`EAGAIN`).
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
