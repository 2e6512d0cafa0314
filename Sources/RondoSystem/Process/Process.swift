public import RondoCore
internal import RondoMutex

/// Another program, run as a child of this one: Foundation's `Process` on Rondo's run loops.
///
/// `run()` starts it. Its end is reported once: by `terminationHandler` on a queue in the background, or,
/// without a handler, by `didTerminateNotification` on the thread that called `run()`, while that thread's
/// loop runs in the default mode (rules PR-6 to PR-8). `schedule(in:forMode:)` moves both to other loops and
/// modes. `waitUntilExit()` runs the calling thread's loop meanwhile: timers, streams and connections in the
/// default mode go on.
///
/// The end is that of the child's own process, even if its children keep outputs open. The child is collected
/// as soon as it ends, so that no zombie stays. It has a process group of its own, no blocked signals, and
/// only the descriptors that it was given. A `Process` runs once. Any thread may use it.
///
/// Linux 5.4 or later. The counterpart of `NSTask`; `Child` offers more options.
open class Process: NSObject, @unchecked Sendable {
    // `@unchecked Sendable` because the class is open: its own properties are behind the lock.

    /// The way in which a process has ended.
    public typealias TerminationReason = Foundation.Process.TerminationReason

    /// Posted when a process without a handler has ended; the object is the process, and there is no
    /// userInfo.
    ///
    /// It is posted on the thread that called `run()`, while that thread's loop runs in the default mode, or
    /// in the loops and modes in which the process was scheduled. For threads that never run their loop, the
    /// last 1,000 notifications of the program are kept.
    public static let didTerminateNotification = Foundation.Process.didTerminateNotification

    /// The state behind the lock. It is changed in `+Running` and by `WaitingNotifications` too.
    struct State {
        var settings = ProcessSettings()
        var handler: (@Sendable (Process) -> Void)?
        /// The handler was set and has not been called since.
        var owesHandler = false
        /// `run()` was called and has not failed.
        var hasStarted = false
        var child: ChildHandle?
        /// Set once the child has ended and this process can report it.
        var status: ChildStatus?
        var suspensions = Suspensions()
        var waits: [LoopWait] = []
        var schedule = ProcessSchedule()
    }

    let state = Mutex(State())

    /// Makes a process that has not been started.
    public override init() { super.init() }

    // MARK: - Program and surroundings

    private subscript<Value>(setting: any WritableKeyPath<ProcessSettings, Value> & Sendable) -> Value {
        get { state.withLock { UncheckedSendable($0.settings[keyPath: setting]) }.value }
        set {
            let value = UncheckedSendable(newValue)
            let replaced = state.withLock { state -> UncheckedSendable<Value> in
                defer { state.settings[keyPath: setting] = value.value }
                return UncheckedSendable(state.settings[keyPath: setting])
            }
            // Released with no lock held: its deinit may ask the process.
            withExtendedLifetime(replaced) {}
        }
    }

    /// The file of the program. Setting nil, or a URL that is no file URL, traps.
    ///
    /// Like the properties below, it has no effect on the child if it is set after `run()` (rule PR-2).
    open var executableURL: URL? {
        get { self[\.executableURL] }
        set {
            guard let newValue, newValue.isFileURL else {
                fatalError("Process.executableURL is the URL of a file, not \(String(describing: newValue)).")
            }
            self[\.executableURL] = newValue
        }
    }

    /// The arguments after the program's path.
    open var arguments: [String]? {
        get { self[\.arguments] }
        set { self[\.arguments] = newValue }
    }

    /// The environment of the child; nil means that of this process at the start.
    open var environment: [String: String]? {
        get { self[\.environment] }
        set { self[\.environment] = newValue }
    }

    /// The working directory of the child; at first, and after nil was set, that of this process. Nil if
    /// `currentDirectoryPath` is empty, which means the same.
    open var currentDirectoryURL: URL? {
        get { directory.isEmpty ? nil : URL(fileURLWithPath: directory, isDirectory: true) }
        set {
            if let newValue, !newValue.isFileURL {
                fatalError("Process.currentDirectoryURL is the URL of a directory, not \(newValue).")
            }
            self[\.currentDirectory] = newValue?.path
        }
    }

    private var directory: String { self[\.currentDirectory] ?? FileManager.default.currentDirectoryPath }

    /// The child's standard input: a `Pipe`, a `FileHandle`, or nil for `/dev/null`. At first that of this
    /// process.
    ///
    /// `run()` closes the child's end of a pipe in this process; it does not close a file handle
    /// (rule PR-17).
    open var standardInput: Any? {
        get { self[\.standardInput] }
        set {
            Self.require(newValue, "standardInput")
            self[\.standardInput] = newValue
        }
    }

    /// The child's standard output; see `standardInput`.
    open var standardOutput: Any? {
        get { self[\.standardOutput] }
        set {
            Self.require(newValue, "standardOutput")
            self[\.standardOutput] = newValue
        }
    }

    /// The child's standard error; see `standardInput`.
    open var standardError: Any? {
        get { self[\.standardError] }
        set {
            Self.require(newValue, "standardError")
            self[\.standardError] = newValue
        }
    }

    private static func require(_ file: Any?, _ name: String) {
        guard file == nil || file is Pipe || file is FileHandle else {
            fatalError("Process.\(name) is a Pipe, a FileHandle or nil, not a \(type(of: file)).")
        }
    }

    /// Kept, without effect: Linux's scheduler does not use it.
    open var qualityOfService: QualityOfService {
        get { self[\.qualityOfService] }
        set { self[\.qualityOfService] = newValue }
    }

    /// The path of `executableURL`; nil if there is none. The older name of that property.
    @available(*, deprecated, renamed: "executableURL")
    open var launchPath: String? {
        get { executableURL?.path }
        set { executableURL = newValue.map { URL(fileURLWithPath: $0) } }
    }

    /// The path of the working directory; empty means that of this process. The older name of
    /// `currentDirectoryURL`.
    @available(*, deprecated, renamed: "currentDirectoryURL")
    open var currentDirectoryPath: String {
        get { directory }
        set { self[\.currentDirectory] = newValue }
    }

    // MARK: - State

    /// Whether the child runs. False before `run()`, and when the end is reported (rule PR-5).
    open var isRunning: Bool { state.withLock { $0.child != nil && $0.status == nil } }

    /// The child's process number; 0 before `run()`.
    open var processIdentifier: Int32 { state.withLock { $0.child?.processIdentifier ?? 0 } }

    /// The exit code, or the number of the signal that ended the child (rule PR-4). Reading it before the end
    /// traps.
    ///
    /// It is 255 if another part of the program collected the child, or ignores SIGCHLD: see
    /// `Child.Status.unknown`.
    public var terminationStatus: Int32 {
        switch statusAfterTheEnd("terminationStatus") {
        case .exited(let code): code
        case .signalled(let number, _): number
        case .unknown: 255
        }
    }

    /// Whether the child exited or was ended by a signal. Reading it before the end traps.
    public var terminationReason: TerminationReason {
        switch statusAfterTheEnd("terminationReason") {
        case .exited, .unknown: .exit
        case .signalled: .uncaughtSignal
        }
    }

    private func statusAfterTheEnd(_ name: String) -> ChildStatus {
        let (hasStarted, status) = state.withLock { ($0.child != nil, $0.status) }
        if let status { return status }
        fatalError(
            hasStarted
                ? "Process.\(name) was asked for while the process runs: wait for its end, or look at isRunning."
                : "Process.\(name) was asked for before run().")
    }

    // MARK: - Report of the end

    /// Called once when the child has ended, on a queue in the background, or in the loops and modes in which
    /// the process was scheduled. If it is set after the end, it is called soon (rule PR-6). With a handler
    /// no notification is posted (rule PR-7).
    open var terminationHandler: (@Sendable (Process) -> Void)? {
        get { state.withLock { $0.handler.map(HandlerBox.init) }?.call }
        set {
            let box = newValue.map(HandlerBox.init)
            let replaced = state.withLock { state -> HandlerBox? in
                defer { state.handler = box?.call }
                state.owesHandler = box != nil
                return state.handler.map(HandlerBox.init)
            }
            // Released with no lock held: it may hold the last reference to an object whose deinit asks the
            // process.
            withExtendedLifetime(replaced) {}
            if newValue != nil { handlerWasSet() }
        }
    }

    // MARK: - Starting

    /// Starts the program, and returns when it runs.
    ///
    /// - Throws: An error of `NSCocoaErrorDomain` as Foundation's `Process` throws it, with the path under
    ///   `NSFilePathErrorKey` and the errno in the underlying error: the program or directory does not exist
    ///   or may not be used, or the kernel has no process for it. Then nothing is reported, and the process
    ///   may be run again (rule PR-3).
    open func run() throws { try start() }

    /// Starts the program as `run()` does, but traps on an error.
    @available(*, deprecated, renamed: "run")
    open func launch() {
        do {
            try run()
        } catch {
            fatalError("Process.launch(): \(error.localizedDescription)")
        }
    }

    /// Starts a program and returns its process; see the properties for the parameters.
    ///
    /// - Throws: As `run()`.
    @discardableResult
    open class func run(
        _ url: URL, arguments: [String], terminationHandler: (@Sendable (Process) -> Void)? = nil
    ) throws -> Process {
        let process = Process()
        process.executableURL = url
        process.arguments = arguments
        process.terminationHandler = terminationHandler
        try process.run()
        return process
    }

    /// Starts a program and returns its process, but traps on an error.
    @available(*, deprecated, renamed: "run(_:arguments:terminationHandler:)")
    open class func launchedProcess(launchPath path: String, arguments: [String]) -> Process {
        let process = Process()
        process.launchPath = path
        process.arguments = arguments
        process.launch()
        return process
    }

    // MARK: - Waiting

    /// Returns when the child has ended; until then runs the calling thread's loop in the default mode
    /// (rules PR-11 to PR-15).
    ///
    /// Timers, streams and other members of that mode are served meanwhile, and no others; `stop()` does not
    /// end the wait. If the notification is to be posted on this thread in the default mode, it is posted
    /// before this returns. It does not wait for the handler, or for the end of the outputs. Returns at once
    /// if the child has ended, or `run()` was not called.
    open func waitUntilExit() { wait() }

    // MARK: - Signals

    /// Sends SIGINT to the child alone. Does nothing after the child's end; traps before `run()`
    /// (rule PR-18).
    open func interrupt() { send(SIGINT, "interrupt") }

    /// Sends SIGTERM to the child alone. Does nothing after the child's end; traps before `run()`
    /// (rule PR-18).
    open func terminate() { send(SIGTERM, "terminate") }

    /// Stops the child (SIGSTOP) until `resume()` has been called once for each `suspend()`.
    ///
    /// - Returns: False if the child has ended.
    open func suspend() -> Bool {
        state.withLock { state in
            var suspensions = state.suspensions
            defer { state.suspensions = suspensions }
            return suspensions.suspend { state.send(SIGSTOP, "suspend") }
        }
    }

    /// Undoes one `suspend()`; the last one lets the child continue (SIGCONT). A call without a `suspend()`
    /// before it sends nothing, and counts for a later one, as in Foundation's `Process`.
    ///
    /// - Returns: False if the child should continue but has ended.
    open func resume() -> Bool {
        state.withLock { state in
            var suspensions = state.suspensions
            defer { state.suspensions = suspensions }
            return suspensions.resume { state.send(SIGCONT, "resume") }
        }
    }
}

/// A value on its way out of, or into, the lock of a process.
///
/// `@unchecked Sendable`: see `ProcessSettings`.
private struct UncheckedSendable<Value>: @unchecked Sendable {
    let value: Value

    init(_ value: Value) { self.value = value }
}

/// A termination handler. A struct, because a closure that is returned from a lock's closure would be wrapped
/// in another one.
struct HandlerBox: Sendable {
    let call: @Sendable (Process) -> Void
}
