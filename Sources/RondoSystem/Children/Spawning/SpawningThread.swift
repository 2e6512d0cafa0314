internal import RondoCore
internal import RondoMutex

/// A thread that lives as long as the process. It spawns children that must die with their parent: the kernel
/// kills them when the *thread* that spawned them ends (rule CH-19).
final class SpawningThread: Sendable {
    private static let shared = Mutex<SpawningThread?>(nil)

    private let jobs = Mutex<[@Sendable () -> Void]>([])
    private let isThere = DispatchSemaphore(value: 0)

    /// The result of a job, on its way to the thread that waits for it.
    private final class Answer<Value: Sendable>: Sendable {
        let value = Mutex<Value?>(nil)
        let isThere = DispatchSemaphore(value: 0)
    }

    private init() {}

    /// Runs `body` on the thread, which is made on first use, and waits for its result.
    static func run<Value: Sendable>(_ body: @escaping @Sendable () -> Value) throws(SystemError) -> Value {
        let thread = try shared.withLock { shared throws(SystemError) in
            if let shared { return shared }
            let made = SpawningThread()
            try SystemThread.start(name: "rondo.spawner") { made.serve() }
            shared = made
            return made
        }
        let answer = Answer<Value>()
        thread.jobs.withLock { jobs in
            jobs.append {
                let value = body()
                answer.value.withLock { $0 = value }
                answer.isThere.signal()
            }
        }
        thread.isThere.signal()
        while true {
            answer.isThere.wait()
            if let value = answer.value.withLock({ $0 }) { return value }
        }
    }

    private func serve() {
        while true {
            isThere.wait()
            jobs.withLock { $0.removeFirst() }()
        }
    }
}
