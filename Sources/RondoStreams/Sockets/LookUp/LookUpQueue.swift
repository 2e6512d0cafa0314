internal import RondoCore

/// The look-ups of a resolver: those that wait, those that are being made, and the number of threads for
/// them. A value, without threads and without a clock.
///
/// One look-up answers all requests for a host and port, also those that come while it is made: its answer is
/// recent enough for them, as in curl and browsers. So a name whose server does not answer occupies one
/// thread, however often it is asked for.
///
/// A few look-ups are made at the same time. One that takes longer than `patience` is not counted among them
/// any more: as many names whose servers do not answer hold up all others for `patience`, and not until they
/// fail. While look-ups wait behind others, one thread stands by, and asks again when the oldest of these may
/// have become slow.
struct LookUpQueue {
    struct Place: Hashable {
        let host: String
        let port: UInt16
    }

    /// The action for the caller, with the lock released, that gets the waiting names looked up.
    enum Call {
        case enough
        /// One of the idle threads.
        case wake
        case start
    }

    /// The next action of the thread that has asked.
    enum Step: Equatable {
        case lookUp(Place, Call)
        /// Sleep until then, or until `needsNoStandby`; call `endStandby()`, and ask again.
        case standBy(until: DispatchTime)
        /// Wait to be woken.
        case idle
    }

    private let patience: DispatchTimeInterval
    /// The requests that have no answer, of look-ups that wait and that are being made.
    private var requests: [Place: [Resolver.Request]] = [:]
    private var count = 0
    private var waiting = KeyedQueue<UInt64, Place>()
    private var lastNumber: UInt64 = 0
    /// When each of the look-ups that are being made began.
    private var running: [Place: DispatchTime] = [:]
    private(set) var threads = 0
    /// The threads that wait for work. A call wakes one of them or starts another.
    private var idle = 0
    private var hasStandby = false

    init(patience: DispatchTimeInterval) {
        self.patience = patience
    }

    /// - Returns: Nil if too many requests wait.
    mutating func add(_ request: Resolver.Request, now: DispatchTime) -> Call? {
        if count >= Resolver.waitingLimit { dropCancelled() }
        guard count < Resolver.waitingLimit else { return nil }
        count += 1
        let place = Place(host: request.host, port: request.port)
        guard requests[place] == nil else {
            requests[place]?.append(request)
            return .enough
        }
        requests[place] = [request]
        lastNumber += 1
        waiting.insert(place, key: lastNumber)
        return callThread(now: now)
    }

    /// Calls a thread, up to one more than look-ups may be made: that one stands by.
    private mutating func callThread(now: DispatchTime) -> Call {
        if idle > 0 {
            idle -= 1
            return .wake
        }
        let slow = running.count - recent(now: now).count
        guard threads < Resolver.threadLimit, threads - slow <= Resolver.lookUpLimit else { return .enough }
        threads += 1
        return .start
    }

    /// When those look-ups began that are not slow.
    private func recent(now: DispatchTime) -> [DispatchTime] { running.values.filter { $0 + patience > now } }

    // MARK: - For a thread

    mutating func next(now: DispatchTime) -> Step {
        dropCancelledFirst()
        let recent = recent(now: now)
        guard !waiting.isEmpty, recent.count < Resolver.lookUpLimit || !hasStandby else {
            idle += 1
            return .idle
        }
        guard recent.count < Resolver.lookUpLimit, let place = waiting.popFirst() else {
            hasStandby = true
            return .standBy(until: (recent.min() ?? now) + patience)
        }
        running[place] = now
        return .lookUp(place, waiting.isEmpty || hasStandby ? .enough : callThread(now: now))
    }

    /// Whether a thread stands by, and nothing waits any more.
    var needsNoStandby: Bool { hasStandby && waiting.isEmpty }

    mutating func endStandby() { hasStandby = false }

    /// - Returns: The requests that the answer is for.
    mutating func end(_ place: Place) -> [Resolver.Request] {
        running[place] = nil
        let answered = requests.removeValue(forKey: place) ?? []
        count -= answered.count
        return answered
    }

    /// Called by an idle thread that nothing has woken in time.
    ///
    /// - Returns: Whether it must end. Otherwise a call has already counted on it: its wake-up is coming.
    mutating func endIdle() -> Bool {
        guard idle > 0 else { return false }
        idle -= 1
        threads -= 1
        return true
    }

    /// Called if a thread could not be started. If there are others, they serve what waits.
    ///
    /// - Returns: The requests that must fail.
    mutating func noteNotStarted() -> [Resolver.Request] {
        threads -= 1
        guard threads == 0 else { return [] }
        defer { (requests, count, waiting) = ([:], 0, KeyedQueue()) }
        return waiting.elements.flatMap { requests[$0] ?? [] }
    }

    // MARK: - Cancelled requests

    /// A look-up whose requests were all cancelled is not made.
    private mutating func dropCancelledFirst() {
        while let place = waiting.first, requests[place]?.allSatisfy(\.isOver) ?? true {
            _ = waiting.popFirst()
            count -= requests.removeValue(forKey: place)?.count ?? 0
        }
    }

    private mutating func dropCancelled() {
        let places = waiting.elements
        waiting = KeyedQueue()
        for place in places where !(requests[place]?.allSatisfy(\.isOver) ?? true) {
            lastNumber += 1
            waiting.insert(place, key: lastNumber)
        }
        for place in requests.keys { requests[place]?.removeAll(where: \.isOver) }
        requests = requests.filter { running[$0.key] != nil || !$0.value.isEmpty }
        count = requests.values.reduce(0) { $0 + $1.count }
    }
}
