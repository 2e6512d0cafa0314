internal import RondoMutex

/// A closure that a run loop calls once after a delay. An object's `perform(key:afterDelay:inModes:_:)`
/// returns the request.
///
/// The request is a timer of the calling thread's loop: it keeps its modes from being empty and ends no run
/// (rule PL-6).
public final class PerformRequest: Sendable {
    /// The closure to be called, and its target.
    ///
    /// `@unchecked Sendable`: made and called on the loop's thread. A thread that cancels the request only
    /// releases it.
    struct Content: @unchecked Sendable {
        let target: AnyObject
        let key: AnyHashable?
        let call: () -> Void
    }

    private struct State {
        var content: Content?
        var timer: Timer?
        weak var list: PerformRequestList?
        /// The loop's pass in which the request was made.
        var pass: UInt
    }

    /// The identity of the target, which is alive while the request waits.
    let target: ObjectIdentifier
    private let modes: [RunLoop.Mode]
    private let state: Mutex<State>

    /// Makes a request of the calling thread's loop.
    init(_ content: Content, afterDelay delay: TimeInterval, inModes modes: [RunLoop.Mode]) {
        target = ObjectIdentifier(content.target)
        self.modes = modes
        let loop = RunLoop.currentLoop()
        state = Mutex(State(pass: loop.threadState.passes))
        // With an empty array there is nothing to wait for (rule PL-7).
        guard !modes.isEmpty, let list = loop.performRequests else { return }
        list.insert(self)
        state.withLock { state in
            state.content = content
            state.list = list
        }
        wait(delay, on: loop)
    }

    /// Whether the closure has neither been called nor cancelled.
    public var isPending: Bool { state.withLock { $0.content != nil } }

    /// A name for logs, traces and `whyNotDelivering`; nil at first. Any thread may set it.
    public var label: String? {
        get { state.withLock { $0.timer }?.label }
        set { state.withLock { $0.timer }?.label = newValue }
    }

    /// Why the closure has not been called.
    public var whyNotDelivering: DeliveryObstacle {
        state.withLock { $0.timer }?.whyNotDelivering ?? DeliveryObstacle.invalid
    }

    /// Cancels the request, and releases its closure at once. Any thread; a closure that has begun finishes
    /// (rule PL-9).
    public func cancel() {
        withExtendedLifetime(take()) {}
    }

    func has(_ key: AnyHashable) -> Bool {
        // Compared with no lock held: keys are the program's objects, and their comparison may use the
        // request.
        let own = state.withLock { $0.content?.key }
        return own == key
    }

    private func wait(_ delay: TimeInterval, on loop: RunLoop) {
        let timer = Timer(timeInterval: max(0, delay), repeats: false) { [self] _ in fire() }
        let replaced = state.withLock { state in
            let old = state.timer
            state.timer = timer
            return old
        }
        timer.label = replaced?.label
        for mode in modes { loop.add(timer, forMode: mode) }
        // Another thread may have cancelled the request meanwhile.
        if !isPending { timer.invalidate() }
    }

    /// Called by its timer, on the loop's thread.
    private func fire() {
        let loop = RunLoop.currentLoop()
        // A request is never called in the pass in which it was made (rule PL-2).
        if state.withLock({ $0.pass }) == loop.threadState.passes { return wait(0, on: loop) }
        take()?.call()
    }

    /// Ends the request.
    ///
    /// - Returns: The content, which the caller releases with no lock held; nil if the request had already
    ///   ended.
    private func take() -> Content? {
        let (content, timer, list) = state.withLock { state in
            (state.content.take(), state.timer.take(), state.list)
        }
        timer?.invalidate()
        list?.remove(self)
        return content
    }
}

/// The requests that wait on one loop, by target. Retained by the loop until its thread ends.
final class PerformRequestList: Sendable {
    private let requests = Mutex<[ObjectIdentifier: ObjectSet<PerformRequest>]>([:])

    func insert(_ request: PerformRequest) {
        requests.withLock { $0[request.target, default: ObjectSet()].insert(request) }
    }

    func remove(_ request: PerformRequest) {
        // The request is not released under the lock: the caller retains it.
        requests.withLock { requests in
            requests[request.target]?.remove(request)
            if requests[request.target]?.isEmpty ?? false { requests[request.target] = nil }
        }
    }

    func requests(for target: AnyObject) -> [PerformRequest] {
        requests.withLock { $0[ObjectIdentifier(target)].map { Array($0) } ?? [] }
    }

    deinit {
        // The timers retain the requests, so those have to be cancelled here.
        for request in requests.withLock({ $0.values.flatMap(\.self) }) { request.cancel() }
    }
}

extension RunLoop {
    /// The requests of this loop; nil if its thread is ending. Loop's thread only.
    fileprivate var performRequests: PerformRequestList? {
        guard !threadState.isEnding else { return nil }
        return attachment(PerformRequestList.self) { PerformRequestList() }
    }

    /// The requests of the calling thread's loop for `target`.
    static func performRequests(for target: Any) -> [PerformRequest] {
        guard type(of: target) is AnyClass else { return [] }
        return existingLoop?.performRequests?.requests(for: target as AnyObject) ?? []
    }
}
