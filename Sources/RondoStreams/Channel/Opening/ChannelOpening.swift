// The opening of a connection, from `open()` until bytes can be moved: look up the name, connect a socket,
// talk to a proxy, do the TLS handshake. It is a state machine that performs its own actions; each stage
// carries the data that exists only in it.
//
//     starting → resolving → connecting → connected → [securing, with the proxy] → negotiating → securing →
//     over
//
// Stages without work are skipped. STARTTLS begins at `upgrading`. The channel's owner is told of each step
// and may close the channel in response, so the stage is checked again after each call.
//
// Threads: the channel's, inside its gate. Results from elsewhere (the resolver, a program's answer) are
// stored under a lock, and a pass is asked for.

internal import RondoCore

/// The view that an opening has of its channel.
protocol ChannelOpeningOwner: AnyObject {
    var configuration: ChannelConfiguration { get }
    /// Called in place of the handlers of `TLSSettings`.
    var handlers: ChannelHandlers { get }
    func tell(_ event: ChannelEvent)
    /// The connection is open. The opening has ended before this call.
    func didOpen(_ transport: ChannelTransport)
    /// Closes the channel.
    func fail(_ error: ChannelError)
}

/// The opening of a connection, or the securing of one that was open.
final class ChannelOpening {
    /// The starting point of a channel.
    enum StartingPoint {
        /// Connect to the configuration's host, or to its route's.
        case host
        case address(SocketAddress)
        case socket(Socket)
    }

    enum Stage {
        /// Until the first pass.
        case starting(StartingPoint)
        case resolving(Resolver.Request, LookUpResult)
        case connecting(ConnectionAttempts)
        /// Only while the channel's owner is being told of the connection.
        case connected(ChannelTransport)
        case negotiating(ProxyDialogue)
        /// Secures an open connection in the next pass, or when TLS with a proxy has sent what was written
        /// before; the bytes received so far belong to TLS. Indirect, because every opening has the size of
        /// the largest case.
        indirect case upgrading(ChannelTransport, TLSSettings, received: [UInt8])
        /// During a handshake.
        case securing(ChannelTransport, TLSEngine)
        /// The connection is open, or the channel is closed.
        case over
    }

    // The channel owns its opening, so the reference stays valid while the opening is used. The channel's
    // deinit must not make the opening call it: an access to this reference would trap there.
    unowned let channel: any ChannelOpeningOwner
    let sources: any ChannelSources
    // Changed in `+TLS` too, because a handshake is a stage like the others, under the same limit, and asks
    // the program:
    var stage: Stage
    var limit: OpeningLimit
    /// Calls a handler of the settings, outside the gate.
    var asker: RunLoop.Source?

    init(_ point: StartingPoint, of channel: any ChannelOpeningOwner, _ sources: any ChannelSources) {
        self.channel = channel
        self.sources = sources
        stage = .starting(point)
        limit = OpeningLimit(sources)
    }

    /// Makes the opening that secures an open connection.
    init(
        upgrading transport: ChannelTransport, _ settings: TLSSettings, received: [UInt8],
        of channel: any ChannelOpeningOwner, _ sources: any ChannelSources
    ) {
        self.channel = channel
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

    /// Whether the connection is not with the host itself yet: a change of the configuration's TLS settings
    /// still takes effect.
    var isBeforeHost: Bool {
        switch stage {
        case .starting, .resolving, .connecting, .connected, .negotiating: true
        case .securing(_, let engine): engine.leadsToProxy
        case .upgrading, .over: false
        }
    }

    /// Replaces the settings by which an open connection is to be secured, as long as that has not begun.
    ///
    /// - Parameter settings: Nil is refused: the peer expects TLS by now.
    /// - Returns: False if they are refused, or TLS has begun, or there is no such connection.
    func replaceUpgrade(by settings: TLSSettings?) -> Bool {
        guard case .upgrading(let transport, _, let received) = stage, let settings else { return false }
        stage = .upgrading(transport, settings, received: received)
        return true
    }

    // MARK: - Inputs

    /// Continues in a pass that was requested, or that a timer has brought.
    func servePass() {
        guard checkLimit() else { return }
        switch stage {
        case .starting(let point): start(point)
        case .resolving(_, let result):
            guard let outcome = result.take() else { break }
            limit.noteAnswer()
            switch outcome {
            case .success(let addresses): found(addresses, of: channel.configuration.nextHop.host)
            case .failure(let error): failOnFirstHop(.resolve(error))
            }
        case .connecting(let attempts):
            if let refused = attempts.refusedSource { return handle(attempts.endRefused(refused)) }
            handle(attempts.checkDelays())
        case .negotiating(let dialogue):
            if dialogue.transport.hasPendingPlaintext { negotiate(.read, dialogue) }
        case .upgrading(let transport, let settings, let received):
            upgrade(transport, settings, received: received)
        case .securing(let transport, let engine):
            if limit.isEvicted { return channel.fail(limit.eviction(of: channel.configuration)) }
            // The program may have answered the handshake's question.
            handshake(transport, engine)
        case .connected, .over: break
        }
    }

    /// Continues because a source of the connection, or of an attempt to connect, is ready.
    func sourceIsReady(_ source: RunLoop.Source, _ ready: RunLoop.Source.Interest) {
        limit.noteAnswer()
        switch stage {
        case .connecting(let attempts):
            if ready.isEmpty, let refused = attempts.refusedSource {
                return handle(attempts.endRefused(refused))
            }
            handle(attempts.continueAttempt(of: source))
        case .negotiating(let dialogue): negotiate(ready, dialogue)
        case .upgrading(let transport, let settings, let received):
            upgrade(transport, settings, received: received)
        case .securing(let transport, let engine): handshake(transport, engine)
        case .starting, .resolving, .connected, .over: break
        }
    }

    /// Ends the opening, and closes the connection as far as it exists.
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

    private func start(_ point: StartingPoint) {
        limit.start(channel.configuration)
        switch point {
        case .socket(let socket):
            let source = sources.makeSource(socket.descriptor, interest: [])
            passProxy(over: ChannelTransport(socket: socket, source: source))
        case .address(let address): connect(to: [address])
        case .host: lookUp()
        }
    }

    private func lookUp() {
        let configuration = channel.configuration
        let (host, port) = configuration.nextHop
        let connect = configuration.connect ?? ConnectSettings()
        switch connect.target(host: host, port: port, isProxy: configuration.route != nil) {
        case .addresses(let addresses): self.connect(to: addresses)
        case .name(let name, let port): lookUp(name, port)
        case .impossible(let host, let port): failOnFirstHop(.connect(host: host, port: port, []))
        }
    }

    private func lookUp(_ name: String, _ number: UInt16) {
        let configuration = channel.configuration
        if let address = Resolver.numeric(host: name, port: number) {
            guard configuration.connect?.addressFamilies.contains(address) ?? true else {
                return failOnFirstHop(.connect(host: name, port: Int(number), []))
            }
            return connect(to: [address])
        }
        if configuration.resolver === Resolver.shared,
            let addresses = Resolver.loopback(host: name, port: number)
        {
            channel.tell(.resolving(host: name))
            if case .starting = stage { found(addresses, of: name) }
            return
        }
        let result = LookUpResult()
        let request = configuration.resolver.resolve(host: name, port: number) {
            [askForPass = sources.askForPass] found in
            result.put(found)
            askForPass()
        }
        stage = .resolving(request, result)
        channel.tell(.resolving(host: name))
    }

    /// Connects to the addresses found, as far as their families are wanted.
    private func found(_ addresses: [SocketAddress], of host: String) {
        guard let families = channel.configuration.connect?.addressFamilies, families != .any else {
            return connect(to: addresses)
        }
        let wanted = addresses.filter(families.contains)
        if wanted.isEmpty { return failOnFirstHop(.resolve(ResolveError(host: host, code: EAI_NONAME))) }
        connect(to: wanted)
    }

    private func connect(to addresses: [SocketAddress]) {
        let attempts = ConnectionAttempts(sources, from: channel.configuration.connect?.localEnd)
        stage = .connecting(attempts)
        handle(attempts.start(addresses))
    }

    private func handle(_ progress: ConnectionAttempts.Progress?) {
        switch progress {
        case .connecting(let address): channel.tell(.connecting(address))
        case .connectedAtOnce(let transport, let address):
            stage = .connected(transport)
            channel.tell(.connecting(address))
            if case .connected = stage { handle(.connected(transport, address)) }
        case .connected(let transport, let address):
            stage = .connected(transport)
            if let keepAlive = channel.configuration.connect?.keepAlive {
                Socket.apply(keepAlive, to: transport.socket.descriptor)
            }
            channel.tell(.connected(address))
            if case .connected = stage { passProxy(over: transport) }
        case .failed(let errors):
            let (host, port) = channel.configuration.nextHop
            failOnFirstHop(.connect(host: host, port: port, errors))
        case nil: break
        }
    }

    /// Fails with an error of the first hop, which is the proxy where there is a route.
    func failOnFirstHop(_ error: ChannelError) {
        let configuration = channel.configuration
        channel.fail(configuration.route == nil ? error : .proxy(host: configuration.host, error))
    }

    // MARK: - From connected to open

    /// Begins with the proxy, if there is one, otherwise with the host.
    private func passProxy(over transport: ChannelTransport) {
        stage = .connected(transport)
        guard let route = channel.configuration.route else { return secureHost(over: transport) }
        if let settings = route.tls {
            secureToProxy(transport, route, settings)
        } else {
            beginNegotiating(ProxyDialogue(over: transport, route))
        }
    }

    func beginNegotiating(_ begun: ProxyDialogue) {
        var dialogue = begun
        do throws(ChannelError) {
            handle(try dialogue.begin(), dialogue)
        } catch {
            channel.fail(error.ofProxy(onWayTo: channel.configuration.host))
        }
    }

    private func negotiate(_ ready: RunLoop.Source.Interest, _ before: ProxyDialogue) {
        var dialogue = before
        do throws(ChannelError) {
            handle(try dialogue.advance(ready), dialogue)
        } catch {
            return channel.fail(error.ofProxy(onWayTo: channel.configuration.host))
        }
        // The end of the dialogue is reported by the next event, `secured` or `open`.
        if case .negotiating = stage, dialogue.received > before.received { channel.tell(.negotiating) }
    }

    private func handle(_ progress: ProxyDialogue.Progress, _ dialogue: ProxyDialogue) {
        let transport = dialogue.transport
        switch progress {
        case .done: secureHost(over: transport)
        case .waits(let awaited):
            stage = .negotiating(dialogue)
            sources.setInterest(awaited, of: transport.source)
            // The socket does not become readable for bytes that are decrypted already.
            if transport.hasPendingPlaintext { sources.askForPass() }
        }
    }

    /// Continues with the host itself as the peer, perhaps behind a proxy's TLS.
    private func secureHost(over transport: ChannelTransport) {
        if let settings = channel.configuration.tls {
            secure(transport, settings, received: [])
        } else {
            finish(with: transport)
        }
    }

    /// Ends the opening: the connection is open.
    func finish(with transport: ChannelTransport) {
        end()
        channel.didOpen(transport)
    }

    // MARK: - The time limit

    /// - Returns: False if the limit was reached; the channel is closed then.
    private func checkLimit() -> Bool {
        guard limit.takeExpiry(hasAnswer: hasAnswer) else { return true }
        let configuration = channel.configuration
        if isBeforeHost {
            let (host, port) = configuration.nextHop
            failOnFirstHop(limit.timedOut(host: host, port: port))
        } else {
            channel.fail(limit.timedOut(host: configuration.host, port: configuration.port))
        }
        return false
    }

    /// Whether something has come for which the opening waits.
    private var hasAnswer: Bool {
        switch stage {
        case .resolving(_, let result): result.hasCome
        case .connecting(let attempts): attempts.hasAnswer
        case .connected, .negotiating, .upgrading, .securing: transport?.socket.isReadable() ?? false
        case .starting, .over: false
        }
    }
}
