internal import RondoCore

// From `open()` to `close()`, and what the signalled source does in between.
extension SocketChannel {
    /// Starts with the first pass of a scheduled mode; no event comes before.
    package func open() {
        guard case .created(let origin) = phase else { return }
        phase = .starting(origin)
        turns?.signalAndWakeUp()
    }

    /// Ends everything without a further event. Over TLS the last bytes and close_notify are still sent, and
    /// the peer gets a moment to take them (`LingeringClose`).
    package func close() {
        switch phase {
        case .closed: return
        case .created(let origin), .starting(let origin):
            if case .socket(let socket) = origin { dispose(socket) }
        case .resolving(let request): request.cancel()
        case .connecting(let connecting):
            for attempt in connecting.attempts.values { dispose(attempt) }
        case .standing(let connected): release(connected, nil)
        case .negotiating(let connected, let negotiating): release(connected, negotiating.carrier)
        case .upgrading(let connected, _, _, let carrier): release(connected, carrier)
        case .securing(let connected, let engine):
            release(connected, engine)
        case .open(let connected, let engine):
            release(connected, engine)
        }
        phase = .closed
        stopDelays()
        stopLimits()
        leaveHandshakes()
        asker?.invalidate()
        asker = nil
        turns?.invalidate()
        turns = nil
    }

    private func release(_ connected: Connected, _ engine: TLSEngine?) {
        // Before the descriptor is closed: its number may be another one's at once (rule SRC-27).
        interest.remove(connected.source)
        connected.source.invalidate()
        if let engine {
            // Of a descriptor that is the client's no more than the end can be said.
            if closesDescriptor, LingeringClose.begin(connected.socket, engine) { return }
            engine.shutdownAll()
            engine.detach()
        }
        dispose(connected.socket)
    }

    private func dispose(_ socket: Socket) {
        if closesDescriptor { socket.close() } else { socket.letGo() }
    }

    func dispose(_ attempt: Attempt) {
        interest.remove(attempt.source)
        attempt.source.invalidate()
        attempt.socket.close()
    }

    func fail(_ error: ChannelError) {
        let handler = handler
        close()
        handler?(.failed(error))
    }

    // MARK: - Turns of the signalled source

    func turn() {
        // Its timer may have fired while somebody else was inside the gate.
        if limits.contains(where: { !$0.isValid }) { limitIsReached(mayWait: true) }
        // It may have been refused then too.
        if endRefused() { return }
        switch phase {
        case .starting(let origin):
            start(origin)
        case .resolving:
            switch answer?.take() {
            case .success(let addresses):
                answer = nil
                connect(to: addresses)
            case .failure(let error): fail(.resolve(error))
            case nil: break
            }
        case .upgrading(let connected, let settings, let received, let carrier):
            beginSecuring(connected, settings, received: received, through: carrier)
        case .negotiating(let connected, let negotiating):
            if negotiating.carrier?.hasPendingPlaintext ?? false { negotiate(.read, connected, negotiating) }
        case .securing(let connected, let engine):
            if unfinishedHandshake?.hasGivenWay ?? false { return fail(gaveWay) }
            // A question of the handshake's may have been answered.
            handshake(connected, engine)
        case .open(_, let engine):
            if wantsRead, engine?.hasPendingPlaintext ?? false { readable() }
        case .connecting:
            // The delay may have ended while somebody else was inside the gate.
            delayIsOver()
        case .created, .standing, .closed:
            break
        }
    }

    private func start(_ origin: Origin) {
        beginLimit()
        switch origin {
        case .socket(let socket):
            let source = madeTurns.makeSource(socket.descriptor, interest: [])
            phase = .standing(Connected(socket: socket, source: source))
            enter(source, interest: [])
            stands()
        case .address(let address):
            connect(to: [address])
        case .host:
            lookUp()
        }
    }

    private func lookUp() {
        let (host, port) =
            configuration.route.map { ($0.host, $0.port) } ?? (configuration.host, configuration.port)
        guard let number = UInt16(exactly: port) else {
            return fail(.connect(host: host, port: port, []))
        }
        let name = Self.withoutBrackets(host)
        if let address = Resolver.numeric(host: name, port: number) { return connect(to: [address]) }
        if configuration.resolver === Resolver.shared,
            let addresses = Resolver.loopback(host: name, port: number)
        {
            handler?(.resolving(host: host))
            // The owner may have closed it.
            if case .starting = phase { connect(to: addresses) }
            return
        }
        let turns = turns
        let answer = LookUpAnswer()
        self.answer = answer
        phase = .resolving(
            configuration.resolver.resolve(host: name, port: number) { found in
                // On the resolver's thread: left in the box, looked at on a loop.
                answer.put(found)
                turns?.signalAndWakeUp()
            })
        handler?(.resolving(host: host))
    }

    /// The host of a URL may be an IPv6 address in brackets.
    static func withoutBrackets(_ host: String) -> String {
        host.hasPrefix("[") && host.hasSuffix("]") ? String(host.dropFirst().dropLast()) : host
    }

    // MARK: - From connected to open

    /// The connection stands: what is next, a proxy, TLS or the owner?
    func stands() {
        guard case .standing(let connected) = phase else { return }
        guard let route = configuration.route else { return isDirect(connected, through: nil) }
        if let settings = route.tls {
            secureProxy(connected, route, settings)
        } else {
            beginNegotiating(connected, route.negotiation, through: nil)
        }
    }

    /// From here on the peer is the host itself, behind a proxy's TLS perhaps.
    func isDirect(_ connected: Connected, through carrier: TLSEngine?) {
        if let settings = configuration.tls {
            beginSecuring(connected, settings, received: [], through: carrier)
        } else {
            isUsable(connected, carrier)
        }
    }

    func isUsable(_ connected: Connected, _ engine: TLSEngine?) {
        phase = .open(connected, engine)
        updateInterest()
        stopLimits()
        leaveHandshakes()
        dropRare()
        // A proxy's has been told of.
        if let engine, !engine.leadsToProxy { tellOfSecurity(engine) }
        guard isOpen, !hasOpened else { return }
        hasOpened = true
        handler?(.open)
    }

    func tellOfSecurity(_ engine: TLSEngine) {
        handler?(
            .secured(version: engine.version, cipher: engine.cipher ?? "", subject: engine.peerSubject))
    }

    // MARK: - The limit of time

    func beginLimit() {
        guard !isOpen, limits.isEmpty, let seconds = openingLimit else { return }
        limits = timers(after: seconds) { $0.limitIsReached(mayWait: true) }
    }

    /// In seconds; nil: there is none.
    private var openingLimit: Double? {
        [configuration.openingLimit, configuration.handshakes?.seconds].compactMap { $0 }.min()
    }

    func stopLimits() {
        for timer in limits { timer.invalidate() }
        if !limits.isEmpty { limits = [] }
    }

    private func limitIsReached(mayWait: Bool) {
        guard !isOpen, !limits.isEmpty, let seconds = openingLimit else { return }
        stopLimits()
        // The loop may have been in another mode: what has come meanwhile is looked at before the clock is.
        if mayWait, connected?.socket.isReadable() ?? false {
            limits = timers(after: Self.graceSeconds) { $0.limitIsReached(mayWait: false) }
            return
        }
        fail(.timedOut(host: configuration.host, port: configuration.port, seconds: seconds))
    }

    /// What a peer gets beyond `openingLimit` whose bytes were here already when it was reached.
    private static var graceSeconds: Double { 1 }
}
