internal import FoundationNetworking
internal import RondoCore
internal import RondoMutex

/// The client of a `URLProtocol` of the program that loads a request: the protocol's messages wait here for
/// the load (rule UC-66).
///
/// `@unchecked Sendable`: `instance` is created once, and started and stopped by one thread at a time; the
/// messages are behind the lock.
final class ProtocolBridge: NSObject, URLProtocolClient, @unchecked Sendable {
    /// A message of the protocol to the load. `@unchecked Sendable`: it is handed over once, through the
    /// lock.
    enum Message: @unchecked Sendable {
        case redirect(URLRequest, URLResponse)
        case response(URLResponse, URLCache.StoragePolicy)
        case data(Data)
        case finish
        case fail(any Error)
        case challenge(URLAuthenticationChallenge)
        case cancelledChallenge(URLAuthenticationChallenge)
    }

    /// The maximum of bytes that may wait. There is no way to make a protocol pause.
    static let maximumWaitingBytes = 1 << 30

    private struct State {
        var messages = FIFO<Message>()
        var bytes = 0
        /// Messages are ignored from here on.
        var isOver = false
        var isStopped = false

        /// - Returns: All messages, which the caller releases with no lock held: that may run code of the
        ///   program.
        mutating func takeMessages() -> FIFO<Message> {
            defer { messages = FIFO() }
            return messages
        }
    }

    private let state = Mutex(State())
    private let onMessage: @Sendable () -> Void
    private var instance: URLProtocol?
    /// The loop on which the protocol runs. Until the start nil for the calling thread's, which is that of a
    /// scheduled loop.
    private var loop: RunLoop?
    private let modes: [LoopMode]

    /// - Parameters:
    ///   - cached: The stored response; the protocol decides whether to use it or to load.
    ///   - loop: The loop on which the protocol is to run, if that is not the one that serves the load.
    ///   - modes: The modes in which it is started and stopped, if that is not done at once.
    init(
        _ type: URLProtocol.Type, request: URLRequest, cached: CachedURLResponse? = nil, on loop: RunLoop?,
        modes: [LoopMode] = [], onMessage: @escaping @Sendable () -> Void
    ) {
        self.onMessage = onMessage
        self.loop = loop
        self.modes = modes
        super.init()
        instance = type.init(request: request, cachedResponse: cached, client: self)
    }

    func start() {
        guard let loop else {
            loop = .current
            instance?.startLoading()
            return
        }
        loop.perform(inModes: modes(of: loop)) { [self] in if !isOver { instance?.startLoading() } }
    }

    /// Stops the protocol, on the thread on which it was started (rule UC-66); its messages are ignored from
    /// here on.
    func stop() {
        let (wasStopped, dropped) = state.withLock { state in
            defer {
                state.isOver = true
                state.isStopped = true
            }
            return (state.isStopped, state.takeMessages())
        }
        withExtendedLifetime(dropped) {}
        if wasStopped { return }
        guard let loop, !loop.isCurrent else { return stopInstance() }
        let stop = DeferredStop(self)
        loop.perform(inModes: modes(of: loop)) { stop.perform() }
    }

    private func stopInstance() { instance.take()?.stopLoading() }

    private func modes(of loop: RunLoop) -> [RunLoop.Mode] {
        let modes = modes.filter { $0.loop === loop }.map(\.mode)
        return modes.isEmpty ? [.default] : modes
    }

    /// Stops the protocol on the loop's thread, or where the loop drops its blocks because its thread has
    /// ended.
    private final class DeferredStop: Sendable {
        private let bridge: ProtocolBridge

        init(_ bridge: ProtocolBridge) { self.bridge = bridge }
        deinit { perform() }

        func perform() { bridge.stopInstance() }
    }

    private var isOver: Bool { state.withLock { $0.isOver } }

    /// The next message; nil if none waits.
    func next() -> Message? {
        state.withLock { state in
            let message = state.messages.popFirst()
            if case .data(let data)? = message { state.bytes -= data.count }
            return message
        }
    }

    private func add(_ message: Message) {
        let (isTaken, dropped) = state.withLock { state -> (Bool, FIFO<Message>?) in
            guard !state.isOver else { return (false, nil) }
            if case .data(let data) = message {
                state.bytes += data.count
                if state.bytes > Self.maximumWaitingBytes {
                    state.isOver = true
                    let dropped = state.takeMessages()
                    state.messages.append(
                        .fail(URLErrors.error(.collectedTooMuch(Self.maximumWaitingBytes), url: nil)))
                    return (true, dropped)
                }
            }
            state.messages.append(message)
            return (true, nil)
        }
        withExtendedLifetime(dropped) {}
        if isTaken { onMessage() }
    }

    // MARK: - URLProtocolClient (any thread)

    func urlProtocol(
        _ protocol: URLProtocol, wasRedirectedTo request: URLRequest, redirectResponse: URLResponse
    ) {
        add(.redirect(request, redirectResponse))
    }

    func urlProtocol(_ protocol: URLProtocol, cachedResponseIsValid cachedResponse: CachedURLResponse) {
        add(.response(cachedResponse.response, .notAllowed))
        if !cachedResponse.data.isEmpty { add(.data(cachedResponse.data)) }
        add(.finish)
    }

    func urlProtocol(
        _ protocol: URLProtocol, didReceive response: URLResponse,
        cacheStoragePolicy policy: URLCache.StoragePolicy
    ) {
        add(.response(response, policy))
    }

    func urlProtocol(_ protocol: URLProtocol, didLoad data: Data) { add(.data(data)) }
    func urlProtocolDidFinishLoading(_ protocol: URLProtocol) { add(.finish) }
    func urlProtocol(_ protocol: URLProtocol, didFailWithError error: any Error) { add(.fail(error)) }

    func urlProtocol(_ protocol: URLProtocol, didReceive challenge: URLAuthenticationChallenge) {
        add(.challenge(challenge))
    }

    func urlProtocol(_ protocol: URLProtocol, didCancel challenge: URLAuthenticationChallenge) {
        add(.cancelledChallenge(challenge))
    }
}
