internal import Dispatch
internal import RondoCore
internal import Synchronization

/// Calls `write` some time after it was asked to, on a thread of its own, once for all that asked meanwhile, and
/// a last time before the process ends in an orderly way.
///
/// What is to be written waits with the owner, which bounds it. Where the machine has no thread left, it waits longer.
final class DeferredWriter: Sendable {
    /// Requests of this many seconds are served by one call.
    let delay: Double
    private let queue: DispatchQueue
    private let write: @Sendable () -> Void
    private let isAsked = Atomic(false)

    /// - Parameter write: Called by one thread at a time. It takes what has to be written from the owner, and must be quick
    ///   where there is nothing.
    init(_ label: String, delay: Double, _ write: @escaping @Sendable () -> Void) {
        self.delay = delay
        self.write = write
        queue = DispatchQueue(label: label, qos: .utility)
        AtExit.add(self)
    }

    /// Has `write` called within `delay` seconds. From any thread; costs an atomic load where it is about to be called
    /// anyway.
    ///
    /// - Parameter owner: It lives until then.
    func ask(keeping owner: AnyObject? = nil) {
        if isAsked.load(ordering: .acquiring) || isAsked.exchange(true, ordering: .acquiringAndReleasing) {
            return
        }
        // `AnyObject` is not Sendable; nothing is done to it but to release it.
        nonisolated(unsafe) let owner = owner
        queue.asyncAfter(deadline: .now() + delay) { [weak self] in
            withExtendedLifetime(owner) { self?.serve() }
        }
    }

    /// Has what waits written now, and returns when it is.
    func flush() {
        // A writer that does not write everything at once asks again.
        queue.sync {
            repeat { serve() } while isAsked.load(ordering: .sequentiallyConsistent)
        }
    }

    private func serve() {
        // Before: what comes while it is written asks again.
        isAsked.store(false, ordering: .sequentiallyConsistent)
        write()
    }

    /// Writes what waits when the program calls `exit` or returns from its main function.
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

        private static func flush() {
            for reference in writers.withLock({ $0 }) {
                guard let writer = reference.writer, writer.isAsked.load(ordering: .acquiring) else {
                    continue
                }
                writer.flush()
            }
        }
    }
}
