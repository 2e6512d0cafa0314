// Children that are scheduled nowhere are collected by the shared background loop (rule CH-4).
//
// Their pidfds are in an epoll set, which is one descriptor source of that loop: adding or removing a child
// is one system call on the calling thread, and wakes no other thread. If the kernel refuses a pidfd in the
// set, or the set in the loop's own set, a timer of the loop checks the children until it accepts them.

internal import CRondoSystem
internal import RondoCore
internal import RondoMutex

/// Collects the children that no loop of the program watches.
final class Reaper: ChildCollecting {
    private static let shared = Mutex<Reaper?>(nil)
    /// The most children that one call of `epoll_wait` returns.
    private static let atOnce = 64
    private static let retryInterval: TimeInterval = 0.05

    private struct State {
        var children: [UInt64: ChildHandle] = [:]
        /// The numbers of children, by object, whose pidfds are in the set or will be.
        var numbers: [ObjectIdentifier: UInt64] = [:]
        var lastNumber: UInt64 = 0
        /// Children that the kernel did not accept in the set, or has reported, and that must still be
        /// collected.
        var refused: Set<UInt64> = []
        var source: RunLoop.Source?
        var retry: Timer?
    }

    private let set: Int32
    private let loop: RunLoop
    private let state = Mutex(State())

    private init(set: Int32, loop: RunLoop) {
        self.set = set
        self.loop = loop
    }

    /// The reaper of the process, made with the first child.
    ///
    /// - Throws: If there is no thread or descriptor for it, or the kernel is older than Linux 5.4.
    static func existing() throws(SystemError) -> Reaper {
        try shared.withLock { shared throws(SystemError) in
            if let shared { return shared }
            let missing = rondo_spawn_missing()
            guard missing == 0 else { throw SystemError("pidfd_open (Linux 5.4 or later)", code: missing) }
            let loop = try RunLoop.startedLoader()
            let set = try systemCall("epoll_create1") { rondo_set_make() }
            let reaper = Reaper(set: set, loop: loop)
            reaper.listen()
            shared = reaper
            return reaper
        }
    }

    /// Adds the set to the loop.
    private func listen() {
        let source = RunLoop.Source(fileDescriptor: set, keepsFile: true, interest: .read) {
            [unowned self] _, ready in
            // The reaper is never released.
            if ready.isEmpty { retryLater() } else { serve() }
        }
        source.label = "children"
        state.withLock { $0.source = source }
        loop.add(source, forMode: .default)
    }

    // MARK: - Any thread

    func watch(_ child: ChildHandle) {
        // The set is changed under the lock, so that it agrees with the state whatever another thread does.
        let refused = state.withLock { state -> UInt64? in
            guard state.numbers[ObjectIdentifier(child)] == nil else { return nil }
            state.lastNumber += 1
            state.children[state.lastNumber] = child
            state.numbers[ObjectIdentifier(child)] = state.lastNumber
            return addToSet(child, state.lastNumber) ? nil : state.lastNumber
        }
        if let refused { lookLater(after: refused) }
        // Another thread may have collected the child before it was added here.
        if child.status != nil { forget(child) }
    }

    func forget(_ child: ChildHandle) {
        let found = state.withLock { state -> ChildHandle? in
            guard let number = state.numbers.removeValue(forKey: ObjectIdentifier(child)) else { return nil }
            state.refused.remove(number)
            child.withDescriptor { rondo_set_remove(set, $0) }
            return state.children.removeValue(forKey: number)
        }
        withExtendedLifetime(found) {}
    }

    /// - Returns: False if the kernel does not accept the pidfd.
    private func addToSet(_ child: ChildHandle, _ number: UInt64) -> Bool {
        var isDone = true
        child.withDescriptor { isDone = rondo_set_add(set, $0, number) == 0 }
        return isDone
    }

    // MARK: - On the thread of the loop

    private func serve() {
        var numbers = [UInt64](repeating: 0, count: Self.atOnce)
        let count = Int(rondo_set_ready(set, &numbers, Int32(Self.atOnce)))
        for number in numbers.prefix(count) {
            // Collecting a child removes it from the set. A child that was removed may be reported once more.
            guard let child = state.withLock({ $0.children[number] }), child.collect() == nil else {
                continue
            }
            // The child has ended, but a debugger must collect it first. The set reports it only once.
            lookLater(after: number)
        }
    }

    /// Checks a child by a timer from now on.
    private func lookLater(after number: UInt64) {
        state.withLock { state in
            if state.children[number] != nil { state.refused.insert(number) }
        }
        retryLater()
    }

    /// Checks the refused children by a timer until the kernel accepts them.
    private func retryLater() {
        let timer = state.withLock { state -> Timer? in
            guard state.retry == nil else { return nil }
            // By the machine's clock, like the loader's: the calling thread's loop may have a test's clock.
            let date = LoopClock.systemDate(inSeconds: Self.retryInterval)
            state.retry = Timer(fire: date, interval: Self.retryInterval, repeats: true) { [unowned self] _ in
                retry()
            }
            return state.retry
        }
        if let timer { loop.add(timer, forMode: .default) }
    }

    private func retry() {
        let (refused, source) = state.withLock { state in
            (state.refused.compactMap { number in state.children[number].map { (number, $0) } }, state.source)
        }
        for (number, child) in refused where child.collect() == nil {
            state.withLock { state in
                guard state.children[number] != nil, addToSet(child, number) else { return }
                state.refused.remove(number)
            }
        }
        if source?.isValid != true {
            listen()
            serve()
        }
        let done = state.withLock { state -> Timer? in
            guard state.refused.isEmpty, state.source?.isValid == true else { return nil }
            return state.retry.take()
        }
        done?.invalidate()
    }
}
