internal import FoundationNetworking
internal import RondoConnections
internal import RondoCore
internal import RondoMutex
internal import RondoStreams

/// The two streams of a captured connection, on their way to the delegate.
///
/// `@unchecked Sendable`: they are handed over once, and no other reference exists.
struct CapturedStreams: @unchecked Sendable {
    let input: RondoStreams.InputStream
    let output: RondoStreams.OutputStream
}

/// An open connection for a stream task to take over.
///
/// `@unchecked Sendable`: it is handed over once, and no other reference to the channel exists.
struct OpenConnection: @unchecked Sendable {
    let channel: SocketChannel
    /// Bytes that were read from the connection already.
    let received: [UInt8]
}

/// Gets the events of a stream, on the delegate queue or the session's run loop.
protocol StreamClient: AnyObject, Sendable {
    func tellReadClosed()
    func tellWriteClosed()
    func tellCaptured(_ streams: CapturedStreams)
}

/// The state that a stream task, on any thread, shares with the transfer of its bytes, on the thread of the
/// session's schedule.
///
/// Operations wait here until the transfer performs them in a pass of a scheduled mode. Once the task has
/// ended, the schedule calls the handlers of further operations.
final class StreamTaskState: Sendable {
    enum Phase {
        case active
        /// The task was aborted: the delegate is told only of its end, and no operation is performed.
        case ending
        /// The task has ended; the error is nil if it succeeded.
        case over((any Error)?)
    }

    /// The state behind the lock. It is changed by this class for the task on the one side, and by
    /// `StreamLoad`, `StreamTransfer` and `OperationTimeouts` on the other: this state is what the two
    /// exchange, and the lock is all that they share.
    struct State {
        weak var client: (any StreamClient)?
        /// Serves the connection, from the beginning to the end.
        var load: (any StreamOwner)?
        var queues = StreamQueues()
        /// Operations whose timeout has not begun.
        var untimed: [(number: Int, seconds: Double)] = []
        /// Operations with a timeout that were cancelled: their timers may still run.
        var cancelled: [Int] = []
        /// Operations whose timeout has expired.
        var expired: [Int] = []
        fileprivate(set) var phase = Phase.active
        /// The program has taken the connection.
        var isCaptured = false
        var source = Source.host
        var received: Int64 = 0
        var sent: Int64 = 0

        var isActive: Bool { if case .active = phase { true } else { false } }
        var isOver: Bool { if case .over = phase { true } else { false } }
    }

    let state = Mutex(State())
    let host: String
    let port: Int
    /// Calls the handlers of operations that come after the end, once the last call of the task has returned.
    private let lateHandlers: QueuedHandlers

    /// - Parameter awaitsConnection: True if a data task will hand its connection over.
    init(host: String, port: Int, schedule: SessionSchedule, awaitsConnection: Bool = false) {
        self.host = host
        self.port = port
        lateHandlers = QueuedHandlers(schedule)
        if awaitsConnection { state.withLock { $0.source = .awaited } }
    }

    /// The URL that errors name: tcp://host:port; nil if the host is not valid in a URL.
    var url: URL? { URL(string: "tcp://\(host.contains(":") ? "[\(host)]" : host):\(port)") }

    var isCaptured: Bool { state.withLock { $0.isCaptured } }

    func belong(to client: any StreamClient) { state.withLock { $0.client = client } }

    // MARK: - The task. Any thread.

    func read(
        minimum: Int, maximum: Int, timeout: Double, _ handler: @escaping StreamQueues.ReadHandler
    ) -> Int {
        change { state in
            let isLimited = State.isLimit(timeout)
            let number = state.queues.addRead(
                minimum: minimum, maximum: maximum, isLimited: isLimited, handler)
            if isLimited { state.untimed.append((number, timeout)) }
            return number
        }
    }

    func write(_ data: Data, timeout: Double, _ handler: @escaping StreamQueues.WriteHandler) -> Int {
        change { state in
            let isLimited = State.isLimit(timeout)
            let number = state.queues.addWrite(data, isLimited: isLimited, handler)
            if isLimited { state.untimed.append((number, timeout)) }
            return number
        }
    }

    func closeRead() { change { $0.queues.addCloseRead() } }
    func closeWrite() { change { $0.queues.addCloseWrite() } }
    func add(_ what: StreamQueues.Change) { change { $0.queues.add(what) } }

    /// - Returns: False if the operation was performed or begun already.
    func cancelRead(_ number: Int) -> Bool {
        // The handler is released without the lock.
        let (read, load) = state.withLock { state -> (StreamQueues.Read?, (any StreamOwner)?) in
            // What waits behind the first read can go on now; if there is nothing, the connection need not be
            // read any more.
            let wasFirst = state.queues.isFirstRead(number)
            guard let read = state.queues.removeRead(number) else { return (nil, nil) }
            if read.isLimited { return (read, state.noteCancelled(number)) }
            return (read, wasFirst ? state.load : nil)
        }
        load?.wakeUp()
        return read != nil
    }

    /// - Returns: False if the operation was performed or begun already.
    func cancelWrite(_ number: Int) -> Bool {
        let (write, load) = state.withLock { state -> (StreamQueues.Write?, (any StreamOwner)?) in
            // Nothing can go on that could not before: what the write waits for, all behind it waits for,
            // too.
            let write = state.queues.removeWrite(number)
            return (write, write?.isLimited ?? false ? state.noteCancelled(number) : nil)
        }
        load?.wakeUp()
        return write != nil
    }

    /// Changes the state and wakes the transfer; after the end of the task, calls the handlers of the
    /// operations instead.
    private func change<Result: Sendable>(_ change: @Sendable (inout State) -> Result) -> Result {
        let (result, load, isOver) = state.withLock { state in
            (change(&state), state.load, state.isOver)
        }
        if isOver { lateHandlers.call(takeLate()) } else { load?.wakeUp() }
        return result
    }

    // MARK: - The load

    /// The origin of the task's connection.
    enum Source: Sendable {
        case host
        /// A data task's connection, which has not been handed over yet.
        case awaited
        case given(OpenConnection)
        /// The data task has ended without handing its connection over.
        case lost
    }

    /// - Returns: The origin of the connection. A given connection belongs to the caller afterwards.
    func takeSource() -> Source {
        state.withLock { state in
            let source = state.source
            if case .given = source { state.source = .lost }
            return source
        }
    }

    /// Gives the task its connection, which is closed if the task has ended meanwhile.
    func give(_ connection: OpenConnection) {
        let isUnwanted = state.withLock { state in
            if state.isOver { return true }
            state.source = .given(connection)
            return false
        }
        if isUnwanted { return connection.channel.close() }
        state.withLock { $0.load }?.wakeUp()
    }

    func loseConnection() {
        change { state in if case .awaited = state.source { state.source = .lost } }
    }

    /// While true, no operation is begun or ended. Any thread.
    func setSuspended(_ isSuspended: Bool) {
        state.withLock { $0.queues.isHalted = isSuspended || !$0.isActive }
    }

    /// Notes that the task was aborted: from now on only `end(_:)` ends operations.
    func willEnd() {
        state.withLock { state in
            if state.isActive { state.phase = .ending }
            state.queues.isHalted = true
        }
    }

    /// Notes that the load has left its run loop. If that was because the loop's thread has ended, the
    /// handlers of waiting operations are released without a call, and async functions fail.
    func loadDidEnd() {
        let old = state.withLock { state in
            let waiting = state.isOver ? nil : state.queues.takeAll()
            if !state.isOver { state.phase = .over(nil) }
            defer { if case .given = state.source { state.source = .lost } }
            return (load: state.load.take(), source: state.source, waiting)
        }
        lateHandlers.release()
        if case .given(let connection) = old.source { connection.channel.close() }
        withExtendedLifetime(old) {}
    }

    /// Ends the task, and calls the handlers of all waiting operations. On the delegate queue or the
    /// session's run loop.
    ///
    /// - Parameter error: Nil if the stream ended in order.
    func end(_ error: (any Error)?) {
        lateHandlers.hold()
        state.withLock { $0.phase = .over(error) }
        for call in takeLate() { call() }
    }

    /// Ends a task that was never begun. Any thread; the handlers of waiting operations are called later.
    func endBeforeStart(_ error: URLError) {
        state.withLock { $0.phase = .over(error) }
        lateHandlers.call(takeLate())
    }

    /// The calls of the handlers of all waiting operations, none of which can be performed any more.
    private func takeLate() -> [@Sendable () -> Void] {
        let (all, error, isCaptured) = state.withLock { state in
            let error: (any Error)? = if case .over(let error) = state.phase { error } else { nil }
            return (state.queues.takeAll(), error, state.isCaptured)
        }
        let closed = URLErrors.error(
            .networkConnectionLost,
            isCaptured ? "The stream task has handed its streams over." : "The stream is closed.", url: url)
        let failure = error ?? closed
        // After an orderly end a read gets the end of the stream, not an error.
        let isAtEnd = error == nil && !isCaptured
        var calls: [@Sendable () -> Void] = []
        for handler in all.reads {
            calls.append { isAtEnd ? handler(Data(), true, nil) : handler(nil, false, failure) }
        }
        for handler in all.writes { calls.append { handler(failure) } }
        return calls
    }
}

extension StreamTaskState.State {
    /// Whether a timeout of so many seconds limits an operation: 0 does not.
    fileprivate static func isLimit(_ seconds: Double) -> Bool { seconds > 0 && seconds.isFinite }

    /// Notes that an operation with a timeout was cancelled.
    ///
    /// - Returns: The load to wake, which stops the operation's timer.
    fileprivate mutating func noteCancelled(_ number: Int) -> (any StreamOwner)? {
        cancelled.append(number)
        return load
    }
}
