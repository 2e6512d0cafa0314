import Rondo
import RondoMutex

func expect(_ holds: Bool, _ what: @autoclosure () -> String) {
    guard !holds else { return }
    print("broken: \(what())")
    exit(1)
}

/// The library that makes calls fail, if the program was started with it.
enum Faults {
    /// Safe: the type is that of `rondo_faults_arm` in faults.c.
    private static let function = dlsym(nil, "rondo_faults_arm").map {
        unsafeBitCast($0, to: (@convention(c) (Int32) -> Void).self)
    }

    static func arm() {
        expect(function != nil, "the library of faults is preloaded")
        function?(1)
    }

    static func disarm() { function?(0) }
}

/// Seconds of processor time that the process has used.
var processorSeconds: Double {
    var time = timespec()
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
    return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
}

/// Counts events on any thread.
final class Count: Sendable {
    private let state = Mutex(0)

    var value: Int { state.withLock { $0 } }

    func rise() { state.withLock { $0 += 1 } }
}

/// Runs `mode` of the calling thread's loop until `isDone`, and returns whether that happened within
/// `seconds`.
@discardableResult
func run(_ mode: RunLoop.Mode = .default, upTo seconds: Double, until isDone: () -> Bool) -> Bool {
    let end = Date(timeIntervalSinceNow: seconds)
    while !isDone() {
        guard Date() < end else { return false }
        let began = Date()
        let ran = RunLoop.current.run(mode: mode, before: Date(timeIntervalSinceNow: 0.05))
        // An empty mode returns at once.
        if !ran, began.timeIntervalSinceNow > -0.01 { usleep(10_000) }
    }
    return true
}

/// A load that records how it has ended, and how often.
final class Load: NSObject, URLConnectionDataDelegate {
    private let state = Mutex((ends: 0, error: NSError?.none))

    var ends: Int { state.withLock { $0.ends } }
    var hasEnded: Bool { ends > 0 }
    var error: NSError? { state.withLock { $0.error } }
    /// The errno of the underlying error.
    var code: Int32? { (error?.userInfo[NSUnderlyingErrorKey] as? NSError).map { Int32($0.code) } }

    static func request(
        _ url: String, seconds: Double = 5,
        policy: NSURLRequest.CachePolicy = .reloadIgnoringLocalCacheData
    ) -> URLRequest {
        guard let url = URL(string: url) else { fatalError("no URL: \(url)") }
        return URLRequest(url: url, cachePolicy: policy, timeoutInterval: seconds)
    }

    /// Starts a load in the default mode of the calling thread's loop.
    static func start(
        _ url: String, seconds: Double = 5,
        policy: NSURLRequest.CachePolicy = .reloadIgnoringLocalCacheData
    ) -> Load {
        let load = Load()
        _ = URLConnection(request: request(url, seconds: seconds, policy: policy), delegate: load)
        return load
    }

    func connection(_ connection: URLConnection, didFailWithError error: any Error) {
        state.withLock { $0 = ($0.ends + 1, error as NSError) }
    }

    func connectionDidFinishLoading(_ connection: URLConnection) { state.withLock { $0.ends += 1 } }
}

/// A stream's delegate that records the end of the stream.
final class Talk: NSObject, StreamDelegate {
    var error: NSError?
    var ends = 0
    var bytes = 0
    private let told = Count()

    var hasEnded: Bool { ends > 0 }
    /// The number of events, on any thread.
    var events: Int { told.value }

    func stream(_ aStream: Foundation.Stream, handle eventCode: Foundation.Stream.Event) {
        told.rise()
        switch eventCode {
        case .hasBytesAvailable:
            guard let input = aStream as? InputStream else { return }
            var buffer = [UInt8](repeating: 0, count: 4_096)
            let count = input.read(&buffer, maxLength: buffer.count)
            if count > 0 { bytes += count }
        case .errorOccurred:
            error = aStream.streamError as NSError?
            ends += 1
        case .endEncountered: ends += 1
        default: break
        }
    }
}
