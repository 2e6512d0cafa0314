import Rondo
import RondoMutex
import RondoTestSupport
import RondoTesting
import Testing

/// A delegate that writes down what it is told.
///
/// The calls read "willSend 302 http://…", "response 200", "data" (any number of them in a row is one),
/// "finish", "fail -1005".
final class Recorder: NSObject, URLConnectionDataDelegate, Sendable {
    enum Call: Sendable {
        case willSend, response, data, sent, finish, fail
    }

    private struct State {
        var calls: [String] = []
        /// The place of each call: the mode of the watched loop, or "another thread".
        var places: [String] = []
        var responses: [HTTPURLResponse] = []
        var body = Data()
        var pieces: [Data] = []
        var sent: [[Int]] = []
        var error: URLError?
        var isDone = false
        var loop: RunLoop?
        var hook: (@Sendable (Call, URLConnection) -> Void)?
        var willSend: (@Sendable (URLRequest, URLResponse?, URLConnection) -> URLRequest?)?
    }

    private let state = Mutex(State())

    /// - Parameters:
    ///   - loop: The loop that calls are expected on.
    ///   - hook: Called in each call, after it was noted.
    init(on loop: RunLoop? = nil, hook: (@Sendable (Call, URLConnection) -> Void)? = nil) {
        state.withLock {
            $0.loop = loop
            $0.hook = hook
        }
    }

    /// The loop that calls are expected on.
    var loop: RunLoop? {
        get { state.withLock { $0.loop } }
        set { state.withLock { $0.loop = newValue } }
    }

    func answerWillSend(
        _ answer: @escaping @Sendable (URLRequest, URLResponse?, URLConnection) -> URLRequest?
    ) {
        state.withLock { $0.willSend = answer }
    }

    var calls: [String] { state.withLock { $0.calls } }
    var places: Set<String> { state.withLock { Set($0.places) } }
    var responses: [HTTPURLResponse] { state.withLock { $0.responses } }
    var response: HTTPURLResponse? { responses.last }
    var body: Data { state.withLock { $0.body } }
    var text: String { String(decoding: body, as: UTF8.self) }
    /// Whether the body is `data`: to be expected of large ones, whose difference takes for ever to print.
    func hasBody(_ data: Data) -> Bool { body == data }
    func hasBody(_ text: String) -> Bool { body == Data(text.utf8) }
    /// Whether the pieces, as they are now, are still what they were when they were delivered.
    var isMadeOfPieces: Bool { state.withLock { $0.pieces.reduce(Data(), +) == $0.body } }
    var pieces: [Data] { state.withLock { $0.pieces } }
    var sent: [[Int]] { state.withLock { $0.sent } }
    var error: URLError? { state.withLock { $0.error } }
    /// A terminal call has come.
    var isDone: Bool { state.withLock { $0.isDone } }

    private func note(
        _ call: Call, _ text: String, _ connection: URLConnection, _ change: (inout State) -> Void = { _ in }
    ) {
        let hook = state.withLock { state in
            if call != .data || state.calls.last != text { state.calls.append(text) }
            if let loop = state.loop {
                let mode = loop.currentMode?.rawValue ?? "no mode"
                state.places.append(loop.isCurrent ? mode : "another thread")
            }
            change(&state)
            return state.hook
        }
        hook?(call, connection)
    }

    func connection(
        _ connection: URLConnection, willSend request: URLRequest, redirectResponse response: URLResponse?
    ) -> URLRequest? {
        let status = (response as? HTTPURLResponse).map { String($0.statusCode) } ?? "canonical"
        note(.willSend, "willSend \(status) \(request.url?.absoluteString ?? "nil")", connection)
        guard let answer = state.withLock({ $0.willSend }) else { return request }
        return answer(request, response, connection)
    }

    func connection(_ connection: URLConnection, didReceive response: URLResponse) {
        guard let response = response as? HTTPURLResponse else { return }
        note(.response, "response \(response.statusCode)", connection) { $0.responses.append(response) }
    }

    func connection(_ connection: URLConnection, didReceive data: Data) {
        note(.data, "data", connection) { state in
            state.body.append(data)
            state.pieces.append(data)
        }
    }

    func connection(
        _ connection: URLConnection, didSendBodyData bytesWritten: Int, totalBytesWritten: Int,
        totalBytesExpectedToWrite: Int
    ) {
        note(.sent, "sent", connection) {
            $0.sent.append([bytesWritten, totalBytesWritten, totalBytesExpectedToWrite])
        }
    }

    func connectionDidFinishLoading(_ connection: URLConnection) {
        note(.finish, "finish", connection) { $0.isDone = true }
    }

    func connection(_ connection: URLConnection, didFailWithError error: any Error) {
        let error = error as? URLError
        note(.fail, "fail \(error?.errorCode ?? 0)", connection) {
            $0.error = error
            $0.isDone = true
        }
    }
}

extension Trait where Self == LeavesNothing {
    /// The suite leaves nothing behind but connections that are kept.
    static var leavesNoConnections: Self { .leavesNothing { URLConnection.closeIdleConnections() } }
}

extension RunLoop.Mode {
    static let work = RunLoop.Mode("work")
    static let other = RunLoop.Mode("other")
}

extension RunLoop {
    /// Lets 60.1 seconds pass five times by the loop's clock, while it runs on another thread than this.
    func passTime(by clock: ManualClock) throws {
        for _ in 0..<5 {
            try waitUntilAsleep()
            clock.advance(by: 60.1)
        }
        try waitUntilAsleep()
    }

    /// Runs the default mode while those minutes pass. On the loop's thread.
    func runWhileTimePasses(by clock: ManualClock) {
        let elsewhere = LoopThread { _ in
            do { try self.passTime(by: clock) } catch { Issue.record(error) }
            self.stop()
        }
        let keepAlive = Port()
        add(keepAlive, forMode: .default)
        #expect(run(in: .default, for: 1e9, returnAfterSourceHandled: false) == .stopped)
        keepAlive.invalidate()
        #expect(throws: Never.self) { try elsewhere.value() }
    }

    /// Runs `mode` until `condition` holds, asked after each source and every now and then; answers whether
    /// it does.
    @discardableResult
    func run(_ mode: Mode = .default, until condition: () -> Bool) -> Bool {
        let limit = Date(timeIntervalSinceNow: testPatience)
        while !condition() {
            guard limit.timeIntervalSinceNow > 0, run(mode: mode, before: Date(timeIntervalSinceNow: 0.05))
            else { break }
        }
        return condition()
    }
}

/// Loads a request on a thread of its own, in the default mode, to the end.
@discardableResult
func load(
    _ request: URLRequest, recorder: Recorder = Recorder(),
    configure: @escaping @Sendable (URLConnection) -> Void = { _ in }
) throws -> Recorder {
    let result = try onLoopThread { loop -> RunLoop.RunResult? in
        guard let connection = URLConnection(request: request, delegate: recorder, startImmediately: false)
        else { return nil }
        configure(connection)
        connection.start()
        return loop.runOut()
    }
    #expect(result == .finished, "the loop did not run out: \(recorder.calls)")
    return recorder
}

/// Loads a URL; see above.
@discardableResult
func load(
    _ url: URL, recorder: Recorder = Recorder(),
    configure: @escaping @Sendable (URLConnection) -> Void = { _ in }
) throws -> Recorder {
    try load(URLRequest(url: url), recorder: recorder, configure: configure)
}

/// A server that answers with `total` bytes, which are more than the kernel's buffers hold.
///
/// - Parameter sent: The bytes that were sent.
func floodingServer(_ total: Int, counting sent: Box<Int>) throws -> TestServer {
    try TestServer { peer in
        _ = try peer.readRequest()
        try peer.send("HTTP/1.1 200 OK\r\nContent-Length: \(total)\r\n\r\n")
        let piece = [UInt8](repeating: 65, count: 1 << 16)
        while sent.value < total {
            try peer.send(piece)
            sent.value += piece.count
        }
        peer.waitForEnd()
    }
}

/// A server that answers a request "late" when it is let.
func lateServer() throws -> (TestServer, asked: Latch, mayAnswer: Latch) {
    let (asked, mayAnswer) = (Latch(), Latch())
    let server = try TestServer { peer in
        _ = try peer.readRequest()
        asked.open()
        try mayAnswer.wait()
        try peer.respond(body: "late")
        peer.waitForEnd()
    }
    return (server, asked, mayAnswer)
}

/// A cache that takes its time: what it is to store waits until it is let.
///
/// `@unchecked Sendable`, as its superclass is in fact: the latches never change.
final class WaitingCache: URLCache, @unchecked Sendable {
    let began = Latch()
    let mayGoOn = Latch()

    override func storeCachedResponse(_ cachedResponse: CachedURLResponse, for request: URLRequest) {
        began.open()
        do { try mayGoOn.wait() } catch { Issue.record(error) }
        super.storeCachedResponse(cachedResponse, for: request)
    }
}

/// A reference that says whether its object is still there.
final class WeakBox<Object: AnyObject & Sendable>: Sendable {
    private let object: Mutex<Weak>

    private struct Weak {
        weak var object: Object?
    }

    init(_ object: Object?) {
        self.object = Mutex(Weak(object: object))
    }

    var isEmpty: Bool { object.withLock { $0.object == nil } }
}

/// Text of `count` bytes in which no two places look alike.
func longText(_ count: Int) -> String {
    var text = ""
    var number = 0
    while text.utf8.count < count {
        text += "\(number)."
        number += 1
    }
    return String(text.prefix(count))
}
