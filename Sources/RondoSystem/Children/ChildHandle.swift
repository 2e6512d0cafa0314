// A child as the kernel knows it. The first thread that finds it ended collects it: the thread of a loop on
// which the child is scheduled, the reaper's thread, or a thread that waits for the child. That thread also
// calls the observers.

internal import CRondoSystem
internal import Glibc
internal import RondoCore
internal import RondoMutex

/// Collects the children that no loop of the program watches.
protocol ChildCollecting: AnyObject, Sendable {
    /// Collects the child when it ends. Further calls do nothing. Any thread.
    func watch(_ child: ChildHandle)

    /// Stops watching the child, because a loop watches it or a thread has collected it. Any thread.
    func forget(_ child: ChildHandle)
}

/// The process number, pidfd and status of a child.
final class ChildHandle: Sendable {
    private struct State {
        /// Negative once the pidfd is closed.
        var pidfd: Int32
        /// The number of calls that use the pidfd without the lock.
        var users = 0
        var status: ChildStatus?
        var observers: [@Sendable (ChildStatus) -> Void] = []
        /// The observers know of the end: the pidfd is not watched any more.
        var isSettled = false
    }

    let processIdentifier: Int32
    /// The name in messages.
    let name: String
    /// True if the child leads a process group of its own.
    let leadsGroup: Bool
    let reaper: any ChildCollecting
    let spawned = LoopClock.systemNow
    private let state: Mutex<State>
    private let live = LiveObject(.child)

    init(
        _ processIdentifier: Int32, pidfd: Int32, name: String, leadsGroup: Bool, reaper: any ChildCollecting
    ) {
        self.processIdentifier = processIdentifier
        self.name = name
        self.leadsGroup = leadsGroup
        self.reaper = reaper
        state = Mutex(State(pidfd: pidfd))
    }

    deinit {
        let pidfd = state.withLock { $0.pidfd }
        if pidfd >= 0 { _ = Glibc.close(pidfd) }
    }

    // MARK: - The end

    /// The status of the child; nil if it was not collected yet.
    var status: ChildStatus? { state.withLock { $0.status } }

    /// Calls `observer` once after the end of the child: on the thread that finds it, or at once if it was
    /// found before.
    func whenEnded(_ observer: @escaping @Sendable (ChildStatus) -> Void) {
        let status = state.withLock { state in
            if state.status == nil { state.observers.append(observer) }
            return state.status
        }
        if let status { observer(status) }
    }

    /// Collects the child if it has ended (rules CH-3 and CH-6).
    ///
    /// - Returns: The child's status; nil if the child runs.
    @discardableResult
    func collect() -> ChildStatus? {
        let (status, observers) = state.withLock {
            state -> (ChildStatus?, [@Sendable (ChildStatus) -> Void]?) in
            guard state.status == nil else { return (state.status, nil) }
            var (kind, code): (Int32, Int32) = (0, 0)
            let found = rondo_collect_child(state.pidfd, &kind, &code)
            guard found != 0 else { return (nil, nil) }
            let status = found > 0 ? ChildStatus(kind: kind, code: code) : .unknown
            state.status = status
            defer { state.observers = [] }
            return (status, state.observers)
        }
        // Another thread may have collected the child at the same time.
        guard let status, let observers else { return status }
        if status == .unknown {
            Log.system.warning(
                """
                How the child \(name) (process \(processIdentifier)) has ended is not known: another part of the \
                program has collected it, or ignores SIGCHLD.
                """)
        }
        reaper.forget(self)
        for observer in observers { observer(status) }
        state.withLock { $0.isSettled = true }
        closeUnlessUsed()
        return status
    }

    /// Waits for the end of the child; callbacks of the thread's loop wait too (rule CH-23).
    func wait() -> ChildStatus {
        while true {
            if let status = collect() { return status }
            withDescriptor { rondo_wait_for_end($0) }
        }
    }

    // MARK: - Stops

    /// Calls `tell` when the child stops or continues, until it ends or `tell` returns false: on a thread of
    /// its own, because the kernel reports stops only to a waiting thread.
    func watchStops(_ tell: @escaping @Sendable (ChildStop) -> Bool) {
        do throws(SystemError) {
            try SystemThread.start(name: "rondo.stops") { [self] in
                while let stop = waitForStop(), tell(stop) {}
            }
        } catch {
            Log.system.error(
                "The stops of the child \(name) are not reported, because no thread could be started: \(error)."
            )
        }
    }

    /// Waits until the child stops or continues; nil if it has ended.
    private func waitForStop() -> ChildStop? {
        var stop: ChildStop?
        withDescriptor { pidfd in
            var (kind, code): (Int32, Int32) = (0, 0)
            guard rondo_wait_for_stop(pidfd, &kind, &code) == 0 else { return }
            switch kind {
            case Int32(CLD_STOPPED), Int32(CLD_TRAPPED): stop = .stopped(code)
            case Int32(CLD_CONTINUED): stop = .continued
            default: break
            }
        }
        return stop
    }

    // MARK: - The pidfd

    /// Calls `body` with the pidfd, which stays open meanwhile; does nothing once the child was collected.
    func withDescriptor(_ body: (Int32) -> Void) {
        let pidfd = state.withLock { state -> Int32 in
            if state.pidfd >= 0 { state.users += 1 }
            return state.pidfd
        }
        guard pidfd >= 0 else { return }
        body(pidfd)
        state.withLock { $0.users -= 1 }
        closeUnlessUsed()
    }

    private func closeUnlessUsed() {
        let pidfd = state.withLock { state -> Int32 in
            guard state.isSettled, state.users == 0 else { return -1 }
            defer { state.pidfd = -1 }
            return state.pidfd
        }
        if pidfd >= 0 { _ = Glibc.close(pidfd) }
    }

    // MARK: - Signals

    /// Sends a signal to the child, or to the process group that it leads, unless the child has ended
    /// (rules CH-7 and CH-18).
    ///
    /// - Throws: ESRCH if the child has ended.
    func send(_ number: Int32, toGroup: Bool = false) throws(ChildError) {
        // While the lock is held, no thread collects the child, so its number, and that of its group, remain
        // valid.
        let code = state.withLock { state -> Int32 in
            guard state.status == nil else { return ESRCH }
            // The kernel would accept signals for a child that has ended and was not collected.
            var ended = pollfd(fd: state.pidfd, events: Int16(POLLIN), revents: 0)
            guard poll(&ended, 1, 0) <= 0 else { return ESRCH }
            let result =
                toGroup && leadsGroup
                ? kill(-processIdentifier, number) : rondo_send_signal(state.pidfd, number)
            return result < 0 ? errno : 0
        }
        guard code != 0 else { return }
        throw ChildError(
            .signal, systemCode: code,
            "signal \(number) was not sent to the child \(name) (process \(processIdentifier))")
    }
}
