internal import RondoCore
internal import RondoMutex

internal import struct Synchronization.Atomic

/// Calls `write` on a thread of its own some time after it was requested, once for all requests in that time,
/// and a last time before the process ends in an orderly way.
///
/// The bytes to be written stay with the owner, which limits them. If the machine has no thread left, the
/// writer waits for the next request; Dispatch would block the requesting run loop until there is one.
final class BackgroundWriter: Sendable {
    private let name: String
    private let delay: @Sendable () -> Double
    private let write: @Sendable () -> Void
    private let state = Atomic(idle)
    /// Whether a thread exists that will look at `state` before it ends.
    private let hasThread = Atomic(false)
    /// Held while `write` is called.
    private let turn = Mutex(())
    /// The thread that writes; 0 while none does.
    private let writingThread = Atomic<UInt>(0)

    private static let idle: UInt8 = 0
    /// The state in which a thread will make the requested write.
    private static let begun: UInt8 = 1
    /// The state in which a write is needed that no thread will make: none could be started for it, or the
    /// last one failed.
    private static let stuck: UInt8 = 2

    /// - Parameters:
    ///   - name: The name of the thread.
    ///   - delay: Returns the seconds for which requests are gathered. Called before each write.
    ///   - write: Called by one thread at a time. It takes all that has to be written from the owner, and
    ///     must be quick if there is nothing. It may request another write, and must not flush.
    init(
        _ name: String, delay: @escaping @Sendable () -> Double, _ write: @escaping @Sendable () -> Void
    ) {
        self.name = name
        self.delay = delay
        self.write = write
        AtExit.add(self)
    }

    /// Requests a call of `write` within `delay` seconds. Any thread may call it; it costs one atomic load if
    /// a call has already been requested.
    ///
    /// - Parameter object: Retained by the writer's thread until that ends.
    func ask(keeping object: (any AnyObject & Sendable)? = nil) {
        if state.load(ordering: .sequentiallyConsistent) == Self.begun { return }
        if state.exchange(Self.begun, ordering: .sequentiallyConsistent) == Self.begun { return }
        if hasThread.exchange(true, ordering: .sequentiallyConsistent) { return }
        do throws(SystemError) {
            try SystemThread.start(name: name) { [self] in
                withExtendedLifetime(object) { work() }
            }
        } catch {
            hasThread.store(false, ordering: .sequentiallyConsistent)
            state.store(Self.stuck, ordering: .sequentiallyConsistent)
        }
    }

    /// Runs on the writer's thread, until there are no more requests.
    private func work() {
        while true {
            wait()
            turn.withLock { _ in
                // A flush may have written everything meanwhile.
                if state.load(ordering: .sequentiallyConsistent) != Self.idle { serve() }
            }
            if state.load(ordering: .sequentiallyConsistent) == Self.begun { continue }
            hasThread.store(false, ordering: .sequentiallyConsistent)
            // A request that came since the last check is served by this thread, or by another that was
            // started meanwhile.
            if state.load(ordering: .sequentiallyConsistent) != Self.begun { return }
            if hasThread.exchange(true, ordering: .sequentiallyConsistent) { return }
        }
    }

    /// Writes what waits now, and returns when that is done. What is requested meanwhile is left to the
    /// thread: other threads may request writes all the time.
    func flush() {
        turn.withLock { _ in serve() }
    }

    /// Notes that a write has failed, and left what it took with the owner. The next request repeats it, and
    /// so does the end of the program.
    func noteFailure() {
        // A request that has come since leads to another write anyway.
        _ = state.compareExchange(
            expected: Self.idle, desired: Self.stuck, ordering: .sequentiallyConsistent)
    }

    /// Has all writers of the process write what waits, and returns when that is done.
    static func flushAll() { for writer in AtExit.all { writer.flush() } }

    /// The milliseconds for which the end of the program waits for a running write.
    private static let patience = 2_000

    /// At the end of the program: waits until nothing is being written.
    ///
    /// - Returns: False if the calling thread is the writing thread, because the owner's code has ended the
    ///   program, or if the write takes too long: the writing thread may wait for this one, or may not exist
    ///   in a forked child.
    private func waitUntilWritten() -> Bool {
        for _ in 0..<Self.patience {
            let thread = writingThread.load(ordering: .acquiring)
            if thread == 0 { return true }
            if thread == UInt(pthread_self()) { return false }
            _ = poll(nil, 0, 1)
        }
        return false
    }

    private func wait() {
        let delay = delay()
        var time = timespec(tv_sec: Int(delay), tv_nsec: Int(delay.truncatingRemainder(dividingBy: 1) * 1e9))
        // A signal may interrupt the sleep, which does no harm.
        nanosleep(&time, nil)
    }

    private func serve() {
        // Before the write: requests that come during it lead to another one.
        state.store(Self.idle, ordering: .sequentiallyConsistent)
        writingThread.store(UInt(pthread_self()), ordering: .releasing)
        write()
        writingThread.store(0, ordering: .releasing)
    }

    /// All writers of the process. They write what waits, or could not be written before, when the program
    /// calls `exit` or returns from its main function.
    private enum AtExit {
        private struct Reference {
            weak var writer: BackgroundWriter?
        }

        private static let writers = Mutex<[Reference]>([])
        private static let registration: Void = { atexit { AtExit.flush() } }()

        static func add(_ writer: BackgroundWriter) {
            _ = registration
            writers.withLock { writers in
                writers.removeAll { $0.writer == nil }
                writers.append(Reference(writer: writer))
            }
        }

        static func flush() {
            for writer in all where writer.waitUntilWritten() {
                if writer.state.load(ordering: .sequentiallyConsistent) != idle { writer.flush() }
            }
        }

        static var all: [BackgroundWriter] { writers.withLock { $0 }.compactMap(\.writer) }
    }
}
