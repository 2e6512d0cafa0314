import Rondo
import RondoCore
import RondoMutex
import RondoProbeSupport

/// The stress test of rule US-88: each task completes exactly once, and nothing is left of any of them.
struct Stress {
    let count: Int
    let threads: Int
    let seed: UInt64
    private(set) var summary = ""
    /// Microseconds between two looks at the threads that are left.
    private static let pause: useconds_t = 2_000

    init(count: Int, threads: Int, seed: UInt64) {
        self.count = count
        self.threads = threads
        self.seed = seed
    }

    /// The resources of this program: after the last session there must be no more than after the first.
    private struct Possessions {
        let descriptors: Int
        let threads: [String]
        let objects: [Int]

        /// There may be fewer threads: one that watches the network or files may have ended meanwhile.
        func isNoMore(than other: Possessions) -> Bool {
            descriptors <= other.descriptors && Set(threads).isSubset(of: other.threads)
                && threads.count <= other.threads.count
                && zip(objects, other.objects).allSatisfy { $0 <= $1 }
        }

        static var now: Possessions {
            let tasks = "/proc/self/task"
            let names = ((try? FileManager.default.contentsOfDirectory(atPath: tasks)) ?? []).compactMap {
                try? String(contentsOfFile: "\(tasks)/\($0)/comm", encoding: .utf8)
            }
            let census = LiveObject.census ?? [:]
            return Possessions(
                descriptors: ((try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")) ?? [])
                    .count,
                threads: names.filter { $0.hasPrefix("rondo") }.sorted(),
                objects: LiveObject.Kind.allCases.map { census[$0] ?? 0 })
        }
    }

    /// - Returns: The failures, as sentences.
    mutating func run() -> [String] {
        let server = AnsweringServer()
        var failures: [String] = []
        // The first session makes the objects that live as long as the process.
        _ = round(100, server)
        guard let before = settled(server, until: { _ in true }) else {
            return ["the first session does not end"]
        }
        let began = Date()
        let counting = round(count, server)
        let seconds = Date().timeIntervalSince(began)
        failures += counting.failures(of: count)
        let after = settled(server) { $0.isNoMore(than: before) }
        if after == nil { failures.append("before \(before), after \(Possessions.now)") }
        summary =
            "\(count) tasks, \(threads) threads, seed \(seed), \(seconds.formatted(.number.precision(.fractionLength(1)))) s; "
            + "\(counting.outcomes); \(before.threads.count) threads of Rondo's, \(before.descriptors) descriptors"
        return failures
    }

    /// The resources once no connection is served any more and `condition` holds; nil if that does not
    /// happen.
    private func settled(_ server: AnsweringServer, until condition: (Possessions) -> Bool) -> Possessions? {
        let limit = Date(timeIntervalSinceNow: 60)
        while Date() < limit {
            guard server.waitForConnections(until: limit) else { return nil }
            let now = Possessions.now
            if condition(now) { return now }
            // There is no event for the end of another object's thread before Linux 6.9.
            usleep(Self.pause)
        }
        return nil
    }

    /// Runs one session from its beginning to its end.
    private func round(_ count: Int, _ server: AnsweringServer) -> Counting {
        let counting = Counting()
        let configuration = URLSessionConfiguration.ephemeral
        configuration.httpMaximumConnectionsPerHost = 16
        let session = URLSession(configuration: configuration, delegate: counting, delegateQueue: nil)
        let tasks = (0..<count).compactMap { number in
            URL(string: "http://127.0.0.1:\(server.port)/\(number)").map { session.dataTask(with: $0) }
        }
        let areOver = JoinedThreads.run(threads, within: 300) { [seed] number in
            shake(tasks, Random(seed: seed &* 1_000_003 &+ UInt64(number)))
        }
        guard areOver else {
            counting.note(hanging: tasks)
            return counting
        }
        // No task has more suspensions than this.
        for _ in 0..<(threads * 6) { for task in tasks { task.resume() } }
        session.finishTasksAndInvalidate()
        if counting.ended.wait(timeout: .now() + 300) != .success {
            counting.note(hanging: tasks.filter { $0.state != .completed })
        }
        return counting
    }
}

/// Performs random actions on each task, in random order.
@Sendable private func shake(_ tasks: [URLSessionTask], _ random: Random) {
    var random = random
    for task in tasks.shuffled(using: &random) {
        task.resume()
        for _ in 0..<Int.random(in: 0..<6, using: &random) {
            switch Int.random(in: 0..<12, using: &random) {
            case 0...4: task.suspend()
            case 5...9: task.resume()
            case 10: task.priority = Float.random(in: 0...1, using: &random)
            default: task.cancel()
            }
        }
    }
}

/// Counts the last calls of each task, and calls after them.
private final class Counting: NSObject, URLSessionDataDelegate, Sendable {
    private struct State {
        var ends: [Int: Int] = [:]
        var codes: [Int: Int] = [:]
        var late = 0
        var hanging: [String] = []
    }

    private let state = Mutex(State())
    let ended = DispatchSemaphore(value: 0)

    func note(hanging tasks: [URLSessionTask]) {
        let words = tasks.map { "task \($0.taskIdentifier) hangs: \($0.state), \($0.whyNotDelivering)" }
        state.withLock { $0.hanging = words + ["the session does not end"] }
    }

    func failures(of count: Int) -> [String] {
        state.withLock { state in
            var failures = state.hanging
            if state.ends.count != count {
                failures.append("\(state.ends.count) of \(count) tasks have ended")
            }
            let twice = state.ends.filter { $0.value != 1 }
            if !twice.isEmpty { failures.append("more than one end: \(twice)") }
            if state.late > 0 { failures.append("\(state.late) calls after the last one") }
            return failures
        }
    }

    /// The number of tasks that succeeded, and the errors of the others.
    var outcomes: String {
        state.withLock { state in
            state.codes.sorted { $0.key > $1.key }.map {
                "\($0.value) \($0.key == 0 ? "whole" : "with \($0.key)")"
            }
            .joined(separator: ", ")
        }
    }

    private func note(_ task: URLSessionTask) {
        state.withLock { if $0.ends[task.taskIdentifier] != nil { $0.late += 1 } }
    }

    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
        completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
    ) {
        note(dataTask)
        completionHandler(.allow)
    }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        note(dataTask)
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        note(task)
        state.withLock { state in
            state.ends[task.taskIdentifier, default: 0] += 1
            state.codes[(error as? URLError)?.errorCode ?? 0, default: 0] += 1
        }
    }

    func urlSession(_ session: URLSession, didBecomeInvalidWithError error: (any Error)?) { ended.signal() }
}
