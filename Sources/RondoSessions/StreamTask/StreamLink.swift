internal import FoundationNetworking
internal import RondoConnections
internal import RondoCore
internal import RondoMutex
internal import RondoStreams

/// Two streams on their way to the delegate.
///
/// `@unchecked Sendable`: handed over once; nothing else has them.
struct CapturedStreams: @unchecked Sendable {
    let input: RondoStreams.InputStream
    let output: RondoStreams.OutputStream
}

/// A connection that is open already, for a stream task.
///
/// `@unchecked Sendable`: handed over once; nothing else has the channel.
struct OpenConnection: @unchecked Sendable {
    let channel: SocketChannel
    /// What was read of it already.
    let received: [UInt8]
}

/// What a stream tells its task, where the calls of the task come.
protocol StreamClient: AnyObject, Sendable {
    func tellReadClosed()
    func tellWriteClosed()
    func tellCaptured(_ streams: CapturedStreams)
}

/// What a stream task, on any thread, and its wire, on the thread of the session's driver, have in common: what was asked for
/// waits here until the wire does it, in a pass of the driver; once the task is over, its answer is a call by the driver.
final class StreamLink: Sendable {
    struct State {
        weak var client: (any StreamClient)?
        /// What serves the connection, from the beginning to the end.
        var owner: (any StreamOwner)?
        var queues = StreamQueues()
        /// Operations whose time does not run yet.
        var untimed: [(number: Int, seconds: Double)] = []
        /// Those whose time is over.
        var expired: [Int] = []
        var isEnding = false
        /// The program has the connection now.
        var isCaptured = false
        var isOver = false
        /// Of a task that is over; nil: it has ended well.
        var error: (any Error)?
        var source = Source.host
        var received: Int64 = 0
        var sent: Int64 = 0
    }

    let state = Mutex(State())
    let host: String
    let port: Int
    private let driver: SessionDriver

    /// - Parameter awaitsConnection: It is a data task's.
    init(host: String, port: Int, driver: SessionDriver, awaitsConnection: Bool = false) {
        self.host = host
        self.port = port
        self.driver = driver
        if awaitsConnection { state.withLock { $0.source = .awaited } }
    }

    /// What errors name: tcp://host:port. Nil: the host is not one.
    var url: URL? { URL(string: "tcp://\(host.contains(":") ? "[\(host)]" : host):\(port)") }

    var isCaptured: Bool { state.withLock { $0.isCaptured } }

    func belong(to client: any StreamClient) { state.withLock { $0.client = client } }

    // MARK: - The task. Any thread.

    func read(
        minimum: Int, maximum: Int, timeout: Double, _ handler: @escaping StreamQueues.ReadHandler
    ) -> Int {
        change { state in
            let number = state.queues.addRead(minimum: minimum, maximum: maximum, handler)
            state.limit(number, timeout)
            return number
        }
    }

    func write(_ data: Data, timeout: Double, _ handler: @escaping StreamQueues.WriteHandler) -> Int {
        change { state in
            let number = state.queues.addWrite(data, handler)
            state.limit(number, timeout)
            return number
        }
    }

    func closeRead() { change { $0.queues.addCloseRead() } }
    func closeWrite() { change { $0.queues.addCloseWrite() } }
    func add(_ what: StreamQueues.Change) { change { $0.queues.add(what) } }

    /// - Returns: False: it is too late.
    func cancelRead(_ number: Int) -> Bool { state.withLock { $0.queues.removeRead(number) } != nil }
    func cancelWrite(_ number: Int) -> Bool { state.withLock { $0.queues.removeWrite(number) } != nil }

    /// Adds to what waits, and has it looked at.
    private func change<Result: Sendable>(_ change: @Sendable (inout State) -> Result) -> Result {
        let (result, owner, isOver) = state.withLock { state in
            (change(&state), state.owner, state.isOver)
        }
        if isOver {
            for call in takeLate() { driver.perform(call) }
        } else {
            owner?.wakeUp()
        }
        return result
    }

    // MARK: - The load

    /// Where the task's connection comes from.
    enum Source: Sendable {
        case host
        /// A data task's: it is not there yet.
        case awaited
        case given(OpenConnection)
        /// The data task has ended without handing it over.
        case lost
    }

    /// - Returns: What the task begins with; a connection is its own from here on.
    func takeSource() -> Source {
        state.withLock { state in
            let source = state.source
            if case .given = source { state.source = .lost }
            return source
        }
    }

    func give(_ connection: OpenConnection) { change { $0.source = .given(connection) } }

    func loseConnection() {
        change { state in if case .awaited = state.source { state.source = .lost } }
    }

    /// No operation is begun or answered while that is so. Any thread.
    func standStill(_ stands: Bool) {
        state.withLock { $0.queues.standsStill = stands || $0.isEnding }
    }

    /// The task ends: what was asked for is answered by that end alone.
    func willEnd() {
        state.withLock { state in
            state.isEnding = true
            state.queues.standsStill = true
        }
    }

    func loadDidEnd() {
        let old = state.withLock { state in
            state.isOver = true
            return state.owner.take()
        }
        withExtendedLifetime(old) {}
    }

    /// The last calls, where the session's calls come: all that waits is told of the end.
    ///
    /// - Parameter error: Nil: the stream has ended well.
    func end(_ error: (any Error)?) {
        state.withLock { state in
            state.isOver = true
            state.error = error
        }
        for call in takeLate() { call() }
    }

    /// Calls of all that waits and cannot be done.
    private func takeLate() -> [@Sendable () -> Void] {
        let (all, error, isCaptured) = state.withLock { state in
            (state.queues.takeAll(), state.error, state.isCaptured)
        }
        let closed = URLErrors.error(
            .networkConnectionLost,
            isCaptured ? "The stream task has handed its streams over." : "The stream is closed.", url: url)
        let failure = error ?? closed
        // A stream that has ended in order has nothing more to give.
        let isAtEnd = error == nil && !isCaptured
        var calls: [@Sendable () -> Void] = []
        for handler in all.reads {
            calls.append { isAtEnd ? handler(Data(), true, nil) : handler(nil, false, failure) }
        }
        for handler in all.writes { calls.append { handler(failure) } }
        return calls
    }
}

extension StreamLink.State {
    /// - Parameter seconds: 0: as long as it takes.
    fileprivate mutating func limit(_ number: Int, _ seconds: Double) {
        if seconds > 0, seconds.isFinite { untimed.append((number, seconds)) }
    }
}
