import Rondo
import RondoCore
import RondoMutex
import RondoProbeSupport

/// A few objects on which several threads perform random steps, until all are invalidated.
protocol Round: AnyObject, Sendable {
    init(_ loops: Loops, _ random: inout Random) throws
    /// Performs one step. Any thread.
    func step(_ random: inout Random, thread: Int, number: Int)
    /// - Returns: The failures, as sentences.
    func finish() -> [String]
}

/// Rounds of random steps: no round may crash, hang, make a callback twice, or leave anything behind.
struct Stress {
    let rounds: Int
    let threads: Int
    let seed: UInt64
    private(set) var summary = ""

    private static let kinds: [any Round.Type] = [
        SocketRound.self, ListenerRound.self, PortRound.self, DescriptorRound.self, HostRound.self,
    ]
    private static let stepsOfAThread = 25
    private static let loopCount = 3

    init(rounds: Int, threads: Int, seed: UInt64) {
        self.rounds = rounds
        self.threads = threads
        self.seed = seed
    }

    /// The resources of this program: after the last round there must be no more than after the first ones.
    private struct Possessions {
        /// The target of each descriptor.
        let descriptors: [String]
        let objects: [Int]

        /// A loop that waits inside a read for the first time makes a mode for that, with an epoll set, and
        /// keeps the last source that has left the mode until it runs in that mode again.
        func isNoMore(than other: Possessions) -> Bool {
            descriptors.filter { $0 != "anon_inode:[eventpoll]" }.count
                <= other.descriptors.filter { $0 != "anon_inode:[eventpoll]" }.count
                && zip(objects, other.objects).allSatisfy { $0 <= $1 + Stress.loopCount }
        }

        static var now: Possessions {
            let census = LiveObject.census ?? [:]
            let folder = "/proc/self/fd"
            let numbers = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
            return Possessions(
                descriptors: numbers.compactMap {
                    try? FileManager.default.destinationOfSymbolicLink(atPath: "\(folder)/\($0)")
                }.sorted(),
                objects: LiveObject.Kind.allCases.map { census[$0] ?? 0 })
        }
    }

    /// - Returns: The failures, as sentences.
    mutating func run() -> [String] {
        let loops = Loops(Self.loopCount)
        defer { loops.stop() }
        var random = Random(seed: seed)
        // The first rounds make the objects that live as long as the process.
        var failures: [String] = []
        for number in 0..<Self.kinds.count { failures += round(number, loops, &random) }
        let before = Possessions.now
        let began = Date()
        for number in 0..<rounds {
            failures += round(number, loops, &random)
            if failures.count > 20 { break }
        }
        let seconds = Date().timeIntervalSince(began)
        if !settled(loops, { $0.isNoMore(than: before) }) {
            failures.append("before \(before), after \(Possessions.now)\n\(LoopReport.ofAllLoops)")
        }
        summary =
            "\(rounds) rounds, \(threads) threads, seed \(seed), "
            + "\(seconds.formatted(.number.precision(.fractionLength(1)))) s; \(before.descriptors.count) descriptors"
        return failures
    }

    private func settled(_ loops: Loops, _ condition: (Possessions) -> Bool) -> Bool {
        let limit = Date(timeIntervalSinceNow: 60)
        while Date() < limit {
            if condition(.now) { return true }
            // A loop releases its objects when it looks.
            loops.settle()
        }
        return false
    }

    private func round(_ number: Int, _ loops: Loops, _ random: inout Random) -> [String] {
        let kind = Self.kinds[number % Self.kinds.count]
        let round: any Round
        do {
            round = try kind.init(loops, &random)
        } catch {
            return ["round \(number): \(kind) cannot begin: \(error)"]
        }
        let seeds = (0..<threads).map { _ in random.next() }
        let areOver = JoinedThreads.run(threads, within: 60) { thread in
            var own = Random(seed: seeds[thread])
            for step in 0..<Self.stepsOfAThread { round.step(&own, thread: thread, number: step) }
        }
        guard areOver else { return ["round \(number): \(kind) hangs"] }
        let failures = round.finish()
        loops.settle()
        return failures.map { "round \(number), \(kind): \($0)" }
    }
}

/// Performs random actions of callbacks, and records calls.
final class Happenings: Sendable {
    private struct State {
        var random: Random
        var seen: Set<String> = []
        var count = 0
        var failures: [String] = []
        /// The number of events that are waited for.
        var awaited: Int?
    }

    private let state: Mutex<State>
    private let haveCome = DispatchSemaphore(value: 0)

    init(_ random: inout Random) { state = Mutex(State(random: Random(seed: random.next()))) }

    func chance(_ count: Int) -> Int { state.withLock { $0.random.number(below: count) } }

    /// Records an event that may happen only once.
    func once(_ word: String) {
        state.withLock { state in
            state.count += 1
            if state.count == state.awaited { haveCome.signal() }
            if !state.seen.insert(word).inserted { state.failures.append("\(word) came twice") }
        }
    }

    func fail(_ sentence: String) { state.withLock { $0.failures.append(sentence) } }

    /// Waits until so many were noted, or for so many seconds.
    ///
    /// - Returns: How many there are.
    func count(awaiting count: Int, for seconds: Double) -> Int {
        let isThere = state.withLock { state in
            state.awaited = count
            return state.count >= count
        }
        if !isThere { _ = haveCome.wait(timeout: .now() + seconds) }
        return self.count
    }

    var failures: [String] { state.withLock { $0.failures } }
    private var count: Int { state.withLock { $0.count } }

    /// Sometimes runs the thread's loop inside a callback.
    func runNested() {
        if chance(8) == 0 { _ = RunLoop.current.run(in: .work, for: 0, returnAfterSourceHandled: true) }
    }
}

/// Makes a context whose `info` is `object`, which the context retains.
func retaining<Object: AnyObject & Sendable>(_ object: Object) -> CFCallBackContext {
    CFCallBackContext(
        // Unretained, because the context retains it.
        info: Unmanaged.passUnretained(object).toOpaque(),
        retain: { info in info.map { UnsafeRawPointer(Unmanaged<Object>.fromOpaque($0).retain().toOpaque()) }
        },
        // Balances `retain`.
        release: { info in if let info { Unmanaged<Object>.fromOpaque(info).release() } })
}

/// The object in the `info` of a context.
func object<Object: AnyObject>(_ info: UnsafeMutableRawPointer, _ kind: Object.Type) -> Object {
    Unmanaged<Object>.fromOpaque(info).takeUnretainedValue()
}
