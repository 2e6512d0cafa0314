import RondoCore
import RondoMutex
import RondoTestSupport
import Testing

extension RunLoop {
    /// Runs one pass that does not sleep: it serves all ready events, but only one descriptor.
    @discardableResult
    func poll(_ mode: Mode = .default) -> RunResult {
        run(in: mode, for: 0, returnAfterSourceHandled: false)
    }

    /// Runs until something stops it or the mode is empty; the limit is for failures only.
    @discardableResult
    func runOn(_ mode: Mode = .default) -> RunResult {
        run(in: mode, for: 60, returnAfterSourceHandled: false)
    }

    /// A signalled source that notes `name` when it is performed, signalled already and added to `mode`.
    @discardableResult
    func addSignalled(
        _ name: String, to log: EventLog, order: Int = 0, mode: Mode = .default,
        then action: @escaping @Sendable () -> Void = {}
    ) -> Source {
        let source = Source(order: order) {
            log.note(name)
            action()
        }
        source.signal()
        add(source, forMode: mode)
        return source
    }

    /// A timer that is due already and notes `name` when it fires, added to `mode`.
    @discardableResult
    func addDueTimer(
        _ name: String, to log: EventLog, mode: Mode = .default, ago: TimeInterval = 1,
        then action: @escaping @Sendable () -> Void = {}
    ) -> Timer {
        let timer = Timer(fire: Date(timeIntervalSinceNow: -ago), interval: 0, repeats: false) { _ in
            log.note(name)
            action()
        }
        add(timer, forMode: mode)
        return timer
    }
}

/// Starts a thread whose loop runs `work`, with a port in it, until it is stopped, and waits until it sleeps.
func loopThreadAsleep() throws -> (thread: LoopThread<RunLoop.RunResult>, loop: RunLoop) {
    let thread = LoopThread { loop in
        loop.add(Port(), forMode: .work)
        return loop.runOn(.work)
    }
    let loop = try thread.loop
    try loop.waitUntilAsleep()
    return (thread, loop)
}

extension RunLoop.Mode {
    static let work = RunLoop.Mode("work")
    static let other = RunLoop.Mode("other")
    static let inner = RunLoop.Mode("inner")
}

/// Keeps the thread busy until `instant`: a callback that takes long.
func spin(until instant: LoopInstant) {
    while LoopClock.now < instant {}
}

/// Until `date` has passed by more than the clocks can differ.
func spin(until date: Date) {
    while Date() < date + 0.001 {}
}

/// Dates, in the order in which they were noted.
final class DateLog: Sendable {
    private let noted = Mutex<[Date]>([])

    var dates: [Date] { noted.withLock { $0 } }

    func note(_ date: Date) {
        noted.withLock { $0.append(date) }
    }
}

/// A pipe whose ends do not block.
final class BytePipe: Sendable {
    let readEnd: Int32
    let writeEnd: Int32

    init() {
        var ends: [Int32] = [-1, -1]
        let status = pipe(&ends)
        precondition(status == 0, "no pipe")
        for end in ends { _ = fcntl(end, F_SETFL, O_NONBLOCK) }
        readEnd = ends[0]
        writeEnd = ends[1]
    }

    deinit {
        close(readEnd)
        close(writeEnd)
    }

    func write() {
        var byte: UInt8 = 1
        _ = Foundation.write(writeEnd, &byte, 1)
    }

    /// Reads all bytes.
    func drain() {
        var bytes = [UInt8](repeating: 0, count: 64)
        while Foundation.read(readEnd, &bytes, bytes.count) > 0 {}
    }

    /// A source that reads the bytes that have come and notes `name`.
    func source(
        _ name: String, to log: EventLog, then action: @escaping @Sendable () -> Void = {}
    ) -> RunLoop.Source {
        RunLoop.Source(fileDescriptor: readEnd, interest: .read) { [self] _, _ in
            log.note(name)
            drain()
            action()
        }
    }
}

/// Sources that know one another without retaining one another.
final class SourceList: Sendable {
    private struct Place {
        weak var source: RunLoop.Source?
    }

    private let list = Mutex<[Place]>([])

    var sources: [RunLoop.Source] { list.withLock { $0.compactMap(\.source) } }

    func append(_ source: RunLoop.Source) {
        list.withLock { $0.append(Place(source: source)) }
    }
}
