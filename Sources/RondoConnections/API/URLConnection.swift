public import FoundationNetworking
public import RondoCore
internal import RondoHTTP
internal import RondoMutex

internal import struct Synchronization.Atomic

/// Loads a URL and tells a delegate about it, driven by the run loops and modes that it is scheduled in.
///
/// A connection that starts at once is scheduled in the default mode of the loop of the thread that made it
/// (rule UC-3). To choose loop and mode, create it with `startImmediately: false`, `schedule(in:forMode:)` it
/// and `start()` it: after the start the schedule is fixed. While its loop runs in other modes only, or not
/// at all, the load stands still: no callback comes, the kernel's buffer fills, and the server has to wait.
///
/// The delegate is retained from the start to the last callback, and so is the connection (rule UC-15). Any
/// thread may schedule, start and cancel. The counterpart of Apple's `NSURLConnection`.
open class URLConnection: NSObject, LoadClient, @unchecked Sendable {
    // `@unchecked Sendable` because the class is open: all of it is behind the lock or immutable.

    /// The request as it was when the connection was made.
    public var originalRequest: URLRequest { request.value }
    private let request: LoadRequest
    private let state: Mutex<ConnectionState>
    /// Changes with the lock held, and is asked without it: a load asks at every step.
    private let cancelled = Atomic(false)
    /// The same, of the label, and of the delegate queue.
    private let isLabelled = Atomic(false)
    private let isQueued = Atomic(false)
    private let live = LiveObject(.urlConnection)

    // MARK: - Making

    /// Whether a connection can be made for `request` now: an http or https URL with a host, a file or data
    /// URL, or what a registered `URLProtocol` accepts (rule UC-64).
    open class func canHandle(_ request: URLRequest) -> Bool {
        CanonicalRequest.of(request) != nil
    }

    /// A connection that starts at once, in the default mode of the calling thread's loop.
    ///
    /// - Parameter delegate: An object that conforms to `URLConnectionDataDelegate`; retained until the end.
    /// - Returns: Nil if no connection can be made for the request (rule UC-1).
    public convenience init?(request: URLRequest, delegate: Any?) {
        self.init(request: request, delegate: consume delegate, startImmediately: true)
    }

    /// - Parameter startImmediately: False: nothing happens before `start()`, and until then the connection
    ///   can be scheduled and configured.
    public init?(request: URLRequest, delegate: Any?, startImmediately: Bool) {
        let loadRequest = LoadRequest(request)
        // Only a subclass can decide otherwise; ours need not parse the request once more.
        let canHandle =
            Self.self == URLConnection.self
            ? CanonicalRequest.exists(for: loadRequest) : Self.canHandle(request)
        guard canHandle else { return nil }
        self.request = loadRequest
        state = Mutex(ConnectionState(.of(consume delegate), request))
        super.init()
        if startImmediately { begin(on: RunLoop.currentLoop(), ignoringQueue: true) }
    }

    // MARK: - Before the start

    /// Loop and mode for the whole load. Several may be given; `.common` stands for every common mode.
    ///
    /// After the start it has no effect, and is warned about in the log once (rule UC-7).
    open func schedule(in runLoop: RunLoop, forMode mode: RunLoop.Mode) {
        let place = LoopMode(loop: runLoop, mode: mode)
        warn(state.withLock { $0.schedule(place, isCancelled: isCancelled) })
    }

    /// Takes one loop and mode back, before the start.
    open func unschedule(from runLoop: RunLoop, forMode mode: RunLoop.Mode) {
        let place = LoopMode(loop: runLoop, mode: mode)
        warn(state.withLock { $0.unschedule(place) })
    }

    /// Has callbacks made as operations of `queue`, in order and one at a time (rules UC-9 to UC-11).
    ///
    /// Set before `start()` and without a schedule, no run loop of the program is needed. Set on a connection
    /// that started at once, the load still needs the loop and mode that it started in.
    open func setDelegateQueue(_ queue: OperationQueue?) {
        let complaint = state.withLock { state in
            let complaint = state.setQueue(queue)
            isQueued.store(state.queue != nil, ordering: .releasing)
            return complaint
        }
        warn(complaint)
    }

    /// Settings beyond the request. Set after the start they have no effect.
    open var configuration: Configuration {
        get { state.withLock { $0.settings }.configuration }
        set {
            let settings = Settings(newValue)
            state.withLock { $0.settings = settings }
        }
    }

    /// Uses the settings of another load.
    func useSettings(_ load: LoadSettings) {
        let settings = Settings(load)
        state.withLock { $0.settings = settings }
    }

    /// A name for logs, traces and `whyNotDelivering`; nil at first. Set before the start, it names what the
    /// connection puts into its run loops as well. Any thread.
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

    /// Starts the load. Without schedule and queue it runs in the default mode of the calling thread's loop.
    /// A second call changes nothing.
    open func start() {
        begin(on: RunLoop.currentLoop(), ignoringQueue: false)
    }

    /// - Parameter current: The loop of the calling thread, which is made by asking for it.
    private func begin(on current: @autoclosure () -> RunLoop, ignoringQueue: Bool) {
        let (scheduled, needsLoader) = state.withLock { state in
            (state.places, !ignoringQueue && !isCancelled && state.needsLoaderNow)
        }
        let places: [LoopMode]
        do throws(SystemError) {
            places =
                scheduled.isEmpty
                ? [LoopMode(loop: needsLoader ? try RunLoop.startedLoader() : current(), mode: .default)]
                : scheduled
        } catch {
            return failToStart(error)
        }
        let load = state.withLock { state -> Load? in
            guard !isCancelled, state.start(in: places) else { return nil }
            let delegate = state.delegate
            let load = Load(
                for: self, request: request, schedule: state.places, settings: state.settings.load,
                defaults: delegate?.base == nil ? nil : delegate?.defaults,
                writesFile: delegate?.download != nil)
            state.load = load
            return load
        }
        load?.start()
    }

    /// Has the loader's loop drive the load, whose thread is made on first use. Before the start.
    func driveOnLoader() { state.withLock { $0.needsLoader = true } }

    /// The system has no thread for the loader: the delegate is told by its queue, or at once where it has none, as only
    /// the package's own have that ask for the loader.
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
    /// Allowed inside a callback. From another thread than the loop's a callback already begun may still
    /// finish.
    open func cancel() {
        let (load, released) = state.withLock { state -> (Load?, DelegateObject?) in
            guard !isCancelled, !state.isOver else { return (nil, nil) }
            cancelled.store(true, ordering: .releasing)
            let load = state.load
            return (load, state.letGo())
        }
        load?.cancel()
        withExtendedLifetime(released) {}
    }

    /// The request as it stands: after canonicalisation and redirects (rule UC-14).
    public var currentRequest: URLRequest { state.withLock { $0.currentRequest } }

    // MARK: - For the load

    var standing: ConnectionState.Standing { state.withLock { isCancelled ? .over : $0.standing } }

    /// What its sources and traces bear: its label, or while a trace is recorded host and path; no more of the
    /// URL, which may hold secrets.
    package var nameInRunLoops: String? {
        if isLabelled.load(ordering: .acquiring) { return label }
        return RunLoop.isTraced ? originalRequest.url.map { ($0.host ?? "") + $0.path } : nil
    }

    /// The loop that traces show the delegate's calls with.
    var firstLoop: RunLoop? { state.withLock { $0.places.first?.loop } }

    package var isCancelled: Bool { cancelled.load(ordering: .acquiring) }

    /// By which queue the delegate is told; nil: by none.
    package var delegateQueue: DelegateQueue? {
        isQueued.load(ordering: .acquiring) ? state.withLock { $0.queue } : nil
    }

    package var decidesOnResponses: Bool { false }
    package var hearsOfInformational: Bool { false }
    package var sharesVerdicts: Bool { false }

    package func make(_ call: DelegateCall) -> DelegateCall.Reply {
        guard let delegate else { return .none }
        return call.make(to: delegate, of: self)
    }

    /// The delegate; nil once the connection is cancelled or over.
    var delegate: DelegateObject? { state.withLock { isCancelled ? nil : $0.delegate } }

    /// While true nothing more is read from the server. Any thread.
    func holdBack(_ holds: Bool) {
        state.withLock { $0.load }?.holdBack(holds)
    }

    /// The codings of the content whose response the delegate is being told of, in the order in which they were
    /// applied. Within that call only.
    var contentCodings: [ContentCoding] { state.withLock { $0.load }?.contentCodings ?? [] }

    /// Has only so many of them undone, those that were applied last. Within that call only.
    func undoCodings(_ count: Int) { state.withLock { $0.load }?.undoCodings(count) }

    // MARK: Which methods the delegate has

    /// A method's default was called: the delegate has none of its own.
    func noteDefault(of method: OptionalMethod) {
        state.withLock { $0.defaultCalled = method }
    }

    /// The same of a method whose default changes nothing.
    func noteDefault(of method: DelegateDefaults.Method, by object: AnyObject) {
        delegate?.noteDefault(of: method, by: object)
    }

    /// Makes a call of `method`, and returns whether the delegate has implemented it.
    func implements(_ method: OptionalMethod, call: () -> Void) -> Bool {
        state.withLock { $0.defaultCalled = nil }
        call()
        return state.withLock { $0.defaultCalled != method }
    }

    package func setCurrentRequest(_ request: URLRequest) {
        state.withLock { $0.currentRequest = request }
    }

    /// The load is over: the delegate is let go (rule UC-15).
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
