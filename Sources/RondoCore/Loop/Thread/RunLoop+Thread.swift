internal import CRondoEv

extension RunLoop {
    func adoptThread() {
        // `Unmanaged` to pass through C: retained for the thread, and released by `ThreadEnd`, which the
        // thread library calls.
        pthread_setspecific(LoopThreadState.key, Unmanaged.passRetained(self).toOpaque())
        let thread = Thread.current
        let name = thread.name
        let number = rondo_thread_number()
        state.withLock { state in
            if let name, !name.isEmpty { state.threadName = name }
            state.threadNumber = number
        }
        threadState.threadKey = ThreadLoops.note(self, of: thread)
    }

    /// Whether the loop's thread is still alive.
    package var isAlive: Bool { state.withLock { $0.isAlive } }

    /// The name of the loop's thread, "main" for the main one; nil if it has none. Any thread.
    package var threadName: String? { isMain ? "main" : state.withLock { $0.threadName } }

    /// The name of the loop's thread, for messages.
    var nameOfItsThreadAndNumber: String {
        if isMain { return "the main thread" }
        return state.withLock { state in
            state.threadName.map { "thread \($0) (\(state.threadNumber))" } ?? "thread \(state.threadNumber)"
        }
    }

    /// Traps when the calling thread is not the loop's own.
    func requireOwnThread(_ function: String = #function) {
        guard !isCurrent else { return }
        // Not a precondition: in release builds its message would be lost.
        fatalError(
            "RunLoop.\(function) acts on the loop of the calling thread, which is \(SystemThread.nameOfCurrent), but was "
                + "called on the loop of \(nameOfItsThreadAndNumber). Call it on that thread, or "
                + "use perform(_:) to run code there.")
    }

    // MARK: - The clock

    /// See `LoopThreadState.now`.
    var now: LoopInstant { threadState.now }

    /// The current instant by the loop's own clock, or by the machine's if the loop has none. Any thread:
    /// `LoopClock.now` is by the clock of the thread that asks.
    var nowByItsClock: LoopInstant {
        let source = state.withLock { $0.timeSource }
        return source?.now ?? LoopClock.systemNow
    }

    /// Gives the loop a clock of its own; nil restores the machine's. Loop's thread only. In a callback, the
    /// run continues by the new clock.
    package func setTimeSource(_ source: (any LoopTimeSource)?) {
        requireOwnThread()
        threadState.setTimeSource(source)
        let replaced = state.withLock { state in
            defer { state.timeSource = source }
            return state.timeSource
        }
        withExtendedLifetime(replaced) {}
    }

    /// Whether this loop, running in `mode`, drains the main queue now.
    func drainsMainQueue(in mode: ModeState) -> Bool {
        isMain && mode.isCommon && !threadState.isDrainingMainQueue
    }
}

extension RunLoop {
    /// Logs a warning for a layer above that has no log of its own.
    package static func warn(_ message: String) { Log.core.warning("\(message)") }
}
