internal import FoundationNetworking
internal import Logging
internal import RondoCore
internal import RondoHTTP
internal import RondoStreams
internal import Synchronization

/// Performs what a load's state decides: on channels, the pool, and the delegate.
///
/// Its end is always said, by `leave()`, which lets go of all that holds it: so what it hands out may hold it in
/// turn. (A weak reference makes every use of an object slower.)
///
/// The run loops that the connection is scheduled in are its only engine. It has a seat with the couriers of their
/// modes from start to end, so that none of them is empty while the load waits for whatever it waits for (rule
/// UC-72); the channel's own sources are there as well while there is a channel.
///
/// `@unchecked Sendable`: `places`, `settings` and `timeout` never change; `gate` and `shared` have locks of their own,
/// and `isHeldBack` is atomic; the rest is touched inside the gate only. (`calls` stands in `shared` once more, for other
/// threads.)
final class Loader: RegisteredClient, @unchecked Sendable {
    struct Place: Hashable {
        let loop: RunLoop
        let mode: RunLoop.Mode

        static func == (left: Place, right: Place) -> Bool {
            left.loop === right.loop && left.mode == right.mode
        }
    }

    /// What a timer has to say to the next turn.
    struct Alarms: OptionSet {
        let rawValue: Int
        /// The timeout may have been reached.
        static let idle = Alarms(rawValue: 1)
        /// The server's go-ahead is waited for no longer.
        static let goAhead = Alarms(rawValue: 2)
        /// The body's stream is worth another look.
        static let body = Alarms(rawValue: 4)
    }

    struct Shared: ~Copyable {
        /// Calls that wait for the delegate queue; nil: there never was one.
        var calls: QueuedCalls?
        /// The delegate's answer, from the delegate queue.
        var answer: DelegateCall.Answer?
        var alarms: Alarms = []
        /// What the senders of challenges were told, with the challenge's number.
        var challengeResponses: [(Int, ChallengeResponse)] = []
        /// The couriers where it has its seats.
        var schedule = StreamSchedule()
        /// What makes the channel's loops leave it alone; see `Gate`.
        var channel: ChannelInterest?
        /// The ticket that has got its place among the connections.
        var admittedTicket: Int?
        /// Responses that are being stored, and cookies.
        var stores = 0
        /// The cookies of the request that waits for them can be read.
        var hasCookies = false
        /// The last call has been made by the delegate queue: there is nothing left but to leave.
        var isOver = false
    }

    /// Where the two clocks stood that idle time is measured by.
    struct Moment {
        /// How long the places had been running, in nanoseconds, the sum of all.
        let running: Int64
        let clock: LoopInstant
    }

    let places: [Place]
    /// As nearly all are; the common name may stand for several.
    let isInOneMode: Bool
    let settings: URLConnection.Settings
    let gate = Gate()
    let shared = Mutex(Shared())
    /// Whoever takes the data wants no more at present.
    private let isHeldBack = Atomic(false)

    // MARK: Inside the gate

    /// From start to end; nearly always there is one.
    @exclusivity(unchecked) private(set) var seat: SharedQueue.Registration?
    /// Kept alive by the load from start to end (rule UC-15).
    @exclusivity(unchecked) var connection: URLConnection?
    @exclusivity(unchecked) private(set) var delegate: DelegateObject?
    @exclusivity(unchecked) var state: LoadState
    @exclusivity(unchecked) var exchange: HTTPExchange?
    /// The place that the load has among the connections, or waits for.
    @exclusivity(unchecked) var slot: PoolKey?
    /// Nil: there is nothing in it; see there.
    @exclusivity(unchecked) var rare: Rare?
    /// Those that have gone by a delegate queue and not come there; nil: none ever went.
    @exclusivity(unchecked) private(set) var calls: QueuedCalls?
    /// The delegate's answer, once it was asked (rule UC-43).
    @exclusivity(unchecked) var usesCredentialStorage: Bool?
    @exclusivity(unchecked) private var hasAskedForStorage = false

    /// Somebody of the program's was called, in the turn that is on the stack or since the last one.
    @exclusivity(unchecked) var hasCalled = false
    @exclusivity(unchecked) var isWaitingForBody = false
    /// Times that the request was sent again because its connection broke.
    @exclusivity(unchecked) var retries = 0
    /// The request is handed to the proxy that it goes by, which answers it, and not through it.
    @exclusivity(unchecked) var isAskingProxy = false

    // The response's body, where it goes to a file.
    let writesFile: Bool
    /// Nil: there is no delegate.
    let delegateClass: DelegateClass?

    // For the metrics.
    @exclusivity(unchecked) var startedAt = LoopInstant(nanoseconds: 0)

    /// What the body goes through on its way to the delegate; nil where it goes straight on.
    @exclusivity(unchecked) var pipe: ContentPipe?

    /// What the cache has to do with the request under way.
    @exclusivity(unchecked) var caching: CacheLoad?

    /// The last exchange, which is over, for its connection's sake.
    @exclusivity(unchecked) var spentExchange: HTTPExchange?

    /// A response was given away to be stored; and the end of the load waits for that.
    @exclusivity(unchecked) var hasStored = false
    @exclusivity(unchecked) var isWaitingForStore = false

    // Time.
    /// The last sign of progress (rule UC-58).
    @exclusivity(unchecked) var progressedAt = Moment(running: 0, clock: LoopInstant(nanoseconds: 0))
    /// There was one since, which is noted when the loop's work is done.
    @exclusivity(unchecked) var hasProgressed = false
    @exclusivity(unchecked) var timeIsUp = false
    let timeout: TimeInterval
    private let live = LiveObject(.load)

    init(
        _ connection: URLConnection, request: URLRequest, places: [Place], delegate: DelegateObject?,
        settings: URLConnection.Settings
    ) {
        self.connection = connection
        self.delegate = delegate
        self.places = places
        isInOneMode = places.count == 1 && places[0].mode != .common
        self.settings = settings
        writesFile = delegate?.download != nil
        delegateClass = delegate?.kind
        state = LoadState(request)
        timeout = request.timeoutInterval
    }

    // MARK: - Start and end

    /// Enters the run loops. The first step is made there, not here (rule UC-13).
    func start() {
        enter {
            // Another thread may have cancelled it already.
            guard let connection, !connection.isCancelled else { return tearDown() }
            progressedAt = now
            var isLost = false
            for place in places {
                let seat = SharedQueue.join(
                    place.loop, place.mode, label: connection.nameInRunLoops, as: self)
                if self.seat == nil { self.seat = seat } else { madeRare.otherSeats.append(seat) }
                isLost = shared.withLock { shared in
                    shared.schedule.insert(seat.queue)
                    return shared.schedule.isLost
                }
            }
            if isLost { return tearDown() }
            beginMeasuringIdleTime()
            askForTurn(later: true)
        }
    }

    func serve(by queue: SharedQueue) -> Bool {
        let isWanted = shared.withLock { shared in
            guard shared.schedule.turnHasCome(by: queue, to: self) else { return false }
            defer { shared.schedule.isWanted = false }
            return shared.schedule.isWanted
        }
        guard isWanted else { return false }
        var called = false
        enter {
            hasCalled = false
            turn()
            called = hasCalled
        }
        return called
    }

    func forEachCourier(_ body: (SharedQueue) -> Void) {
        guard let seat else { return }
        body(seat.queue)
        for other in rare?.otherSeats ?? [] { body(other.queue) }
    }

    /// No more callbacks (rule UC-17). Any thread.
    func cancel() {
        shared.withLock { $0.calls }?.removeAll()
        // If somebody is inside, it is that thread that clears up: it catches up before it leaves.
        enter { tearDown() }
    }

    /// The thread of a loop has ended: with the last of them the load has nowhere to go on, and is let go.
    func loopHasEnded() {
        enter {
            if hasNowhereToGo { tearDown() }
        }
    }

    /// The threads of all its loops have ended.
    private var hasNowhereToGo: Bool { shared.withLock { $0.schedule.isLost } }

    /// Everything goes, without a word to the delegate.
    func tearDown() {
        state.cancelled()
        disposeOfExchange()
        pipe = nil
        caching = nil
        rare?.file = nil
        leave()
    }

    /// The connection has left all its loops (rule UC-16); a mode that is empty by that is woken by its courier.
    func leave() {
        rare?.openChallenge = nil
        stopTimers()
        closeBody()
        let left = shared.withLock { $0.schedule.takeAll(of: self) }
        withExtendedLifetime(left) {}
        let link = spentExchange.take()?.link
        if let seat {
            if let link, link.isStaying {
                // A load that waits in the queue may have use for it.
                let leavesLater = seat.queue.hasWaitingClients && seat.queue.loop.deferWork(link)
                if !leavesLater { link.leave() }
            }
            seat.leave()
        }
        seat = nil
        for other in rare?.otherSeats ?? [] { other.leave() }
        rare?.otherSeats = []
        connection?.didEnd()
        connection = nil
        delegate = nil
    }

    /// Has a turn made, in a pass of a scheduled mode. Any thread.
    func wakeUp() { askForTurn(later: false) }

    private func askForTurn(later: Bool) {
        let turns = shared.withLock { shared in
            shared.schedule.isWanted = true
            return shared.schedule.turnsToAskFor()
        }
        turns.ask(for: self, later: later)
    }

    /// The calls that wait for a delegate queue, from now on.
    var madeCalls: QueuedCalls {
        if let calls { return calls }
        let calls = QueuedCalls()
        self.calls = calls
        shared.withLock { $0.calls = calls }
        return calls
    }

    // MARK: - The gate

    func enter(_ body: () -> Void) {
        gate.enter(body, catchUp: { catchUp() }, turnedAway: { shared.withLock { $0.channel?.suspend() } })
    }

    /// Somebody was turned away: what brought them is looked at again, in a pass of a scheduled mode.
    private func catchUp() {
        let isOver = shared.withLock { $0.isOver }
        if isOver || hasNowhereToGo || connection?.isCancelled ?? true { return tearDown() }
        exchange?.link.channel.resumeInterest()
        wakeUp()
    }

    // MARK: - Turns

    /// A turn on a loop.
    private func turn() {
        guard let connection else { return }
        if connection.isCancelled { return tearDown() }
        let (answer, alarms, hasChallengeResponses) = shared.withLock { shared in
            defer {
                shared.answer = nil
                shared.alarms = []
            }
            return (shared.answer, shared.alarms, !shared.challengeResponses.isEmpty)
        }
        if alarms.contains(.idle) { lookAtTheClock() }
        if timeIsUp {
            timeIsUp = false
            // What has ended has no time any more, and its last call must not be lost.
            if !state.isEnded, timeLeft <= 0 { return perform(state.failed(.timedOut(seconds: timeout))) }
        }
        if let answer { take(answer) }
        if hasChallengeResponses { takeChallengeResponses() }
        if waitingForSlot != nil { takeSlot() }
        begin()
        if alarms.contains(.goAhead) { exchange?.goAhead() }
        if isWaitingForBody {
            isWaitingForBody = false
            hasCalled = true
            exchange?.bodyIsReady()
        }
        if rare != nil {
            if hashing != nil { goOnHashing() }
            if bridge != nil { takeMessages() }
            if local != nil { readLocal() }
            sendIfCookiesHaveCome()
        }
        if pipe != nil { drainPipe() }
        if isWaitingForStore { finish() }
        if state.deliversBody, !holdsBack, mayRead { exchange?.resume() }
        noteProgress()
    }

    /// Whoever takes the data wants no more of it at present, or again. Any thread.
    func holdBack(_ holds: Bool) {
        isHeldBack.store(holds, ordering: .sequentiallyConsistent)
        if !holds { wakeUp() }
    }

    var holdsBack: Bool { isHeldBack.load(ordering: .sequentiallyConsistent) }

    private func begin() {
        guard !state.hasBegun else { return }
        if usesCredentialStorage == nil {
            guard !hasAskedForStorage else { return }
            hasAskedForStorage = true
            startedAt = LoopClock.now
            // Its answer begins.
            guard spares(.shouldUseCredentialStorage) else {
                deliver(.shouldUseCredentialStorage)
                return
            }
            usesCredentialStorage = true
        }
        perform(state.begin())
    }

    func perform(_ action: LoadState.Action) {
        switch action {
        case .nothing:
            break
        case .ask(let request, let redirect):
            exchange?.pause()
            deliver(.willSend(request, redirectResponse: redirect.flatMap { response($0) }))
        case .send(let request):
            // It is the connection's already: the first one, or the last one again with credentials.
            if request !== state.lastSent { connection?.setCurrentRequest(request.value) }
            disposeOfExchange()
            pipe = nil
            keepCredentialsWithinOrigin()
            state.noteSending()
            retries = 0
            if mustWaitForCookies(request) { return }
            sendOrAnswer(request)
        case .authenticate(let head):
            authenticate(head)
        case .deliver(let reply):
            guard let response = response(reply) else {
                return perform(state.failed(.unusableResponse(reply)))
            }
            if case .http(let head, let bodyLength) = reply {
                guard openPipe(for: head), opensFileIfWanted(for: response) else { return }
                beginStoring(response, head, bodyLength: bodyLength)
            } else {
                guard opensFileIfWanted(for: response) else { return }
            }
            deliver(.response(response))
            if state.deliversBody { exchange?.resume() }
        case .finish:
            if !isAskedAboutCaching() { finish() }
        case .fail(let failure):
            rare?.file = nil
            end(.fail(URLErrors.anyError(failure, url: state.url)))
        }
    }

    func sendOrAnswer(_ request: LoadRequest) {
        if isAnsweredByCache(request) { return }
        send(request, mayReuse: true)
    }

    /// - Returns: False if there has to be a file and is none, and the load has failed.
    private func opensFileIfWanted(for response: URLResponse) -> Bool {
        guard writesFile else { return true }
        let length = pipe?.changesLength ?? false ? -1 : response.expectedContentLength
        guard openFile(expecting: length) else { return false }
        rare?.fileResponse = response
        return true
    }

    /// Nil where Foundation makes none.
    private func response(_ reply: LoadState.Reply) -> URLResponse? {
        switch reply {
        case .http(let head, let bodyLength):
            state.url.flatMap { url in
                // What is remembered holds no user's name and password.
                state.request.address?.isPlain ?? false
                    ? LoadedResponse.of(url, head, bodyLength: bodyLength)
                    : LoadedResponse(url: url, head: head, bodyLength: bodyLength)
            }
        case .other(let response): response
        }
    }

    /// What a server was told is not for another one to hear (rule UC-33).
    private func keepCredentialsWithinOrigin() {
        guard let rare, let before = state.lastSent.url, let url = state.url else { return }
        if !Redirect.areSameOrigin(before, url) { rare.serverAuthentication.leftOrigin() }
    }

    func finish() {
        isWaitingForStore = isStoring
        if isWaitingForStore { return }
        guard let file else { return end(.finish) }
        rare?.file = nil
        do throws(SystemError) {
            try file.close()
            end(.finishDownload(file))
        } catch {
            let failure = LoadFailure.file(
                .cannotCloseFile, sentence: "The file \(file.path) could not be closed", error)
            end(.fail(URLErrors.error(failure, url: state.url)))
        }
    }

    private func end(_ call: DelegateCall) {
        disposeOfExchange()
        pipe = nil
        stopTimers()
        closeBody()
        if collectsMetrics { deliver(.metrics(metrics)) }
        if !deliver(call) { leave() }
    }
}
