internal import RondoCore
internal import RondoMutex

// Starting TLS, on a new connection or on one that has been used without it.
extension ChannelOpening {
    /// Starts TLS on an open connection, after what was written to it before.
    func upgrade(_ transport: ChannelTransport, _ settings: TLSSettings, received: [UInt8]) {
        do throws(TLSError) {
            // A record that TLS with a proxy has begun goes first: OpenSSL must be called with its bytes
            // until it is sent.
            switch try transport.engine?.flush() {
            case .done, nil: secure(transport, settings, received: received)
            case .wantsRead: wait(for: .read, transport)
            case .wantsWrite: wait(for: .write, transport)
            }
        } catch {
            channel.fail(.tls(error))
        }
    }

    /// Starts TLS with the host, inside the TLS connection with a proxy if there is one.
    func secure(_ transport: ChannelTransport, _ settings: TLSSettings, received: [UInt8]) {
        let configuration = channel.configuration
        let host = Resolver.withoutBrackets(configuration.host)
        secure(transport, settings, leadsToProxy: false, host: host) { () throws(TLSError) in
            try TLSEngine(
                context: TLSContext.shared(for: settings), descriptor: transport.socket.descriptor,
                hostName: host, port: configuration.port, received: received, through: transport.engine)
        }
    }

    /// Starts TLS with a proxy, before the negotiation. The channel's handlers are called for hosts only.
    func secureToProxy(_ transport: ChannelTransport, _ route: ProxyRoute, _ settings: TLSSettings) {
        let host = Resolver.withoutBrackets(route.host)
        secure(transport, settings, leadsToProxy: true, host: host) { () throws(TLSError) in
            try TLSEngine(
                context: TLSContext.shared(for: settings), descriptor: transport.socket.descriptor,
                hostName: host, port: route.port, leadsToProxy: true)
        }
    }

    private func secure(
        _ plain: ChannelTransport, _ settings: TLSSettings, leadsToProxy: Bool, host: String,
        _ make: () throws(TLSError) -> TLSEngine
    ) {
        do throws(TLSError) {
            let engine = try make()
            engine.ask(
                forTrust: !leadsToProxy && channel.handlers.onTrust != nil || settings.trustHandler != nil,
                forIdentity: !leadsToProxy && channel.handlers.onIdentityRequest != nil
                    || settings.identityHandler != nil)
            engine.state.questions?.trustHandler = settings.trustHandler
            engine.state.questions?.identityHandler = settings.identityHandler
            var transport = plain
            transport.engine = engine
            stage = .securing(transport, engine)
            channel.tell(.securing)
            guard case .securing = stage else { return }
            // An evicted handshake is served first, before connections that are still to be opened:
            // otherwise all of a burst would have begun before the first one is evicted.
            limit.enter(channel.configuration.handshakes, onEviction: sources.askForPassFirst)
            handshake(transport, engine)
        } catch {
            let failure = ChannelError.tls(error.naming(host: host))
            if leadsToProxy { failOnFirstHop(failure) } else { channel.fail(failure) }
        }
    }

    func handshake(_ transport: ChannelTransport, _ engine: TLSEngine) {
        do throws(TLSError) {
            switch try engine.handshake() {
            case .wantsRead: wait(for: .read, transport)
            case .wantsWrite: wait(for: .write, transport)
            case .waits:
                // The program may take long to answer, and that time must not count against the peer.
                limit.end()
                sources.setInterest([], of: transport.source)
                ask(engine)
            case .done:
                removeAsker()
                if engine.leadsToProxy { return finishSecuringToProxy(transport, engine) }
                finish(with: transport)
            }
        } catch {
            if engine.leadsToProxy { failOnFirstHop(.tls(error)) } else { channel.fail(.tls(error)) }
        }
    }

    private func wait(for interest: RunLoop.Source.Interest, _ transport: ChannelTransport) {
        limit.start(channel.configuration)
        sources.setInterest(interest, of: transport.source)
    }

    private func finishSecuringToProxy(_ transport: ChannelTransport, _ engine: TLSEngine) {
        guard let route = channel.configuration.route else { return }
        channel.tell(engine.securedEvent)
        // The channel's owner may have closed it in `tell`.
        if case .securing = stage { beginNegotiating(ProxyDialogue(over: transport, route)) }
    }

    // MARK: - Questions

    private func ask(_ engine: TLSEngine) {
        let questions = engine.state.questions
        guard let question = engine.takeQuestion(whenDecided: sources.askForPass) else { return }
        switch question {
        case .trust(let trust):
            if let onTrust = channel.handlers.onTrust, !engine.leadsToProxy { return onTrust(trust) }
            callOutside { [handler = questions?.trustHandler] in handler?.body(trust) }
        case .identity(let request):
            if let onIdentityRequest = channel.handlers.onIdentityRequest, !engine.leadsToProxy {
                return onIdentityRequest(request)
            }
            callOutside { [handler = questions?.identityHandler] in handler?.body(request) }
        }
    }

    /// Calls a handler of the program in a later pass of a scheduled mode, outside the gate, because the
    /// handler may do anything, even close the connection.
    private func callOutside(_ body: @escaping @Sendable () -> Void) {
        removeAsker()
        let call = OneCall(body)
        let source = RunLoop.Source { call.perform() }
        asker = source
        sources.add(source)
        source.signalAndWakeUp()
    }

    func removeAsker() {
        if let asker = asker.take() { sources.remove(asker) }
    }

    /// A closure that is released after its call: it holds the question, which answers itself by default when
    /// released.
    private final class OneCall: Sendable {
        private let body: Mutex<(@Sendable () -> Void)?>

        init(_ body: @escaping @Sendable () -> Void) { self.body = Mutex(body) }

        func perform() { body.withLock { $0.take() }?() }
    }
}

extension TLSEngine {
    /// The event for the channel's owner when the handshake is done.
    var securedEvent: ChannelEvent { .secured(version: version, cipher: cipher ?? "", subject: peerSubject) }
}
