internal import RondoConnections
internal import RondoCore
internal import RondoMutex

/// Calls the completion handlers of a session's lists of tasks, `reset` and `flush`, and makes the session's
/// last call, in the order of the requests for them (rule US-80).
///
/// The handler of `flush` waits until the storages are on the disk. The handlers behind it wait as well.
final class OrderedHandlers: Sendable {
    /// A step of the session, done after those before it. The function that it carries was made by `prepare`,
    /// and schedules the call of the program's handler.
    private enum Step: Sendable {
        case call(@Sendable () -> Void)
        case flush(LoadSettings, @Sendable () -> Void)
    }

    private struct State {
        var waiting = FIFO<Step>()
        /// A thread takes the waiting steps, or a flush is under way.
        var isBusy = false
    }

    private let schedule: SessionSchedule
    /// Makes the calls if the session has a delegate queue.
    private let handlers: QueuedHandlers
    private let state = Mutex(State())

    init(_ schedule: SessionSchedule) {
        self.schedule = schedule
        handlers = QueuedHandlers(schedule)
    }

    /// Has `handler` called after the handlers before it.
    func call(_ handler: @escaping @Sendable () -> Void) { add(.call(prepare(handler))) }

    /// After the handlers before it, writes the changes of the process's storages and of the cookie storage
    /// of `settings` to the disk. Then has `handler` called.
    func flush(_ settings: LoadSettings, _ handler: @escaping @Sendable () -> Void) {
        add(.flush(settings, prepare(handler)))
    }

    /// Returns the function that has `handler` called.
    private func prepare(_ handler: @escaping @Sendable () -> Void) -> @Sendable () -> Void {
        guard schedule.queue != nil else { return schedule.prepare(handler) }
        return { [handlers] in handlers.call([handler]) }
    }

    private func add(_ step: Step) {
        let isFirst = state.withLock { state in
            state.waiting.append(step)
            defer { state.isBusy = true }
            return !state.isBusy
        }
        if isFirst { proceed() }
    }

    private func proceed() {
        while let step = takeNext() {
            switch step {
            case .call(let call): call()
            case .flush(let settings, let call):
                do throws(SystemError) {
                    return try LoadStorage.flush(cookiesOf: settings) { [self] in
                        call()
                        proceed()
                    }
                } catch {
                    // Without a thread the storages write in their own time.
                    call()
                }
            }
        }
    }

    private func takeNext() -> Step? {
        state.withLock { state in
            let step = state.waiting.popFirst()
            if step == nil { state.isBusy = false }
            return step
        }
    }
}
