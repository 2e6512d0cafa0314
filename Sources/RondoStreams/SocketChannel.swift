package import RondoCore
internal import Synchronization

/// One TCP or TLS connection to a host, driven by the run loops and modes that it is scheduled in.
///
/// It looks the name up, connects, secures, and then moves bytes when it is asked to; it tells its owner by
/// `handler`, in a pass of a scheduled mode, and never inside a call of the owner's. Both the public socket
/// streams and the HTTP exchange stand on it.
///
/// One thread at a time: its owner sees to that, by `gate` where several loops serve it. All that comes from
/// a run loop goes through the gate before it touches anything here.
package final class SocketChannel {
    package struct Configuration: Sendable, Equatable {
        package var host: String
        package var port: Int
        /// Nil: plain TCP.
        package var tls: TLSSettings?

        package init(host: String, port: Int, tls: TLSSettings? = nil) {
            self.host = host
            self.port = port
            self.tls = tls
        }
    }

    package enum Event: Equatable, Sendable {
        case resolving(host: String)
        case connecting(SocketAddress)
        case connected(SocketAddress)
        case secured(version: String, cipher: String, subject: String)
        /// Bytes can be read and written from here on.
        case open
        /// A read may find something; only while `wantsRead`, in every pass while bytes wait.
        case readable
        /// A write may be taken; only while `wantsWrite`.
        case writable
        /// The last event. The descriptor is closed already.
        case failed(ChannelError)
    }

    package enum ReadResult: Equatable, Sendable {
        case bytes(Int)
        case wouldBlock
        /// The peer has ended its side in order: FIN, or close_notify over TLS.
        case end
        /// TLS only: FIN without close_notify, which somebody in between could have sent.
        case truncated
    }

    private enum Phase {
        case created
        /// Opened, and waiting for its first pass.
        case starting
        case resolving(Resolver.Request)
        case connecting(Connecting)
        case securing(Connected, TLSEngine)
        case open(Connected, TLSEngine?)
        case closed
    }

    private struct Connecting {
        var connector = Connector()
        var attempts: [Connector.AttemptID: Attempt] = [:]
    }

    private struct Attempt {
        let socket: Socket
        let address: SocketAddress
        let source: RunLoop.Source
    }

    private struct Connected {
        let socket: Socket
        let address: SocketAddress
        let source: RunLoop.Source
    }

    private struct Place: Equatable {
        let loop: RunLoop
        let mode: RunLoop.Mode
    }

    /// A way to the channel for callbacks of run loops and of the resolver.
    ///
    /// `@unchecked Sendable`: whoever follows it goes through the gate first.
    private struct Way: @unchecked Sendable {
        weak var channel: SocketChannel?

        func enter(_ body: (SocketChannel) -> Void) {
            guard let channel else { return }
            channel.interest.gate { body(channel) }
        }
    }

    package let configuration: Configuration
    /// What any thread may touch.
    package let interest = ChannelInterest()
    package var handler: ((Event) -> Void)?
    package private(set) var remoteAddress: SocketAddress?
    /// The name of its sources in traces.
    package var label: String? {
        didSet { if label != oldValue { for source in sources { source.label = label } } }
    }

    private var phase = Phase.created
    private var places: [Place] = []
    /// In the channel's modes from the first schedule on, so that they are not empty while a name is looked
    /// up; served for whatever comes from elsewhere than a descriptor.
    private var turns: RunLoop.Source?
    private var delays: [Timer] = []
    private let answer = Mutex<Resolver.Answer?>(nil)
    /// TLS may have to write before it can read on, and the reverse.
    private var readWaitsForWrite = false
    private var writeWaitsForRead = false

    package init(_ configuration: Configuration) {
        self.configuration = configuration
    }

    deinit { close() }

    // MARK: - Schedule

    /// Runs what run loops bring; see `ChannelInterest.Gate`. An owner that leaves sets another one.
    package var gate: ChannelInterest.Gate {
        get { interest.gate }
        set { interest.gate = newValue }
    }

    /// Also while open. `.common` stands for every common mode; several loops and modes may be given.
    package func schedule(in loop: RunLoop, forMode mode: RunLoop.Mode) {
        let place = Place(loop: loop, mode: mode)
        guard !places.contains(place), !isClosed else { return }
        places.append(place)
        if turns == nil {
            let way = Way(channel: self)
            let source = RunLoop.Source { way.enter { $0.turn() } }
            source.label = label
            turns = source
        }
        for source in sources { loop.add(source, forMode: mode) }
        for timer in delays { loop.add(timer, forMode: mode) }
        // Opened before it had anywhere to start.
        if case .starting = phase { turns?.signalAndWakeUp() }
    }

    package func remove(from loop: RunLoop, forMode mode: RunLoop.Mode) {
        let place = Place(loop: loop, mode: mode)
        places.removeAll { $0 == place }
        for source in sources { loop.remove(source, forMode: mode) }
        for timer in delays { loop.remove(timer, forMode: mode) }
    }

    package func removeFromAllLoops() {
        for place in places { remove(from: place.loop, forMode: place.mode) }
    }

    private var sources: [RunLoop.Source] {
        let descriptors: [RunLoop.Source] =
            switch phase {
            case .connecting(let connecting): connecting.attempts.values.map(\.source)
            case .securing(let connected, _), .open(let connected, _): [connected.source]
            case .created, .starting, .resolving, .closed: []
            }
        return (turns.map { [$0] } ?? []) + descriptors
    }

    /// Watches again what `ChannelInterest.suspend()` has let go.
    package func resumeInterest() {
        interest.resume()
        turns?.signalAndWakeUp()
    }

    // MARK: - Opening and closing

    /// Starts with the first pass of a scheduled mode; no event comes before.
    package func open() {
        guard case .created = phase else { return }
        phase = .starting
        turns?.signalAndWakeUp()
    }

    /// Ends everything without a further event; over TLS, close_notify is sent if the socket takes it.
    package func close() {
        switch phase {
        case .closed: return
        case .created, .starting: break
        case .resolving(let request): request.cancel()
        case .connecting(let connecting):
            for attempt in connecting.attempts.values { dispose(attempt) }
        case .securing(let connected, let engine):
            release(connected, engine)
        case .open(let connected, let engine):
            engine?.shutdown()
            release(connected, engine)
        }
        phase = .closed
        stopDelays()
        turns?.invalidate()
        turns = nil
        places = []
    }

    private func release(_ connected: Connected, _ engine: TLSEngine?) {
        // Before the descriptor is closed: its number may be another one's at once (rule SRC-27).
        interest.remove(connected.source)
        connected.source.invalidate()
        engine?.detach()
        connected.socket.close()
    }

    private func dispose(_ attempt: Attempt) {
        interest.remove(attempt.source)
        attempt.source.invalidate()
        attempt.socket.close()
    }

    private func fail(_ error: ChannelError) {
        let handler = handler
        close()
        handler?(.failed(error))
    }

    package var isOpen: Bool { if case .open = phase { true } else { false } }

    private var isClosed: Bool { if case .closed = phase { true } else { false } }

    // MARK: - Turns of the signalled source

    private func turn() {
        switch phase {
        case .starting:
            start()
        case .resolving:
            let answer = answer.withLock { answer in
                defer { answer = nil }
                return answer
            }
            switch answer {
            case .success(let addresses): connect(to: addresses)
            case .failure(let error): fail(.resolve(error))
            case nil: break
            }
        case .open(_, let engine):
            if wantsRead, engine?.hasPendingPlaintext ?? false { readable() }
        case .connecting:
            // The delay may have ended while somebody else was inside the gate.
            delayIsOver()
        case .created, .securing, .closed:
            break
        }
    }

    private func start() {
        guard let port = UInt16(exactly: configuration.port) else {
            return fail(.connect(host: configuration.host, port: configuration.port, []))
        }
        let host =
            configuration.host.hasPrefix("[") && configuration.host.hasSuffix("]")
            ? String(configuration.host.dropFirst().dropLast()) : configuration.host
        if let address = Resolver.numeric(host: host, port: port) { return connect(to: [address]) }
        let way = Way(channel: self)
        let turns = turns
        phase = .resolving(
            Resolver.shared.resolve(host: host, port: port) { answer in
                // On the resolver's thread: left in the box, looked at on a loop.
                way.channel?.answer.withLock { $0 = answer }
                turns?.signalAndWakeUp()
            })
        handler?(.resolving(host: configuration.host))
    }

    // MARK: - Connecting

    private func connect(to addresses: [SocketAddress]) {
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
                connected(Connected(socket: attempt.socket, address: attempt.address, source: attempt.source))
            case .failed(let errors):
                fail(.connect(host: configuration.host, port: configuration.port, errors))
            }
        }
    }

    private func startAttempt(_ id: Connector.AttemptID, _ address: SocketAddress) {
        guard case .connecting(var connecting) = phase else { return }
        do throws(SocketError) {
            let socket = try Socket.connecting(to: address)
            let way = Way(channel: self)
            let source = RunLoop.Source(fileDescriptor: socket.descriptor, interest: .write) { _, ready in
                way.enter { $0.descriptorIsReady(id, ready) }
            }
            source.label = label
            connecting.attempts[id] = Attempt(socket: socket, address: address, source: source)
            phase = .connecting(connecting)
            interest.set(.write, of: source)
            for place in places { place.loop.add(source, forMode: place.mode) }
            handler?(.connecting(address))
        } catch {
            let actions = connecting.connector.attemptFailed(id, error, now: now)
            phase = .connecting(connecting)
            perform(actions)
        }
    }

    private func descriptorIsReady(_ id: Connector.AttemptID, _ ready: RunLoop.Source.Interest) {
        switch phase {
        case .connecting(var connecting):
            guard let attempt = connecting.attempts[id] else { return }
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
        case .securing(let connected, let engine):
            handshake(connected, engine)
        case .open(let connected, let engine):
            move(ready, connected, engine)
        case .created, .starting, .resolving, .closed:
            break
        }
    }

    /// One timer for each loop: a timer belongs to one.
    private func delay(until moment: UInt64) {
        stopDelays()
        let seconds = Double(Int64(bitPattern: moment &- now)) / 1e9
        let way = Way(channel: self)
        for loop in Set(places.map(\.loop)) {
            let timer = Timer(timeInterval: max(0, seconds), repeats: false) { _ in
                way.enter { $0.delayIsOver() }
            }
            delays.append(timer)
            for place in places where place.loop == loop { loop.add(timer, forMode: place.mode) }
        }
    }

    private func delayIsOver() {
        guard case .connecting(var connecting) = phase else { return }
        let actions = connecting.connector.timeReached(now)
        phase = .connecting(connecting)
        perform(actions)
    }

    private func stopDelays() {
        for timer in delays { timer.invalidate() }
        delays = []
    }

    private func connected(_ connected: Connected) {
        stopDelays()
        remoteAddress = connected.address
        guard let settings = configuration.tls else {
            phase = .open(connected, nil)
            updateInterest()
            handler?(.connected(connected.address))
            if isOpen { handler?(.open) }
            return
        }
        do throws(TLSError) {
            let engine = try TLSEngine(
                context: TLSContext.shared(for: settings), descriptor: connected.socket.descriptor,
                hostName: configuration.host.trimmingCharacters(in: ["[", "]"]))
            phase = .securing(connected, engine)
            handler?(.connected(connected.address))
            if case .securing = phase { handshake(connected, engine) }
        } catch {
            interest.remove(connected.source)
            phase = .open(connected, nil)
            fail(.tls(error.naming(host: configuration.host)))
        }
    }

    // MARK: - Securing

    private func handshake(_ connected: Connected, _ engine: TLSEngine) {
        do throws(TLSError) {
            switch try engine.handshake() {
            case .wantsRead: interest.set(.read, of: connected.source)
            case .wantsWrite: interest.set(.write, of: connected.source)
            case .done:
                phase = .open(connected, engine)
                updateInterest()
                handler?(
                    .secured(
                        version: engine.version, cipher: engine.cipher ?? "",
                        subject: engine.peerCertificates.first?.subject ?? ""))
                if isOpen { handler?(.open) }
            }
        } catch {
            fail(.tls(error))
        }
    }

    // MARK: - Moving bytes

    /// Whether `readable` is wanted. While it is not, the kernel's buffer fills and TCP holds the peer back.
    package var wantsRead = false {
        didSet {
            guard wantsRead != oldValue else { return }
            updateInterest()
            if wantsRead { signalIfPlaintextIsPending() }
        }
    }

    /// Whether `writable` is wanted: after a write that was not taken in full.
    package var wantsWrite = false {
        didSet { if wantsWrite != oldValue { updateInterest() } }
    }

    /// Reads what is there, at most as much as `buffer` takes.
    package func read(into buffer: UnsafeMutableRawBufferPointer) throws(ChannelError) -> ReadResult {
        guard case .open(let connected, let engine) = phase else { throw notOpen }
        guard let engine else {
            do throws(SocketError) {
                switch try connected.socket.read(into: buffer) {
                case .bytes(let count): return .bytes(count)
                case .wantsRead: return .wouldBlock
                case .end: return .end
                }
            } catch {
                throw broken(error)
            }
        }
        do throws(TLSError) {
            let result = try engine.read(into: buffer)
            setReadWaitsForWrite(result == .wantsWrite)
            switch result {
            case .bytes(let count): return .bytes(count)
            case .wantsRead, .wantsWrite: return .wouldBlock
            case .end: return .end
            case .truncated: return .truncated
            }
        } catch {
            throw .tls(error)
        }
    }

    /// Hands bytes over, perhaps fewer than given.
    ///
    /// - Returns: How many were taken; 0 means that nothing can be taken now: set `wantsWrite`.
    package func write(_ bytes: UnsafeRawBufferPointer) throws(ChannelError) -> Int {
        guard case .open(let connected, let engine) = phase else { throw notOpen }
        guard let engine else {
            do throws(SocketError) {
                switch try connected.socket.write(bytes) {
                case .bytes(let count): return count
                case .wantsWrite: return 0
                }
            } catch {
                throw broken(error)
            }
        }
        do throws(TLSError) {
            let result = try engine.write(bytes)
            writeWaitsForRead = result == .wantsRead
            updateInterest()
            if case .bytes(let count) = result { return count }
            return 0
        } catch {
            throw .tls(error)
        }
    }

    /// Plaintext that was decrypted already: a read gives it, however quiet the socket is.
    package var hasBufferedBytes: Bool {
        if case .open(_, let engine?) = phase { engine.hasPendingPlaintext } else { false }
    }

    /// Whether a read would find something, bytes or the end; a look that changes nothing. (That of
    /// `isAliveWhenIdle` makes OpenSSL read, and the socket falls silent.)
    package var hasUnreadBytes: Bool {
        guard case .open(let connected, _) = phase else { return false }
        return hasBufferedBytes || connected.socket.isReadable()
    }

    /// Of a connection that nobody uses: whether it is as it should be, open and silent.
    package var isAliveWhenIdle: Bool {
        guard case .open(let connected, let engine) = phase else { return false }
        return engine?.isQuiet() ?? connected.socket.isQuiet()
    }

    private func move(_ ready: RunLoop.Source.Interest, _ connected: Connected, _ engine: TLSEngine?) {
        let canRead = ready.contains(.read) || (readWaitsForWrite && ready.contains(.write))
        var canWrite = ready.contains(.write) || (writeWaitsForRead && ready.contains(.read))
        if canWrite, let engine, engine.hasUnsentBytes {
            do throws(TLSError) {
                canWrite = try engine.flush() == .done
            } catch {
                // Thrown again by the next write; what the peer has said is still read until then.
                canWrite = true
            }
            updateInterest()
        }
        if canRead && wantsRead { readable() }
        if canWrite && wantsWrite && isOpen { handler?(.writable) }
    }

    private func readable() {
        handler?(.readable)
        signalIfPlaintextIsPending()
    }

    private func signalIfPlaintextIsPending() {
        if wantsRead && hasBufferedBytes { turns?.signalAndWakeUp() }
    }

    private func setReadWaitsForWrite(_ waits: Bool) {
        guard waits != readWaitsForWrite else { return }
        readWaitsForWrite = waits
        updateInterest()
    }

    private func updateInterest() {
        guard case .open(let connected, let engine) = phase else { return }
        var wanted: RunLoop.Source.Interest = []
        if wantsRead || writeWaitsForRead { wanted.insert(.read) }
        if wantsWrite || engine?.hasUnsentBytes ?? false || (wantsRead && readWaitsForWrite) {
            wanted.insert(.write)
        }
        interest.set(wanted, of: connected.source)
    }

    private func broken(_ error: SocketError) -> ChannelError {
        .broken(host: configuration.host, port: configuration.port, error)
    }

    private var notOpen: ChannelError { broken(SocketError(code: ENOTCONN, operation: .read)) }
}

@available(*, unavailable)
extension SocketChannel: Sendable {}
