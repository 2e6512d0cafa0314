import Rondo
internal import RondoMutex
internal import RondoTrace

/// The tools of an experiment: a server, notes, threads, and waits with a limit.
final class Stage: Sendable {
    /// Seconds that an experiment may wait for something; only a failure takes that long.
    static let patience = 15.0

    private let recorder: Recorder
    private let server: LabServer
    private let threads = Mutex<[DispatchSemaphore]>([])

    init(recorder: Recorder) throws {
        self.recorder = recorder
        server = try LabServer()
    }

    /// A URL of the lab's server; see `LabServer` for its paths.
    func url(_ path: String) -> URL { server.url(path) }

    /// The Cache-Control fields of the requests for news; see `LabServer`.
    func requests(for url: URL) -> [String] { server.requests(for: url) }

    /// Writes a note into the recording, with the calling thread and the time.
    func note(_ name: String, _ value: Int = 0) { recorder.mark(name, value: Int64(value)) }

    /// Runs `loop` in `mode` until `isDone`, one source at a time.
    func run(_ loop: RunLoop, _ mode: RunLoop.Mode = .default, until isDone: () -> Bool) throws {
        let limit = LoopClock.now.advanced(bySeconds: Self.patience)
        while !isDone() {
            guard LoopClock.now < limit else { throw StageFailure.tookTooLong }
            // The limit is short so that changes by other threads are noticed.
            guard loop.run(mode: mode, before: Date(timeIntervalSinceNow: 0.2)) else {
                if isDone() { return }
                throw StageFailure.emptyMode(mode.spokenName)
            }
        }
    }

    /// Waits until `isDone`, which another thread brings about.
    func wait(for isDone: () -> Bool) throws {
        let limit = LoopClock.now.advanced(bySeconds: Self.patience)
        while !isDone() {
            guard LoopClock.now < limit else { throw StageFailure.tookTooLong }
            Thread.sleep(forTimeInterval: 0.002)
        }
    }

    /// Starts a thread of this name. The experiment ends when all its threads have ended.
    func thread(_ name: String, _ body: @escaping @Sendable () -> Void) {
        let ended = DispatchSemaphore(value: 0)
        threads.withLock { $0.append(ended) }
        let thread = Thread {
            nameThisThread(name)
            body()
            ended.signal()
        }
        thread.name = name
        thread.start()
    }

    func joinThreads() throws {
        for ended in threads.withLock({ $0 }) where ended.wait(timeout: .now() + Self.patience) != .success {
            throw StageFailure.tookTooLong
        }
    }

    func end() { server.stop() }
}

// helpers of all
/// The reason why an experiment could not begin, or gave up.
package enum StageFailure: Error, Equatable, CustomStringConvertible {
    case tookTooLong
    case emptyMode(String)
    case noServer(String)
    case noConnection

    package var description: String {
        switch self {
        case .tookTooLong: "the experiment waited \(Int(Stage.patience)) s for something that never came"
        case .emptyMode(let mode): "the run loop had nothing to wait for in \(mode)"
        case .noServer(let reason): "the lab's server could not start: \(reason)"
        case .noConnection: "no connection could be made"
        }
    }
}

/// A value that several threads of an experiment share.
final class Shared<Value: Sendable>: Sendable {
    private let state: Mutex<Value>

    init(_ value: Value) { state = Mutex(value) }

    var value: Value {
        get { state.withLock { $0 } }
        set { state.withLock { $0 = newValue } }
    }

    func update(_ change: @Sendable (inout Value) -> Void) { state.withLock { change(&$0) } }
}

/// The delegate of most experiments: counts bytes.
final class Reader: NSObject, URLConnectionDataDelegate, Sendable {
    private let state = Mutex((bytes: 0, isDone: false, errorCode: 0))
    private let whenDone: @Sendable () -> Void

    init(whenDone: @escaping @Sendable () -> Void = {}) { self.whenDone = whenDone }

    var bytes: Int { state.withLock { $0.bytes } }
    var isDone: Bool { state.withLock { $0.isDone } }
    /// The code of the error that ended the load; 0 if there was none.
    var errorCode: Int { state.withLock { $0.errorCode } }

    func connection(_ connection: URLConnection, didReceive data: Data) {
        state.withLock { $0.bytes += data.count }
    }

    func connectionDidFinishLoading(_ connection: URLConnection) {
        state.withLock { $0.isDone = true }
        whenDone()
    }

    func connection(_ connection: URLConnection, didFailWithError error: any Error) {
        state.withLock { ($0.isDone, $0.errorCode) = (true, (error as NSError).code) }
        whenDone()
    }
}

/// The delegate of a session's tasks: counts bytes.
final class SessionReader: NSObject, URLSessionDataDelegate, Sendable {
    private let state = Mutex((bytes: 0, isDone: false))
    private let whenFirst: @Sendable () -> Void

    /// - Parameter whenFirst: Called with the first content.
    init(whenFirst: @escaping @Sendable () -> Void = {}) { self.whenFirst = whenFirst }

    var bytes: Int { state.withLock { $0.bytes } }
    var isDone: Bool { state.withLock { $0.isDone } }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        let isFirst = state.withLock { state in
            defer { state.bytes += data.count }
            return state.bytes == 0
        }
        if isFirst { whenFirst() }
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        if error == nil { state.withLock { $0.isDone = true } }
    }
}

extension URLConnection {
    /// Makes a connection that is not started yet, with a name for the timeline.
    static func labelled(_ label: String, _ url: URL, _ delegate: Any) throws -> URLConnection {
        try labelled(label, URLRequest(url: url, cachePolicy: .reloadIgnoringLocalCacheData), delegate)
    }

    static func labelled(_ label: String, _ request: URLRequest, _ delegate: Any) throws -> URLConnection {
        guard let connection = URLConnection(request: request, delegate: delegate, startImmediately: false)
        else { throw StageFailure.noConnection }
        connection.label = label
        return connection
    }
}

extension RunLoop {
    /// Runs the loop for that many seconds, in one activation that no source ends.
    @discardableResult
    func spend(_ seconds: TimeInterval, in mode: Mode) -> RunResult {
        run(in: mode, for: seconds, returnAfterSourceHandled: false)
    }

    /// Keeps `mode` from being empty.
    func keepAlive(in mode: Mode) { add(Port(), forMode: mode) }
}

/// The processor time of the calling thread, in nanoseconds.
func nanosecondsOfThread() -> Int {
    var time = timespec()
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
    return Int(time.tv_sec) * 1_000_000_000 + Int(time.tv_nsec)
}
// end of helpers
