internal import RondoCore
internal import Synchronization

// TLS begins: on a fresh connection, or on one that has been used without it.
extension SocketChannel {
    /// Secures the open connection from here on (STARTTLS, rule ST-42). It is not open meanwhile; the events
    /// are `secured` or `failed`, in a later pass. Where the connection is still being made the settings take
    /// effect as if they had been there from the start.
    ///
    /// - Parameter received: What the owner has read already and not used: it belongs to TLS now. So nothing
    ///   that was said before in plain text can be taken for something said in confidence.
    /// - Returns: False if it is secured already, or closed.
    package func secure(_ settings: TLSSettings?, received: [UInt8] = []) -> Bool {
        switch phase {
        case .created, .starting, .resolving, .connecting, .standing, .negotiating:
            configuration.tls = settings
            return true
        case .securing(_, let engine) where engine.leadsToProxy:
            configuration.tls = settings
            return true
        case .open(let connected, let carrier) where carrier?.leadsToProxy ?? true:
            guard let settings else { return true }
            phase = .upgrading(connected, settings, received: received, through: carrier)
            interest.set([], of: connected.source)
            turns?.signalAndWakeUp()
            return true
        case .upgrading, .securing, .open, .closed:
            return false
        }
    }

    func beginSecuring(
        _ connected: Connected, _ settings: TLSSettings, received: [UInt8], through carrier: TLSEngine?
    ) {
        let host = Self.withoutBrackets(configuration.host)
        begin(connected, settings, asksOwner: true, host: host) { () throws(TLSError) in
            try TLSEngine(
                context: TLSContext.shared(for: settings), descriptor: connected.socket.descriptor,
                hostName: host, port: configuration.port, received: received, through: carrier)
        }
    }

    /// TLS with a proxy, before anything is asked of it. The owner is asked about hosts only.
    func secureProxy(_ connected: Connected, _ route: ChannelRoute, _ settings: TLSSettings) {
        let host = Self.withoutBrackets(route.host)
        begin(connected, settings, asksOwner: false, host: host) { () throws(TLSError) in
            try TLSEngine(
                context: TLSContext.shared(for: settings), descriptor: connected.socket.descriptor,
                hostName: host, port: route.port, leadsToProxy: true)
        }
    }

    private func begin(
        _ connected: Connected, _ settings: TLSSettings, asksOwner: Bool, host: String,
        _ make: () throws(TLSError) -> TLSEngine
    ) {
        do throws(TLSError) {
            let engine = try make()
            engine.ask(
                forTrust: asksOwner && onTrust != nil || settings.trustHandler != nil,
                forIdentity: asksOwner && onIdentityRequest != nil || settings.identityHandler != nil)
            engine.asking?.trustHandler = settings.trustHandler
            engine.asking?.identityHandler = settings.identityHandler
            phase = .securing(connected, engine)
            if let handshakes = configuration.handshakes, unfinishedHandshake == nil {
                unfinishedHandshake = handshakes.enter(madeTurns)
            }
            handshake(connected, engine)
        } catch {
            fail(.tls(error.naming(host: host)))
        }
    }

    func handshake(_ connected: Connected, _ engine: TLSEngine) {
        do throws(TLSError) {
            switch try engine.handshake() {
            case .wantsRead: go(on: connected, with: .read)
            case .wantsWrite: go(on: connected, with: .write)
            case .waits:
                // However long the program thinks, that is not the peer's fault.
                stopLimits()
                leaveHandshakes()
                interest.set([], of: connected.source)
                ask(engine)
            case .done:
                asker?.invalidate()
                asker = nil
                if engine.leadsToProxy { return isSecureToProxy(connected, engine) }
                isUsable(connected, engine)
            }
        } catch {
            fail(.tls(error))
        }
    }

    private func isSecureToProxy(_ connected: Connected, _ engine: TLSEngine) {
        guard let route = configuration.route else { return }
        tellOfSecurity(engine)
        // Whoever was told may have closed it.
        if case .securing = phase { beginNegotiating(connected, route.negotiation, through: engine) }
    }

    private func go(on connected: Connected, with wanted: RunLoop.Source.Interest) {
        beginLimit()
        interest.set(wanted, of: connected.source)
    }

    /// The peer has done its part, or is gone.
    func leaveHandshakes() {
        guard let entry = unfinishedHandshake else { return }
        unfinishedHandshake = nil
        configuration.handshakes?.leave(entry)
    }

    var gaveWay: ChannelError {
        .gaveWay(
            host: configuration.host, port: configuration.port, limit: configuration.handshakes?.limit ?? 0)
    }

    // MARK: - Questions

    private func ask(_ engine: TLSEngine) {
        let turns = turns
        let asking = engine.asking
        guard let question = engine.takeQuestion(whenAnswered: { turns?.signalAndWakeUp() }) else { return }
        switch question {
        case .trust(let trust):
            if let onTrust, !engine.leadsToProxy { return onTrust(trust) }
            callOutside { [handler = asking?.trustHandler] in handler?.body(trust) }
        case .identity(let request):
            if let onIdentityRequest, !engine.leadsToProxy { return onIdentityRequest(request) }
            callOutside { [handler = asking?.identityHandler] in handler?.body(request) }
        }
    }

    /// Calls a handler of the program's in a later turn of a scheduled loop, outside the gate: it may do
    /// anything, close the connection too.
    private func callOutside(_ body: @escaping @Sendable () -> Void) {
        asker?.invalidate()
        let call = OneCall(body)
        let source = RunLoop.Source { call.perform() }
        source.label = label
        asker = source
        for place in places { place.loop.add(source, forMode: place.mode) }
        source.signalAndWakeUp()
    }

    /// Lets go of what it calls: a question that nobody keeps has to answer itself.
    private final class OneCall: Sendable {
        private let body: Mutex<(@Sendable () -> Void)?>

        init(_ body: @escaping @Sendable () -> Void) { self.body = Mutex(body) }

        func perform() {
            let body = body.withLock { body in
                defer { body = nil }
                return body
            }
            body?()
        }
    }
}
