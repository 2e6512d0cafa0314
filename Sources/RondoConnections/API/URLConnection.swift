public import FoundationNetworking
public import RondoCore
internal import RondoHTTP
internal import RondoMutex

internal import struct Synchronization.Atomic

/// Loads a URL and tells a delegate about it, driven by the run loops and modes that it is scheduled in.
///
/// A connection that starts at once is scheduled in the default mode of the loop of the thread that made it
/// (rule UC-3). To choose loop and mode, create it with `startImmediately: false`, `schedule(in:forMode:)` it
/// and `start()` it: after the start the schedule is fixed. While its loop runs only in other modes, or not
/// at all, the load makes no progress: no callback comes, the kernel's buffer fills, and the server has to
/// wait.
///
/// The delegate and the connection are retained from the start to the last callback (rule UC-15). Any thread
/// may schedule, start and cancel. The counterpart is Apple's `NSURLConnection`.
open class URLConnection: NSObject, LoadClient, @unchecked Sendable {
    // `@unchecked Sendable` because the class is open: all of its state is immutable, atomic or behind the
    // lock.

    /// The request as it was when the connection was made.
    public var originalRequest: URLRequest { request.value }
    private let request: LoadRequest
    private let state: Mutex<URLConnectionState>
    /// Changes with the lock held, and is read without it: a load reads it at every step.
    private let cancelled = Atomic(false)
    /// These two as well, for the label and the delegate queue.
    private let isLabelled = Atomic(false)
    private let isQueued = Atomic(false)
    private let live = LiveObject(.urlConnection)

    // MARK: - Making

    /// Whether a connection can be made for `request` now: its URL is an http or https URL with a host, a
    /// file or data URL, or one that a registered `URLProtocol` accepts (rule UC-64).
    open class func canHandle(_ request: URLRequest) -> Bool {
        CanonicalRequest.of(request) != nil
    }

    /// Makes a connection that starts at once, in the default mode of the calling thread's loop.
    ///
    /// - Parameter delegate: An object that conforms to `URLConnectionDataDelegate`; retained until the end.
    /// - Returns: Nil if no connection can be made for the request (rule UC-1).
    @available(
        *, noasync,
        message: "A task has no thread of its own: use data(for:), or schedule it before start()."
    )
    public convenience init?(request: URLRequest, delegate: Any?) {
        self.init(request: request, delegate: consume delegate, startImmediately: true)
    }

    /// - Parameter startImmediately: If false, nothing happens before `start()`, and until then the
    ///   connection can be scheduled and configured.
    public init?(request: URLRequest, delegate: Any?, startImmediately: Bool) {
        let loadRequest = LoadRequest(request)
        // Only a subclass can decide differently; the base class need not parse the request once more.
        let canHandle =
            Self.self == URLConnection.self
            ? CanonicalRequest.exists(for: loadRequest) : Self.canHandle(request)
        guard canHandle else { return nil }
        self.request = loadRequest
        state = Mutex(URLConnectionState(.of(consume delegate)))
        super.init()
        if startImmediately { begin(on: RunLoop.currentLoop(), ignoringQueue: true) }
    }

    // MARK: - Before the start

    /// Adds a loop and mode for the whole load. Several may be added; `.common` stands for every common mode.
    ///
    /// After the start it has no effect, and logs one warning (rule UC-7).
    open func schedule(in runLoop: RunLoop, forMode mode: RunLoop.Mode) {
        let scheduled = LoopMode(loop: runLoop, mode: mode)
        warn(state.withLock { $0.schedule(scheduled, isCancelled: isCancelled) })
    }

    /// Removes a loop and mode. After the start it has no effect.
    open func unschedule(from runLoop: RunLoop, forMode mode: RunLoop.Mode) {
        let scheduled = LoopMode(loop: runLoop, mode: mode)
        warn(state.withLock { $0.unschedule(scheduled) })
    }

    /// Makes callbacks operations of `queue`, in order and one at a time (rules UC-9 to UC-11).
    ///
    /// If it is set before `start()` and there is no schedule, the load needs no run loop of the program. If
    /// it is set on a connection that started at once, the load still needs the loop and mode that it started
    /// in.
    open func setDelegateQueue(_ queue: OperationQueue?) {
        let complaint = state.withLock { state in
            let complaint = state.setQueue(queue)
            isQueued.store(state.queue != nil, ordering: .releasing)
            return complaint
        }
        warn(complaint)
    }

    /// Settings beyond the request. Setting it after the start has no effect.
    open var configuration: Configuration {
        get { state.withLock { $0.settings }.configuration }
        set { replaceSettings(by: Settings(newValue)) }
    }

    /// Uses the settings of another load.
    func useSettings(_ load: LoadSettings) { replaceSettings(by: Settings(load)) }

    private func replaceSettings(by settings: Settings) {
        let replaced = state.withLock { state -> Settings in
            defer { state.settings = settings }
            return state.settings
        }
        // Released with no lock held: the program's `onDiagnostic` may hold the last reference to an object.
        withExtendedLifetime(replaced) {}
    }

    /// A name for logs, traces and `whyNotDelivering`; nil at first. If it is set before the start, the
    /// connection's sources in its run loops have it too. Any thread may use it.
    open var label: String? {
        get { state.withLock { $0.label } }
        set {
            state.withLock { state in
                state.label = newValue
                isLabelled.store(newValue != nil, ordering: .releasing)
            }
        }
    }

    // MARK: - Running

    /// Starts the load. Without a schedule and a queue it runs in the default mode of the calling thread's
    /// loop. A second call has no effect.
    open func start() {
        begin(on: RunLoop.currentLoop(), ignoringQueue: false)
    }

    /// - Parameter current: The loop of the calling thread, which is created when it is first used.
    private func begin(on current: @autoclosure () -> RunLoop, ignoringQueue: Bool) {
        let (scheduled, needsLoader) = state.withLock { state in
            (state.modes, !ignoringQueue && !isCancelled && state.needsLoaderNow)
        }
        let modes: [LoopMode]
        do throws(SystemError) {
            modes =
                scheduled.isEmpty
                ? [LoopMode(loop: needsLoader ? try RunLoop.startedLoader() : current(), mode: .default)]
                : scheduled
        } catch {
            return failToStart(error)
        }
        let load = state.withLock { state -> Load? in
            guard !isCancelled, state.start(in: modes) else { return nil }
            let delegate = state.delegate
            let load = Load(
                for: self, request: request, in: state.modes, settings: state.settings.load,
                defaults: delegate?.defaults,
                writesFile: delegate?.download != nil)
            state.load = load
            return load
        }
        load?.start()
    }

    /// Makes the loader's loop drive the load; the loader's thread is created on first use. Call it before
    /// the start.
    func driveOnLoader() { state.withLock { $0.driveOnLoader() } }

    /// Handles that the system has no thread for the loader: the delegate is told through its queue or, if it
    /// has none, at once. Only the package's own connections use the loader without a queue.
    private func failToStart(_ error: SystemError) {
        let (delegate, queue) = state.withLock { state in (state.end(), state.queue) }
        guard let delegate else { return }
        let failure = URLErrors.noThread(error, url: originalRequest.url)
        guard let queue else {
            _ = DelegateCall.fail(failure).make(to: delegate, of: self)
            return
        }
        queue.submit { [self] in
            if !isCancelled { _ = DelegateCall.fail(failure).make(to: delegate, of: self) }
        }
    }

    /// Ends the load: no callback follows, not even a failure (rule UC-17).
    ///
    /// Allowed inside a callback. If another thread than the loop's calls it, a callback that has already
    /// begun may still finish.
    open func cancel() {
        let (load, released) = state.withLock { state -> (Load?, DelegateObject?) in
            guard !isCancelled, !state.isOver else { return (nil, nil) }
            cancelled.store(true, ordering: .releasing)
            let load = state.load
            return (load, state.releaseDelegate())
        }
        load?.cancel()
        withExtendedLifetime(released) {}
    }

    /// The current form of the request, after canonicalisation and redirects (rule UC-14).
    public var currentRequest: URLRequest { state.withLock { $0.currentRequest } ?? originalRequest }

    // MARK: - For the load

    var publicState: URLConnectionState.PublicState {
        state.withLock { isCancelled ? .over : $0.publicState }
    }
    var loadObstacle: LoadObstacle? { state.withLock { $0.load }?.obstacle }
    /// Whether a call waits for the delegate queue.
    var hasWaitingCalls: Bool { state.withLock { $0.load }?.hasWaitingCalls ?? false }

    /// The name of its sources, and in traces: the label, or, while a trace is recorded, host and path. The
    /// rest of the URL may hold secrets.
    package var nameInRunLoops: String? {
        if isLabelled.load(ordering: .acquiring) { return label }
        return RunLoop.isTraced ? originalRequest.url.map { ($0.host ?? "") + $0.path } : nil
    }

    /// The loop to which traces attribute the delegate's calls.
    var firstLoop: RunLoop? { state.withLock { $0.modes.first?.loop } }

    package var isCancelled: Bool { cancelled.load(ordering: .acquiring) }

    /// The queue through which the delegate is called; nil if there is none.
    package var delegateQueue: DelegateQueue? {
        isQueued.load(ordering: .acquiring) ? state.withLock { $0.queue } : nil
    }

    package var decidesOnResponses: Bool { false }
    package var wantsInformational: Bool { false }
    package var sharesTrustDecisions: Bool { false }

    package func make(_ call: DelegateCall) -> DelegateCall.Reply {
        guard let delegate else { return .none }
        return call.make(to: delegate, of: self)
    }

    /// The delegate; nil once the connection is cancelled or over.
    var delegate: DelegateObject? { state.withLock { isCancelled ? nil : $0.delegate } }

    /// Stops reading from the server, or continues to read. Any thread may call it.
    func holdBack(_ holds: Bool) {
        state.withLock { $0.load }?.holdBack(holds)
    }

    /// The codings of the content, in the order in which they were applied. Valid only while the delegate is
    /// being told of the response.
    var contentCodings: [ContentCoding] { state.withLock { $0.load }?.contentCodings ?? [] }

    /// Decodes only that many codings, the ones applied last. Valid only within the same call.
    func undoCodings(_ count: Int) { state.withLock { $0.load }?.undoCodings(count) }

    // MARK: Which methods the delegate has

    /// Before the start: the methods of the delegate, which is one of Rondo's own, that are known to be
    /// defaults.
    func setDefaults(_ defaults: DelegateDefaults) { state.withLock { $0.delegate?.ownDefaults = defaults } }

    /// Notes that a method's default was called: the delegate does not implement the method.
    func noteDefault(of method: OptionalMethod) {
        state.withLock { $0.defaultCalled = method }
    }

    /// Notes that the default of a method was called which changes nothing.
    func noteDefault(of method: DelegateDefaults.Method, by object: AnyObject) {
        delegate?.noteDefault(of: method, by: object)
    }

    /// Makes a call of `method`, and returns whether the delegate implements it.
    func implements(_ method: OptionalMethod, call: () -> Void) -> Bool {
        state.withLock { $0.defaultCalled = nil }
        call()
        return state.withLock { $0.defaultCalled != method }
    }

    package func setCurrentRequest(_ request: URLRequest) {
        state.withLock { $0.currentRequest = request }
    }

    package func loadDidLoseLoops() { state.withLock { $0.loseLoops() } }

    /// Releases the delegate, because the load is over (rule UC-15).
    package func loadDidEnd() {
        // The delegate must not be released under the lock.
        let released = state.withLock { $0.end() }
        withExtendedLifetime(released) {}
    }

    // MARK: - Misuse

    private func warn(_ complaint: String?) {
        guard let complaint else { return }
        Log.connections.warning("\(originalRequest.url?.absoluteString ?? "a connection"): \(complaint)")
    }
}
