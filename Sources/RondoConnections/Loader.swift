internal import FoundationNetworking
internal import Logging
internal import RondoCore
internal import RondoHTTP
internal import RondoStreams
internal import Synchronization

/// Performs what a load's state decides: on channels, the pool, and the delegate.
///
/// The run loops that the connection is scheduled in are its only engine. A signalled source, `presence`, is
/// in their modes from start to end, so that none of them is empty while the load waits for whatever it waits
/// for (rule UC-72); the channel's own sources are there as well while there is a channel.
///
/// `@unchecked Sendable`: `places` and `timeout` never change; `calls`, `gate` and `shared` have locks of
/// their own; the rest is touched inside the gate only.
final class Loader: @unchecked Sendable {
    struct Place: Hashable {
        let loop: RunLoop
        let mode: RunLoop.Mode
    }

    private struct Shared {
        /// The delegate's answer, from the delegate queue. `URLRequest??`: there may be none, and it may be
        /// nil.
        var answer: URLRequest??
        var presence: RunLoop.Source?
        /// What makes the channel's loops leave it alone; see `Gate`.
        var channel: ChannelInterest?
        /// The last call has been made by the delegate queue: there is nothing left but to leave.
        var isOver = false
    }

    /// Where the two clocks stood that idle time is measured by.
    private struct Moment {
        /// How long the places had been running, in nanoseconds, the sum of all.
        let running: Int64
        let clock: LoopInstant
    }

    private let places: [Place]
    private let gate = Gate()
    private let calls = QueuedCalls()
    private let shared = Mutex(Shared())

    // MARK: Inside the gate

    /// Kept alive by the load from start to end (rule UC-15).
    private var connection: URLConnection?
    private var timers: [Timer] = []
    private var state: LoadState
    private var exchange: HTTPExchange?
    /// The last sign of progress (rule UC-58).
    private var progressedAt = Moment(running: 0, clock: LoopInstant(nanoseconds: 0))
    private var timeIsUp = false
    private let timeout: TimeInterval

    init(_ connection: URLConnection, request: URLRequest, places: [Place]) {
        self.connection = connection
        self.places = places
        state = LoadState(request)
        timeout = request.timeoutInterval
    }

    // MARK: - Start and end

    /// Enters the run loops. The first step is made there, not here (rule UC-13).
    func start() {
        enter {
            // Another thread may have cancelled it already.
            guard let connection, !connection.isCancelled else { return tearDown() }
            let presence = RunLoop.Source(
                cancel: { [weak self] _, _ in self?.lostPlace() },
                perform: { [self] in enter { turn() } })
            presence.label = connection.label
            shared.withLock { $0.presence = presence }
            progressedAt = now
            if timeout > 0 && timeout.isFinite { startTimers() }
            for place in places { place.loop.add(presence, forMode: place.mode) }
            if hasNowhereToGo { return tearDown() }
            presence.signalAndWakeUp()
        }
    }

    /// No more callbacks (rule UC-17). Any thread.
    func cancel() {
        calls.removeAll()
        // If somebody is inside, it is that thread that clears up: it catches up before it leaves.
        enter { tearDown() }
    }

    /// The thread of a loop has ended: with the last of them the load has nowhere to go on, and is let go.
    private func lostPlace() {
        enter {
            if hasNowhereToGo { tearDown() }
        }
    }

    /// The threads of all its loops have ended.
    private var hasNowhereToGo: Bool {
        guard let presence else { return false }
        return presence.isValid && !presence.isScheduled
    }

    /// Everything goes, without a word to the delegate.
    private func tearDown() {
        state.cancelled()
        disposeOfExchange()
        leave()
    }

    /// The connection has left all its loops, and they have noticed (rule UC-16).
    private func leave() {
        for timer in timers { timer.invalidate() }
        timers = []
        let presence = shared.withLock { shared in
            defer { shared.presence = nil }
            return shared.presence
        }
        presence?.invalidate()
        for place in places { place.loop.wakeUp() }
        connection?.didEnd()
        connection = nil
    }

    private var presence: RunLoop.Source? { shared.withLock { $0.presence } }

    // MARK: - The gate

    private func enter(_ body: () -> Void) {
        gate.enter(body, catchUp: { catchUp() }, turnedAway: { shared.withLock { $0.channel?.suspend() } })
    }

    /// Somebody was turned away: what brought them is looked at again, in a pass of a scheduled mode.
    private func catchUp() {
        let isOver = shared.withLock { $0.isOver }
        if isOver || hasNowhereToGo || connection?.isCancelled ?? true { return tearDown() }
        exchange?.link.channel.resumeInterest()
        presence?.signalAndWakeUp()
    }

    // MARK: - Turns

    /// A turn on a loop, by `presence`.
    private func turn() {
        guard let connection else { return }
        if connection.isCancelled { return tearDown() }
        if timeIsUp {
            timeIsUp = false
            if timeLeft <= 0 { return perform(state.failed(.timedOut(seconds: timeout))) }
        }
        let answer = shared.withLock { shared in
            defer { shared.answer = nil }
            return shared.answer
        }
        if let answer { perform(state.answered(answer)) }
        perform(state.begin())
        if calls.mayRead, state.deliversBody { exchange?.resume() }
    }

    private func perform(_ action: LoadState.Action) {
        switch action {
        case .nothing:
            break
        case .ask(let request, let redirect):
            exchange?.pause()
            let response = redirect.flatMap { head in
                state.request.url.flatMap { LoadedResponse(url: $0, head: head, bodyLength: nil) }
            }
            deliver(.willSend(request, redirectResponse: response))
        case .send(let request):
            connection?.setCurrentRequest(request)
            disposeOfExchange()
            send(request, mayReuse: true)
        case .deliver(let head, let bodyLength):
            guard let url = state.request.url,
                let response = LoadedResponse(url: url, head: head, bodyLength: bodyLength)
            else { return perform(state.failed(.unusableResponse(status: head.status))) }
            deliver(.response(response))
            if state.deliversBody { exchange?.resume() }
        case .finish:
            end(.finish)
        case .fail(let failure):
            end(.fail(URLErrors.error(failure, url: state.request.url)))
        }
    }

    // MARK: - The exchange

    private func send(_ request: URLRequest, mayReuse: Bool) {
        guard let connection else { return }
        let outgoing: OutgoingRequest
        do throws(LoadFailure) {
            outgoing = try OutgoingRequest(request, omittedFields: connection.configuration.omittedFields)
        } catch {
            return perform(state.failed(error))
        }
        guard let url = request.url, let host = url.host else {
            return perform(state.failed(.unsupportedURL))
        }
        let isSecure = url.scheme?.lowercased() == "https"
        let key = PoolKey(
            host: host, port: url.port ?? (isSecure ? 443 : 80),
            tls: isSecure ? connection.configuration.tls : nil)
        let link: HTTPLink
        if mayReuse, let kept = Pool.shared.take(for: key) {
            link = kept
            connection.report(.reusing(address: kept.channel.remoteAddress?.description ?? key.host))
        } else {
            link = HTTPLink(
                SocketChannel(SocketChannel.Configuration(host: key.host, port: key.port, tls: key.tls)),
                key: key)
        }
        // Whoever has looked up the gate and comes in late must not touch a link that is another load's by
        // then.
        let channel = ObjectIdentifier(link.channel)
        link.channel.label = connection.label
        link.channel.gate = { [weak self] body in
            self?.enter {
                if let exchange = self?.exchange, ObjectIdentifier(exchange.link.channel) == channel {
                    body()
                }
            }
        }
        for place in places { link.channel.schedule(in: place.loop, forMode: place.mode) }
        let exchange = HTTPExchange(outgoing, over: link) { [weak self] event in self?.received(event) }
        self.exchange = exchange
        shared.withLock { [interest = link.channel.interest] in $0.channel = interest }
        exchange.begin()
    }

    private func received(_ event: HTTPExchange.Event) {
        progressedAt = now
        switch event {
        case .diagnostic(let diagnostic):
            connection?.report(diagnostic)
        case .sent(let bytes, let total, let expected):
            deliver(.sent(bytes, total: total, expected: expected))
        case .head(let head, let bodyLength):
            perform(state.received(head, bodyLength: bodyLength))
        case .body(let data):
            if state.deliversBody { deliver(.data(data)) }
        case .end:
            disposeOfExchange()
            perform(state.bodyEnded())
        case .failed(let failure):
            let mayBeSentAgain = exchange?.mayBeSentAgain ?? false
            disposeOfExchange()
            if mayBeSentAgain {
                // The kept connection turned out dead: the same request on one of its own, and nobody
                // notices.
                send(state.request, mayReuse: false)
            } else {
                perform(state.failed(failure))
            }
        }
    }

    /// Keeps the connection to the server if it can serve another request, or closes it.
    private func disposeOfExchange() {
        guard let exchange else { return }
        self.exchange = nil
        shared.withLock { $0.channel = nil }
        exchange.discardRest()
        let channel = exchange.link.channel
        // Who looks it up late has nothing to do there: the channel is closed, or kept until a load takes it.
        channel.gate = { _ in }
        if exchange.isReusable {
            // Who was turned away from this load has silenced it; the next one has to hear it.
            channel.resumeInterest()
            Pool.shared.keep(exchange.link)
        } else {
            let wasOpen = channel.isOpen
            channel.close()
            if wasOpen { connection?.report(.closed(reason: "the connection cannot serve another request")) }
        }
    }

    // MARK: - The delegate

    /// Calls the delegate, at once on this loop's thread or by its queue. What was decided before may be
    /// otherwise afterwards: the delegate can cancel.
    private func deliver(_ call: DelegateCall) {
        guard let connection, !connection.isCancelled else { return }
        guard let queue = connection.delegateQueue else {
            let answer = call.make(to: connection.delegate.object, of: connection)
            if connection.isCancelled { return tearDown() }
            if case .willSend = call { perform(state.answered(answer)) }
            return
        }
        let mayRead = calls.add(call, to: queue) { [self] call in
            guard !connection.isCancelled else { return }
            let answer = call.make(to: connection.delegate.object, of: connection)
            if case .willSend = call { shared.withLock { $0.answer = .some(answer) } }
            if call.isTerminal {
                shared.withLock { $0.isOver = true }
                enter { leave() }
            } else {
                wakeIfNeeded(after: call)
            }
        }
        if !mayRead { exchange?.pause() }
    }

    /// After a call on the delegate queue: the loop goes on where it waited for it.
    private func wakeIfNeeded(after call: DelegateCall) {
        let isAnswer = if case .willSend = call { true } else { false }
        if isAnswer || calls.mayRead { presence?.signalAndWakeUp() }
    }

    private func end(_ call: DelegateCall) {
        disposeOfExchange()
        for timer in timers { timer.invalidate() }
        timers = []
        let isQueued = connection?.delegateQueue != nil
        deliver(call)
        if !isQueued { leave() }
    }

    // MARK: - Time

    private var now: Moment {
        Moment(running: nanosecondsRun, clock: LoopClock.now)
    }

    private var nanosecondsRun: Int64 {
        guard places.count > 1 else {
            return places.reduce(0) { sum, place in
                place.loop.modes(named: place.mode).reduce(sum) { $0 + place.loop.nanosecondsRun(in: $1) }
            }
        }
        // A mode may be among the places twice, by its own name and by the common one.
        let modes = Set(
            places.flatMap { place in
                place.loop.modes(named: place.mode).map { Place(loop: place.loop, mode: $0) }
            })
        return modes.reduce(0) { $0 + $1.loop.nanosecondsRun(in: $1.mode) }
    }

    /// Seconds until the load has been idle for too long. Time outside the scheduled modes is not held
    /// against it (rule UC-58), and time that several loops ran at once counts once.
    private var timeLeft: TimeInterval {
        // What is there is looked at before the clock, and what the delegate keeps back is not the server's
        // fault.
        if let exchange, exchange.isPaused || exchange.hasUnreadInput { progressedAt = now }
        let now = now
        let running = Double(now.running - progressedAt.running) / 1e9
        return timeout - min(running, now.clock.seconds(since: progressedAt.clock))
    }

    /// One timer for each loop: a timer belongs to one.
    private func startTimers() {
        for loop in Set(places.map(\.loop)) {
            let timer = Timer(timeInterval: timeout, repeats: true) { [weak self] timer in
                self?.enter { self?.checkTimeout(timer) }
            }
            timers.append(timer)
            for place in places where place.loop == loop { loop.add(timer, forMode: place.mode) }
        }
    }

    private func checkTimeout(_ timer: Timer) {
        let left = timeLeft
        if left > 0 {
            timer.fireDate = Date(timeIntervalSinceNow: max(left, 0.001))
        } else {
            // Told by the source: a delivery is a handled source, which no timer is (rule UC-72).
            timeIsUp = true
            presence?.signalAndWakeUp()
        }
    }
}
