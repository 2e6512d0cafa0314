internal import RondoCore

// Attempts to connect, as the `Connector` decides them.
extension SocketChannel {
    func connect(to addresses: [SocketAddress]) {
        var connecting = Connecting()
        let actions = connecting.connector.start(addresses, now: now)
        phase = .connecting(connecting)
        perform(actions)
    }

    private var now: UInt64 { UInt64(LoopClock.now.nanoseconds) }

    private func perform(_ actions: [Connector.Action]) {
        for action in actions {
            guard case .connecting(var connecting) = phase else { return }
            switch action {
            case .start(let id, let address):
                startAttempt(id, address)
            case .waitUntil(let moment):
                delay(until: moment)
            case .cancel(let id):
                if let attempt = connecting.attempts.removeValue(forKey: id) { dispose(attempt) }
                phase = .connecting(connecting)
            case .connected(let id):
                guard let attempt = connecting.attempts[id] else { return }
                isConnected(attempt)
            case .failed(let errors):
                let (host, port) =
                    configuration.route.map { ($0.host, $0.port) } ?? (configuration.host, configuration.port)
                fail(.connect(host: host, port: port, errors))
            }
        }
    }

    private func startAttempt(_ id: Connector.AttemptID, _ address: SocketAddress) {
        guard case .connecting(var connecting) = phase else { return }
        do throws(SocketError) {
            let socket = try Socket.connecting(to: address)
            let source = madeTurns.makeSource(socket.descriptor, interest: .write)
            connecting.attempts[id] = Attempt(socket: socket, address: address, source: source)
            connecting.busy = nil
            phase = .connecting(connecting)
            enter(source, interest: .write)
            handler?(.connecting(address))
        } catch {
            if error.code == EAGAIN, case .unix = address { return pause(id, address) }
            let actions = connecting.connector.attemptFailed(id, error, now: now)
            phase = .connecting(connecting)
            perform(actions)
        }
    }

    // MARK: - Where as many wait as may

    /// Seconds until a Unix socket is tried again whose queue is full: at first, doubled each time, and at
    /// most. The kernel does not tell when there is room: a socket that may block waits for that, another one
    /// is turned away (`EAGAIN`).
    static let busyPause = (first: 0.01, longest: 0.32)

    private func pause(_ id: Connector.AttemptID, _ address: SocketAddress) {
        guard case .connecting(var connecting) = phase else { return }
        let pause = connecting.busy.map { min($0.pause * 2, Self.busyPause.longest) } ?? Self.busyPause.first
        connecting.busy = Busy(id: id, address: address, pause: pause)
        phase = .connecting(connecting)
        stopDelays()
        delays = timers(after: pause) { $0.pauseIsOver() }
    }

    private func pauseIsOver() {
        guard case .connecting(let connecting) = phase, let busy = connecting.busy else { return }
        startAttempt(busy.id, busy.address)
    }

    func sourceIsReady(_ source: RunLoop.Source, _ ready: RunLoop.Source.Interest) {
        if ready.isEmpty, endRefused() { return }
        // The winner of the attempts keeps its source.
        guard case .connecting(var connecting) = phase else { return descriptorIsReady(ready) }
        let found = connecting.attempts.first { $0.value.source === source }
        guard let (id, attempt) = found else { return }
        let actions: [Connector.Action]
        do throws(SocketError) {
            guard try attempt.socket.finishConnecting(to: attempt.address) else { return }
            actions = connecting.connector.attemptSucceeded(id)
        } catch {
            connecting.attempts[id] = nil
            dispose(attempt)
            actions = connecting.connector.attemptFailed(id, error, now: now)
        }
        phase = .connecting(connecting)
        perform(actions)
    }

    /// Ends what the kernel will not watch: an attempt, or the channel itself.
    ///
    /// - Returns: Whether there was such a thing.
    func endRefused() -> Bool {
        if case .connecting(var connecting) = phase {
            for (id, attempt) in connecting.attempts {
                guard let code = attempt.source.refusalCode else { continue }
                connecting.attempts[id] = nil
                dispose(attempt)
                let error = SocketError(code: code, operation: .connect, address: attempt.address)
                let actions = connecting.connector.attemptFailed(id, error, now: now)
                phase = .connecting(connecting)
                perform(actions)
                return true
            }
        }
        guard let connected, let code = connected.source.refusalCode else { return false }
        let error = SocketError(code: code, operation: .watch, address: remoteAddress)
        fail(.broken(host: configuration.host, port: configuration.port, error))
        return true
    }

    private func isConnected(_ attempt: Attempt) {
        stopDelays()
        remoteAddress = attempt.address
        interest.set([], of: attempt.source)
        phase = .standing(Connected(socket: attempt.socket, source: attempt.source))
        handler?(.connected(attempt.address))
        stands()
    }

    // MARK: - The delay between two attempts

    private func delay(until moment: UInt64) {
        stopDelays()
        delays = timers(after: Double(Int64(bitPattern: moment &- now)) / 1e9) { $0.delayIsOver() }
    }

    func delayIsOver() {
        guard case .connecting(var connecting) = phase else { return }
        if connecting.busy != nil {
            if delays.contains(where: { !$0.isValid }) { pauseIsOver() }
            return
        }
        let actions = connecting.connector.timeReached(now)
        phase = .connecting(connecting)
        perform(actions)
    }

    func stopDelays() {
        for timer in delays { timer.invalidate() }
        if !delays.isEmpty { delays = [] }
    }
}
