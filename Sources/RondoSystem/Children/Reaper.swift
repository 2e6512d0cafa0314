// Children that are scheduled nowhere are collected by the shared background loop (rule CH-4).
//
// Their pidfds are in an epoll set, which is one descriptor source of that loop: to add or to remove a child is one system
// call on the thread that does so, and wakes no other. Where the kernel takes no pidfd into the set, or not the set into the
// loop's, a timer of the loop looks after the children until it does.

internal import CRondoSystem
internal import RondoCore
internal import RondoMutex

/// Collects the children that no loop of the program's has.
final class Reaper: ChildCollecting {
    private static let shared = Mutex<Reaper?>(nil)
    /// How many children one look finds.
    private static let atOnce = 64
    private static let retryInterval: TimeInterval = 0.05

    private struct State {
        var children: [UInt64: ChildHandle] = [:]
        /// The children, by their objects, whose pidfds are in the set or wait to be.
        var numbers: [ObjectIdentifier: UInt64] = [:]
        var lastNumber: UInt64 = 0
        /// The kernel did not take them into the set, or has reported them, and they are still to be collected.
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

    /// The one reaper, made with the first child.
    ///
    /// - Throws: There is no thread for it, no descriptor, or the kernel is older than Linux 5.4.
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

    /// Has the loop watch the set.
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
        let number = state.withLock { state -> UInt64? in
            guard state.numbers[ObjectIdentifier(child)] == nil else { return nil }
            state.lastNumber += 1
            state.children[state.lastNumber] = child
            state.numbers[ObjectIdentifier(child)] = state.lastNumber
            return state.lastNumber
        }
        guard let number else { return }
        if !addToSet(child, number) { lookLater(after: number) }
        // It was collected meanwhile by another thread, which has not found it here.
        if child.status != nil { forget(child) }
    }

    func forget(_ child: ChildHandle) {
        let found = state.withLock { state -> ChildHandle? in
            guard let number = state.numbers.removeValue(forKey: ObjectIdentifier(child)) else { return nil }
            state.refused.remove(number)
            return state.children.removeValue(forKey: number)
        }
        found?.withDescriptor { rondo_set_remove(set, $0) }
    }

    /// - Returns: False: the kernel does not take it.
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
            // Collecting it takes it out of the set. One that has left may be reported once more.
            guard let child = state.withLock({ $0.children[number] }), child.collect() == nil else {
                continue
            }
            // It has ended, and a debugger that holds it is to collect it first; the set reports it only once.
            lookLater(after: number)
        }
    }

    /// Looks after a child by a timer from now on.
    private func lookLater(after number: UInt64) {
        state.withLock { state in
            if state.children[number] != nil { state.refused.insert(number) }
        }
        retryLater()
    }

    /// Looks after the refused children by a timer, until the kernel takes them.
    private func retryLater() {
        let timer = state.withLock { state -> Timer? in
            guard state.retry == nil else { return nil }
            state.retry = Timer(timeInterval: Self.retryInterval, repeats: true) { [unowned self] _ in
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
            guard addToSet(child, number) else { continue }
            state.withLock { _ = $0.refused.remove(number) }
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
