internal import RondoCore
internal import RondoMutex

internal import struct Synchronization.Atomic

/// Calls `write` some time after it was asked to, on a thread of its own, once for all that asked meanwhile, and
/// a last time before the process ends in an orderly way.
///
/// Bytes to be written wait with the owner, which bounds it. Where the machine has no thread left, it waits for the next
/// request; Dispatch would stop the run loop that asks until there is one.
final class DeferredWriter: Sendable {
    private let name: String
    private let delay: @Sendable () -> Double
    private let write: @Sendable () -> Void
    private let state = Atomic(idle)
    /// A thread is there that looks at `state` before it ends.
    private let hasThread = Atomic(false)
    /// Held while it is written.
    private let turn = Mutex(())

    private static let idle: UInt8 = 0
    /// There is something to write, and a thread for it.
    private static let begun: UInt8 = 1
    /// There is something to write, and there was no thread for it.
    private static let stuck: UInt8 = 2

    /// - Parameters:
    ///   - name: That of the thread.
    ///   - delay: Requests of so many seconds are served by one call. Asked for before each.
    ///   - write: Called by one thread at a time. It takes what has to be written from the owner, and must be quick where there
    ///     is nothing. It may ask again, and must not flush.
    init(
        _ name: String, delay: @escaping @Sendable () -> Double, _ write: @escaping @Sendable () -> Void
    ) {
        self.name = name
        self.delay = delay
        self.write = write
        AtExit.add(self)
    }

    /// Has `write` called within `delay` seconds. From any thread; costs an atomic load where it is about to be called
    /// anyway.
    ///
    /// - Parameter owner: It lives until then.
    func ask(keeping owner: (any AnyObject & Sendable)? = nil) {
        if state.load(ordering: .sequentiallyConsistent) == Self.begun { return }
        if state.exchange(Self.begun, ordering: .sequentiallyConsistent) == Self.begun { return }
        if hasThread.exchange(true, ordering: .sequentiallyConsistent) { return }
        do throws(SystemError) {
            try SystemThread.start(name: name) { [self] in
                withExtendedLifetime(owner) { work() }
            }
        } catch {
            hasThread.store(false, ordering: .sequentiallyConsistent)
            state.store(Self.stuck, ordering: .sequentiallyConsistent)
        }
    }

    /// On the thread: until nothing is asked for any more.
    private func work() {
        while true {
            wait()
            turn.withLock { _ in
                // Unless it was flushed meanwhile.
                if state.load(ordering: .sequentiallyConsistent) != Self.idle { serve() }
            }
            if state.load(ordering: .sequentiallyConsistent) != Self.idle { continue }
            hasThread.store(false, ordering: .sequentiallyConsistent)
            // What was asked between the two belongs to this thread, or to another one that is there by now.
            if state.load(ordering: .sequentiallyConsistent) == Self.idle { return }
            if hasThread.exchange(true, ordering: .sequentiallyConsistent) { return }
        }
    }

    /// Has what waits written now, and returns when it is.
    func flush() {
        turn.withLock { _ in
            // A writer that does not write everything at once asks again.
            repeat { serve() } while state.load(ordering: .sequentiallyConsistent) != Self.idle
        }
    }

    /// Has all writers of the process write what waits, and returns when that is done.
    static func flushAll() { AtExit.flush() }

    private func wait() {
        let delay = delay()
        var time = timespec(tv_sec: Int(delay), tv_nsec: Int(delay.truncatingRemainder(dividingBy: 1) * 1e9))
        // A signal may end it early, which does no harm.
        nanosleep(&time, nil)
    }

    private func serve() {
        // Before: what comes while it is written asks again.
        state.store(Self.idle, ordering: .sequentiallyConsistent)
        write()
    }

    /// All writers of the process. They write what waits when the program calls `exit` or returns from its main function.
    private enum AtExit {
        private struct Reference {
            weak var writer: DeferredWriter?
        }

        private static let writers = Mutex<[Reference]>([])
        private static let registration: Void = { atexit { AtExit.flush() } }()

        static func add(_ writer: DeferredWriter) {
            _ = registration
            writers.withLock { writers in
                writers.removeAll { $0.writer == nil }
                writers.append(Reference(writer: writer))
            }
        }

        /// A writer with nothing to write may still be at work, and is waited for.
        static func flush() {
            for reference in writers.withLock({ $0 }) { reference.writer?.flush() }
        }
    }
}
