// The way of a connection from `open()` until bytes can be moved: the name is looked up, a socket is connected, a proxy is
// spoken to, TLS is agreed upon. A state machine that performs its own actions; each stage carries what exists only in it.
//
//     starting → resolving → connecting → connected → [securing, with the proxy] → negotiating → securing → over
//
// Each arrow may be skipped where there is nothing to do. STARTTLS begins at `upgrading`. The owner is told of each step
// and may close the channel in answer: after each call the stage is asked again.
//
// Threads: the channel's, inside its gate. What comes from elsewhere (the resolver, a program's answer) leaves its news
// behind a lock and asks for a pass.

internal import RondoCore

/// The channel, as its opening knows it.
protocol ChannelOpeningOwner: AnyObject {
    var configuration: ChannelConfiguration { get }
    /// Asked about the peer, in place of `TLSSettings.trustHandler`.
    var onTrust: ((TLSTrust) -> Void)? { get }
    /// Asked for an identity, in place of `TLSSettings.identityHandler`.
    var onIdentityRequest: ((TLSIdentityRequest) -> Void)? { get }
    func tell(_ event: ChannelEvent)
    /// Nothing is left to be opened. The opening is over before.
    func isOpened(_ transport: ChannelTransport)
    /// Closes the channel.
    func fail(_ error: ChannelError)
}

/// The opening of a connection, or the securing of one that was open.
final class ChannelOpening {
    /// What a channel begins with.
    enum Origin {
        /// The configuration's host, or its route's.
        case host
        case address(SocketAddress)
        case socket(Socket)
    }

    enum Stage {
        /// Waits for the first pass.
        case starting(Origin)
        case resolving(Resolver.Request, LookUpAnswer)
        case connecting(ConnectionAttempts)
        /// For as long as the owner is told so.
        case connected(ChannelTransport)
        case negotiating(ProxyDialogue)
        /// To be secured in the next pass; what was received already belongs to TLS. Indirect, because every opening has the
        /// size of the largest case.
        indirect case upgrading(ChannelTransport, TLSSettings, received: [UInt8])
        /// With the handshake under way.
        case securing(ChannelTransport, TLSEngine)
        /// Open, or closed.
        case over
    }

    // The channel owns its opening. It is not told of anything in its deinit, where this reference would trap.
    unowned let owner: any ChannelOpeningOwner
    let sources: any ChannelSources
    // Also changed in `+TLS`:
    var stage: Stage
    var limit: OpeningLimit
    /// Calls a handler of the settings, outside the gate.
    var asker: RunLoop.Source?

    init(_ origin: Origin, of owner: any ChannelOpeningOwner, _ sources: any ChannelSources) {
        self.owner = owner
        self.sources = sources
        stage = .starting(origin)
        limit = OpeningLimit(sources)
    }

    /// Secures a connection that was open.
    init(
        upgrading transport: ChannelTransport, _ settings: TLSSettings, received: [UInt8],
        of owner: any ChannelOpeningOwner, _ sources: any ChannelSources
    ) {
        self.owner = owner
        self.sources = sources
        stage = .upgrading(transport, settings, received: received)
        limit = OpeningLimit(sources)
    }

    // MARK: - State

    /// The connected socket, if there is one.
    var transport: ChannelTransport? {
        switch stage {
        case .connected(let transport), .upgrading(let transport, _, _), .securing(let transport, _):
            transport
        case .negotiating(let dialogue): dialogue.transport
        case .starting, .resolving, .connecting, .over: nil
        }
    }

    /// Whether the configuration's TLS is still to be looked at.
    var maySetTLS: Bool {
        switch stage {
        case .starting, .resolving, .connecting, .connected, .negotiating: true
        case .securing(_, let engine): engine.leadsToProxy
        case .upgrading, .over: false
        }
    }

    // MARK: - Inputs

    /// A pass that was asked for, or a timer's.
    func goOn() {
        guard checkLimit() else { return }
        switch stage {
        case .starting(let origin): start(origin)
        case .resolving(_, let answer):
            switch answer.take() {
            case .success(let addresses): found(addresses, of: owner.configuration.nextHop.host)
            case .failure(let error): failOnFirstHop(.resolve(error))
            case nil: break
            }
        case .connecting(let attempts):
            if let refused = attempts.refusedSource { return take(attempts.endRefused(refused)) }
            take(attempts.checkDelays())
        case .negotiating(let dialogue):
            if dialogue.transport.hasPendingPlaintext { negotiate(.read, dialogue) }
        case .upgrading(let transport, let settings, let received):
            secure(transport, settings, received: received)
        case .securing(let transport, let engine):
            if limit.hasGivenWay { return owner.fail(limit.gaveWay(owner.configuration)) }
            // A question of the handshake's may have been answered.
            handshake(transport, engine)
        case .connected, .over: break
        }
    }

    /// A source of the connection, or of an attempt to make it, is ready.
    func sourceIsReady(_ source: RunLoop.Source, _ ready: RunLoop.Source.Interest) {
        switch stage {
        case .connecting(let attempts):
            if ready.isEmpty, let refused = attempts.refusedSource {
                return take(attempts.endRefused(refused))
            }
            take(attempts.isReady(source))
        case .negotiating(let dialogue): negotiate(ready, dialogue)
        case .securing(let transport, let engine): handshake(transport, engine)
        case .starting, .resolving, .connected, .upgrading, .over: break
        }
    }

    /// Ends it, and closes what there is of a connection.
    func close(closesDescriptor: Bool) {
        let stage = stage
        end()
        switch stage {
        case .starting(.socket(let socket)): socket.close(closesDescriptor: closesDescriptor)
        case .resolving(let request, _): request.cancel()
        case .connecting(let attempts): attempts.cancel()
        case .connected(let transport), .upgrading(let transport, _, _), .securing(let transport, _):
            close(transport, closesDescriptor)
        case .negotiating(let dialogue): close(dialogue.transport, closesDescriptor)
        case .starting, .over: break
        }
    }

    private func close(_ transport: ChannelTransport, _ closesDescriptor: Bool) {
        sources.remove(transport.source)
        transport.close(closesDescriptor: closesDescriptor)
    }

    private func end() {
        stage = .over
        limit.end()
        removeAsker()
    }

    // MARK: - The name and the socket

    private func start(_ origin: Origin) {
        limit.start(owner.configuration)
        switch origin {
        case .socket(let socket):
            let source = sources.makeSource(socket.descriptor, interest: [])
            isConnected(ChannelTransport(socket: socket, source: source))
        case .address(let address): connect(to: [address])
        case .host: lookUp()
        }
    }

    private func lookUp() {
        let configuration = owner.configuration
        let (host, port) = configuration.nextHop
        let connect = configuration.connect ?? ConnectSettings()
        switch connect.target(host: host, port: port, isProxy: configuration.route != nil) {
        case .addresses(let addresses): self.connect(to: addresses)
        case .name(let name, let port): lookUp(name, port)
        case .impossible(let host, let port): failOnFirstHop(.connect(host: host, port: port, []))
        }
    }

    private func lookUp(_ name: String, _ number: UInt16) {
        let configuration = owner.configuration
        if let address = Resolver.numeric(host: name, port: number) {
            guard configuration.connect?.addressFamilies.contains(address) ?? true else {
                return failOnFirstHop(.connect(host: name, port: Int(number), []))
            }
            return connect(to: [address])
        }
        if configuration.resolver === Resolver.shared,
            let addresses = Resolver.loopback(host: name, port: number)
        {
            owner.tell(.resolving(host: name))
            if case .starting = stage { found(addresses, of: name) }
            return
        }
        let answer = LookUpAnswer()
        let request = configuration.resolver.resolve(host: name, port: number) {
            [signal = sources.signal] found in
            answer.put(found)
            signal()
        }
        stage = .resolving(request, answer)
        owner.tell(.resolving(host: name))
    }

    /// The addresses of a host are known, of which only some kinds may be wanted.
    private func found(_ addresses: [SocketAddress], of host: String) {
        guard let families = owner.configuration.connect?.addressFamilies, families != .any else {
            return connect(to: addresses)
        }
        let wanted = addresses.filter(families.contains)
        if wanted.isEmpty { return failOnFirstHop(.resolve(ResolveError(host: host, code: EAI_NONAME))) }
        connect(to: wanted)
    }

    private func connect(to addresses: [SocketAddress]) {
        let attempts = ConnectionAttempts(sources, from: owner.configuration.connect?.localEnd)
        stage = .connecting(attempts)
        take(attempts.start(addresses))
    }

    private func take(_ progress: ConnectionAttempts.Progress?) {
        switch progress {
        case .connecting(let address): owner.tell(.connecting(address))
        case .connectedAtOnce(let transport, let address):
            stage = .connected(transport)
            owner.tell(.connecting(address))
            if case .connected = stage { take(.connected(transport, address)) }
        case .connected(let transport, let address):
            stage = .connected(transport)
            owner.tell(.connected(address))
            if case .connected = stage { isConnected(transport) }
        case .failed(let errors):
            let (host, port) = owner.configuration.nextHop
            failOnFirstHop(.connect(host: host, port: port, errors))
        case nil: break
        }
    }

    /// Where there is a route, the first hop is its proxy.
    func failOnFirstHop(_ error: ChannelError) {
        let configuration = owner.configuration
        owner.fail(configuration.route == nil ? error : .proxy(host: configuration.host, error))
    }

    // MARK: - From connected to open

    private func isConnected(_ transport: ChannelTransport) {
        stage = .connected(transport)
        guard let route = owner.configuration.route else { return isDirect(transport) }
        if let settings = route.tls {
            secureToProxy(transport, route, settings)
        } else {
            beginNegotiating(ProxyDialogue(over: transport, route))
        }
    }

    func beginNegotiating(_ begun: ProxyDialogue) {
        var dialogue = begun
        do throws(ChannelError) {
            take(try dialogue.begin(), dialogue)
        } catch {
            owner.fail(error)
        }
    }

    private func negotiate(_ ready: RunLoop.Source.Interest, _ before: ProxyDialogue) {
        var dialogue = before
        do throws(ChannelError) {
            take(try dialogue.goOn(ready), dialogue)
        } catch {
            return owner.fail(error)
        }
        // Of the end of it another event tells.
        if case .negotiating = stage, dialogue.received > before.received { owner.tell(.negotiating) }
    }

    private func take(_ progress: ProxyDialogue.Progress, _ dialogue: ProxyDialogue) {
        let transport = dialogue.transport
        switch progress {
        case .done: isDirect(transport)
        case .waits(let awaited):
            stage = .negotiating(dialogue)
            sources.setInterest(awaited, of: transport.source)
            // No socket announces bytes that are decrypted already.
            if transport.hasPendingPlaintext { sources.signal() }
        }
    }

    /// From here on the peer is the host itself, behind a proxy's TLS perhaps.
    private func isDirect(_ transport: ChannelTransport) {
        if let settings = owner.configuration.tls {
            secure(transport, settings, received: [])
        } else {
            isOpen(transport)
        }
    }

    func isOpen(_ transport: ChannelTransport) {
        end()
        owner.isOpened(transport)
    }

    // MARK: - The limit of time

    /// - Returns: False: it was reached, and the channel is closed.
    private func checkLimit() -> Bool {
        guard limit.isReached(mayHaveMore: transport?.socket.isReadable() ?? false) else { return true }
        owner.fail(limit.timedOut(owner.configuration))
        return false
    }
}
