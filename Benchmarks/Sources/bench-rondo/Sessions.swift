import BenchmarkSupport
import Rondo
import Synchronization

// W10: small GETs through a session, by each of the ways that it has, beside a URLConnection with a delegate.

enum SessionWay: String {
    /// A connection with a delegate, on the loop: what the others are measured by.
    case connection
    /// A data delegate on the loop.
    case loop
    /// A data delegate on a queue.
    case queue
    /// A completion handler on the session's queue.
    case handler
    /// `data(for:)`.
    case async
}

func getBySession(_ way: SessionWay, _ address: String, requests: Int, concurrency: Int) {
    if way == .connection {
        round([address], requests: concurrency * 4, concurrency: concurrency)
        let meter = Meter()
        let bytes = round([address], requests: requests, concurrency: concurrency)
        precondition(bytes == requests * 1024)
        return reportSession(way, address, requests, concurrency, meter)
    }
    guard let url = URL(string: address) else { fatalError("no URL: \(address)") }
    let request = URLRequest(url: url, cachePolicy: .reloadIgnoringLocalCacheData)
    let configuration = URLSessionConfiguration.ephemeral
    configuration.httpMaximumConnectionsPerHost = concurrency
    // As the connections do, which use the process's: both are empty.
    configuration.httpCookieStorage = .shared
    configuration.urlCache = .shared
    allow(connections: concurrency)
    let count = SessionCount(stopping: way == .loop ? RunLoop.current : nil)
    let delegate = SessionGetter(request, count)
    let session =
        switch way {
        case .loop: URLSession(configuration: configuration, delegate: delegate, runLoop: .current)
        case .queue: URLSession(configuration: configuration, delegate: delegate, delegateQueue: nil)
        default: URLSession(configuration: configuration)
        }
    func turn(_ requests: Int) {
        count.begin(requests)
        for _ in 0..<concurrency {
            switch way {
            case .handler: getByHandler(session, request, count)
            case .async: Task { await getByTask(session, request, count) }
            default: delegate.next(session)
            }
        }
        if way == .loop {
            runUntilStopped()
        } else {
            count.wait()
        }
    }
    turn(concurrency * 4)
    let meter = Meter()
    turn(requests)
    precondition(count.bytes == requests * 1024)
    reportSession(way, address, requests, concurrency, meter)
}

private func reportSession(
    _ way: SessionWay, _ address: String, _ requests: Int, _ concurrency: Int, _ meter: Meter
) {
    reportGet(
        "rondo-\(way.rawValue)", url: address, concurrency: concurrency, requests: requests, wall: meter.wall,
        cpu: meter.cpu, named: "W10")
}

/// What the requests in flight share.
private final class SessionCount: Sendable {
    private let left = Atomic(0)
    private let unfinished = Atomic(0)
    private let received = Atomic(0)
    private let done = DispatchSemaphore(value: 0)
    private let loop: RunLoop?

    /// - Parameter loop: Is stopped when all are done.
    init(stopping loop: RunLoop?) { self.loop = loop }

    func begin(_ requests: Int) {
        left.store(requests, ordering: .relaxed)
        received.store(0, ordering: .relaxed)
        unfinished.store(requests, ordering: .releasing)
    }

    func takeOne() -> Bool { left.wrappingSubtract(1, ordering: .relaxed).oldValue > 0 }

    func received(_ count: Int) { received.wrappingAdd(count, ordering: .relaxed) }

    func finishedOne() {
        if unfinished.wrappingSubtract(1, ordering: .acquiringAndReleasing).newValue == 0 {
            done.signal()
            loop?.stop()
        }
    }

    var bytes: Int { received.load(ordering: .relaxed) }
    func wait() { done.wait() }
}

private func getByHandler(_ session: URLSession, _ request: URLRequest, _ count: SessionCount) {
    guard count.takeOne() else { return }
    session.dataTask(with: request) { data, response, error in
        guard let data, (response as? HTTPURLResponse)?.statusCode == 200 else {
            fatalError("\(String(describing: error))")
        }
        count.received(data.count)
        getByHandler(session, request, count)
        count.finishedOne()
    }.resume()
}

private func getByTask(_ session: URLSession, _ request: URLRequest, _ count: SessionCount) async {
    while count.takeOne() {
        do {
            let (data, response) = try await session.data(for: request)
            precondition((response as? HTTPURLResponse)?.statusCode == 200)
            count.received(data.count)
            count.finishedOne()
        } catch { fatalError("\(error)") }
    }
}

/// The delegate of a session; each request is followed by the next.
private final class SessionGetter: NSObject, URLSessionDataDelegate, Sendable {
    private let request: URLRequest
    private let count: SessionCount

    init(_ request: URLRequest, _ count: SessionCount) {
        self.request = request
        self.count = count
    }

    func next(_ session: URLSession) { if count.takeOne() { session.dataTask(with: request).resume() } }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        count.received(data.count)
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        precondition((task.response as? HTTPURLResponse)?.statusCode == 200)
        next(session)
        count.finishedOne()
    }
}
