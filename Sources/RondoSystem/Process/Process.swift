public import RondoCore
internal import RondoMutex

/// Another program, run as a child of this one: Foundation's `Process`, on Rondo's run loops.
///
/// `run()` starts it. Its end is told once: to `terminationHandler` on a queue in the background, or, where there is no
/// handler, by `didTerminateNotification` on the thread that has called `run()`, while that thread's loop runs in the default
/// mode (rules PR-6 to PR-8); `schedule(in:forMode:)` moves both to the loops and modes that a program likes.
/// `waitUntilExit()` runs the calling thread's loop meanwhile: timers, streams and connections in the default mode go on.
///
/// The child's end is that of its own process, whatever its children keep open. It is collected as soon as it ends: no
/// zombie stays. The child has a process group of its own, no blocked signal, and of this process's descriptors only those
/// that it was given. A `Process` runs once. Any thread may use it.
///
/// Linux 5.4 or later. The counterpart of `NSTask`; `Child` is the same with more to choose.
open class Process: NSObject, @unchecked Sendable {
    // `@unchecked Sendable` because the class is open: its own properties are behind the lock.

    public typealias TerminationReason = Foundation.Process.TerminationReason

    /// Posted when a process without a handler has ended; the object is the process, there is no userInfo.
    ///
    /// It comes on the thread that has called `run()`, while that thread's loop runs in the default mode, or where the process
    /// was scheduled. Of processes whose starting threads run no loop the last 1,000 ends are kept, in the whole program.
    public static let didTerminateNotification = Foundation.Process.didTerminateNotification

    struct State {
        var settings = ProcessSettings()
        var handler: (@Sendable (Process) -> Void)?
        /// The handler was set, and not called since.
        var owesHandler = false
        /// `run()` was called, and has not failed.
        var hasStarted = false
        var child: ChildHandle?
        /// The child has ended, and everything that asks this process knows.
        var status: ChildStatus?
        var suspensions = 0
        var waits: [LoopWait] = []
        var telling = ProcessTelling()
    }

    let state = Mutex(State())

    public override init() { super.init() }

    // MARK: - What is run

    private subscript<Value>(setting: any WritableKeyPath<ProcessSettings, Value> & Sendable) -> Value {
        get { state.withLock { Unguarded($0.settings[keyPath: setting]) }.value }
        set {
            let value = Unguarded(newValue)
            state.withLock { $0.settings[keyPath: setting] = value.value }
        }
    }

    /// The program's file. To set nil or a URL that is no file traps.
    ///
    /// A property that is set after `run()` has no effect on the child, here and below (rule PR-2).
    open var executableURL: URL? {
        get { self[\.executableURL] }
        set {
            guard let newValue, newValue.isFileURL else {
                fatalError("Process.executableURL is the URL of a file, not \(String(describing: newValue)).")
            }
            self[\.executableURL] = newValue
        }
    }

    /// What follows the program's path, which is its first argument.
    open var arguments: [String]? {
        get { self[\.arguments] }
        set { self[\.arguments] = newValue }
    }

    /// The child's environment; nil: this process's at the start.
    open var environment: [String: String]? {
        get { self[\.environment] }
        set { self[\.environment] = newValue }
    }

    /// The directory that the child begins in; at first, and after setting nil, this process's. Nil while
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

    /// Where the child reads: a `Pipe`, a `FileHandle`, or nil for nothing, `/dev/null`. At first this process's own.
    ///
    /// Of a pipe the child's end is closed in this process by `run()`; a file handle is left alone (rule PR-17).
    open var standardInput: Any? {
        get { self[\.standardInput] }
        set {
            Self.require(newValue, "standardInput")
            self[\.standardInput] = newValue
        }
    }

    /// Where the child writes; see `standardInput`.
    open var standardOutput: Any? {
        get { self[\.standardOutput] }
        set {
            Self.require(newValue, "standardOutput")
            self[\.standardOutput] = newValue
        }
    }

    /// Where the child writes what went wrong; see `standardInput`.
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

    /// Kept for the program; Linux's scheduler does not use it.
    open var qualityOfService: QualityOfService {
        get { self[\.qualityOfService] }
        set { self[\.qualityOfService] = newValue }
    }

    @available(*, deprecated, renamed: "executableURL")
    open var launchPath: String? {
        get { executableURL?.path }
        set { executableURL = newValue.map { URL(fileURLWithPath: $0) } }
    }

    @available(*, deprecated, renamed: "currentDirectoryURL")
    open var currentDirectoryPath: String {
        get { directory }
        set { self[\.currentDirectory] = newValue }
    }

    // MARK: - What has become of it

    /// Whether the child runs. False before `run()`, and when the end is told (rule PR-5).
    open var isRunning: Bool { state.withLock { $0.child != nil && $0.status == nil } }

    /// The child's number; 0 before `run()`.
    open var processIdentifier: Int32 { state.withLock { $0.child?.processIdentifier ?? 0 } }

    /// The exit code, or the number of the signal that has ended the child (rule PR-4). To read it before the end traps.
    ///
    /// 255 where another part of the program has collected the child, or ignores SIGCHLD: see `Child.Status.unknown`.
    public var terminationStatus: Int32 {
        switch statusAfterTheEnd("terminationStatus") {
        case .exited(let code): code
        case .signalled(let number, _): number
        case .unknown: 255
        }
    }

    /// Whether the child has exited, or a signal has ended it. To read it before the end traps.
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

    // MARK: - How its end is told

    /// Called once when the child has ended, on a queue in the background, or where the process was scheduled. Set after the
    /// end it is called soon (rule PR-6). As long as there is one, no notification is posted (rule PR-7).
    open var terminationHandler: (@Sendable (Process) -> Void)? {
        get { state.withLock { $0.handler.map(HandlerBox.init) }?.call }
        set {
            let box = newValue.map(HandlerBox.init)
            state.withLock { state in
                state.handler = box?.call
                state.owesHandler = box != nil
            }
            if newValue != nil { handlerWasSet() }
        }
    }

    // MARK: - Starting

    /// Starts the program, and returns when it runs.
    ///
    /// - Throws: An error of `NSCocoaErrorDomain` as Foundation throws it, with the path under `NSFilePathErrorKey` and the
    ///   errno in the underlying error: the program or the directory is not there or may not be used, or the kernel gives no
    ///   process. Nothing is told then, and the process may be run again (rule PR-3).
    open func run() throws { try start() }

    /// As `run()`; what that throws traps here.
    @available(*, deprecated, renamed: "run")
    open func launch() {
        do {
            try run()
        } catch {
            fatalError("Process.launch(): \(error.localizedDescription)")
        }
    }

    /// Starts a program, and returns its process.
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

    @available(*, deprecated, renamed: "run(_:arguments:terminationHandler:)")
    open class func launchedProcess(launchPath path: String, arguments: [String]) -> Process {
        let process = Process()
        process.launchPath = path
        process.arguments = arguments
        process.launch()
        return process
    }

    // MARK: - Waiting

    /// Returns when the child has ended; until then it runs the calling thread's loop in the default mode (rules PR-11 to
    /// PR-15).
    ///
    /// Timers, streams and other members of that mode are served meanwhile, and no others; `stop()` does not end it. Where
    /// the notification is posted on this thread in the default mode, it is posted before this returns; for a handler, and
    /// for the end of the outputs, it does not wait. At once if the child has ended, or `run()` was not called.
    open func waitUntilExit() { wait() }

    // MARK: - Signals

    /// Sends SIGINT to the child alone. After its end it does nothing; before `run()` it traps (rule PR-18).
    open func interrupt() { send(SIGINT, "interrupt") }

    /// Sends SIGTERM to the child alone. After its end it does nothing; before `run()` it traps (rule PR-18).
    open func terminate() { send(SIGTERM, "terminate") }

    /// Stops the child (SIGSTOP) until each `suspend()` was followed by a `resume()`.
    ///
    /// - Returns: Whether the child was there.
    open func suspend() -> Bool {
        guard send(SIGSTOP, "suspend") else { return false }
        state.withLock { $0.suspensions += 1 }
        return true
    }

    /// Takes back one `suspend()`; the last one has the child go on (SIGCONT). One without a `suspend()` before it sends
    /// nothing, and counts for a later one, as in Foundation's `Process`.
    ///
    /// - Returns: False: the child was to go on, and is not there any more.
    open func resume() -> Bool {
        let isLast = state.withLock { $0.suspensions == 1 }
        guard !isLast || send(SIGCONT, "resume") else { return false }
        state.withLock { $0.suspensions -= 1 }
        return true
    }
}

/// A value on its way out of, or into, the lock of a process.
///
/// `@unchecked Sendable`: see `ProcessSettings`.
private struct Unguarded<Value>: @unchecked Sendable {
    let value: Value

    init(_ value: Value) { self.value = value }
}

/// A struct, since a bare closure that a lock's closure returns is wrapped in another one.
struct HandlerBox: Sendable {
    let call: @Sendable (Process) -> Void
}
