import Rondo
import RondoForeignPackage
import RondoMutex

final class Log: Sendable {
    private let noted = Mutex([String]())

    var entries: [String] { noted.withLock { $0 } }

    func note(_ entry: String) { noted.withLock { $0.append(entry) } }
    func count(of entry: String) -> Int { entries.count { $0 == entry } }
    func clear() { noted.withLock { $0 = [] } }
}

/// A value that blocks on several threads share.
final class Cell<Value: Sendable>: Sendable {
    private let value: Mutex<Value>

    init(_ value: Value) { self.value = Mutex(value) }

    func withLock<Result: Sendable>(_ body: @Sendable (inout Value) -> Result) -> Result {
        value.withLock { body(&$0) }
    }
}

func expect(_ condition: Bool, _ message: String, line: Int = #line) {
    if condition { return }
    print("line \(line): not so: \(message)")
    exit(1)
}

/// Runs Foundation's main loop until `isDone`, with a limit that only a failure reaches.
func runFoundation(until isDone: () -> Bool) {
    runForeignLoop(until: isDone)
    expect(isDone(), "it came while Foundation's loop ran")
}

/// Runs Rondo's loop of this thread until `isDone`, with a limit that only a failure reaches.
///
/// - Parameter slice: The longest time of one run: timers do not end it.
func runRondo(_ mode: RunLoop.Mode = .default, slice: TimeInterval = 0.02, until isDone: () -> Bool) {
    let limit = Date(timeIntervalSinceNow: 60)
    while !isDone(), limit.timeIntervalSinceNow > 0 {
        _ = RunLoop.current.run(mode: mode, before: Date(timeIntervalSinceNow: slice))
    }
    expect(isDone(), "it came while Rondo's loop ran")
}

/// A pipe whose reading end a source of Rondo's watches.
final class WatchedPipe: Sendable {
    let source: RunLoop.Source
    private let writeEnd: Int32

    init(_ read: @escaping @Sendable () -> Void) {
        var ends: [Int32] = [-1, -1]
        expect(pipe(&ends) == 0, "there is a pipe")
        let readEnd = ends[0]
        writeEnd = ends[1]
        source = RunLoop.Source(fileDescriptor: readEnd, interest: .read) { _, _ in
            var byte: UInt8 = 0
            _ = Foundation.read(readEnd, &byte, 1)
            read()
        }
    }

    /// Any thread.
    func write() {
        var byte: UInt8 = 1
        _ = Foundation.write(writeEnd, &byte, 1)
    }
}

/// A timer of Foundation's in a mode of Foundation's main loop.
@discardableResult
func foundationTimer(
    after seconds: TimeInterval, repeats: Bool = false, mode: RunLoop.Mode = .default,
    _ fire: @escaping @Sendable () -> Void
) -> Foundation.Timer {
    // With an interval alone, Foundation's timer fires at once.
    let timer = Foundation.Timer(
        fire: Date(timeIntervalSinceNow: seconds), interval: seconds, repeats: repeats
    ) { _ in fire() }
    Foundation.RunLoop.current.add(timer, forMode: mode)
    return timer
}

/// Seconds of processor time that the program has used.
var processorTime: Double {
    var usage = rusage()
    getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage)
    func seconds(_ time: timeval) -> Double { Double(time.tv_sec) + Double(time.tv_usec) / 1e6 }
    return seconds(usage.ru_utime) + seconds(usage.ru_stime)
}

func onAnotherThread(_ body: @escaping @Sendable () -> Void) { Thread.detachNewThread(body) }

/// Checks that ten thousand blocks of the main queue are called once each and in order, while `loop` has
/// events of its own.
///
/// - Parameter run: Runs a loop until its argument returns true.
func expectTenThousandBlocks(beside loop: RunLoop, _ run: (() -> Bool) -> Void) {
    let pipe = WatchedPipe {}
    loop.add(pipe.source, forMode: .default)
    let busy = Timer(timeInterval: 0.0005, repeats: true) { _ in pipe.write() }
    loop.add(busy, forMode: .default)
    let numbers = Cell([Int]())
    onAnotherThread {
        for number in 0..<10_000 {
            DispatchQueue.main.async { numbers.withLock { $0.append(number) } }
            // Occasional pauses let the queue become empty; no result depends on them.
            if number % 100 == 0 { usleep(500) }
        }
    }
    run { numbers.withLock { $0.count } >= 10_000 }
    expect(numbers.withLock { $0 == Array(0..<10_000) }, "each block came once, in order")
    busy.invalidate()
}
