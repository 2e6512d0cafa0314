internal import RondoMutex

/// The part of a loop that `UnservedWatch` uses.
protocol WatchedLoop: AnyObject, Sendable {
    /// Warns about the loop's members, if the loop has not been run since the watch began. Called on the
    /// watch's thread.
    ///
    /// - Parameters:
    ///   - runs: The number of runs when the watch began.
    ///   - delay: Seconds since the watch began.
    func warnIfUnserved(sinceRun runs: UInt64, delay: TimeInterval)

    /// Called if the watch ends without a check, since the system has no thread for it.
    func watchWasAbandoned()
}

/// The loops that have members and do not run, and the thread that checks each of them after a while. The
/// thread exists as long as a loop is watched.
///
/// The thread is not one of Dispatch's: Dispatch ends the program if no descriptor is left for its timers,
/// and on a machine without descriptors a loop that does not run has to be reported too.
///
/// The list retains its loops until the check or until `forget(_:)`. With weak references each loop would
/// have a side table, and every retain and release of it would be slower for the rest of its life.
enum UnservedWatch {
    /// A check of a loop that is due at an instant.
    private struct Check {
        let loop: any WatchedLoop
        let runs: UInt64
        let delay: TimeInterval
        let due: LoopInstant
    }

    private struct State {
        var checks: [Check] = []
        var hasThread = false
    }

    private static let state = Mutex(State())
    /// Signalled when `state` has changed, so that the thread looks at it again.
    private static let change = DispatchSemaphore(value: 0)

    /// Makes the watch's thread call `loop.warnIfUnserved` after `delay` seconds.
    ///
    /// - Returns: False if the system has no thread for the watch.
    static func watch(_ loop: any WatchedLoop, sinceRun runs: UInt64, delay: TimeInterval) -> Bool {
        let check = Check(
            loop: loop, runs: runs, delay: delay, due: LoopClock.systemNow.advanced(bySeconds: delay))
        let isFirst = state.withLock { state in
            state.checks.append(check)
            defer { state.hasThread = true }
            return !state.hasThread
        }
        guard isFirst else {
            change.signal()
            return true
        }
        do throws(SystemError) {
            try SystemThread.start(name: "rondo.unserved") { makeChecks() }
            return true
        } catch {
            // Other loops may have been added to the list meanwhile.
            let abandoned = state.withLock { state in
                defer { state = State() }
                return state.checks
            }
            for check in abandoned where check.loop !== loop { check.loop.watchWasAbandoned() }
            return false
        }
    }

    private static func makeChecks() {
        while true {
            let now = LoopClock.systemNow
            let (due, seconds) = state.withLock { state -> ([Check], Double?) in
                let due = state.checks.filter { $0.due <= now }
                state.checks.removeAll { $0.due <= now }
                let next = state.checks.map(\.due).min()
                if due.isEmpty, next == nil { state.hasThread = false }
                return (due, next.map { $0.seconds(since: now) })
            }
            for check in due { check.loop.warnIfUnserved(sinceRun: check.runs, delay: check.delay) }
            if !due.isEmpty { continue }
            guard let seconds else { return }
            _ = change.wait(timeout: .now() + seconds)
        }
    }

    /// Ends the watch of `loop`, whose thread has ended.
    static func forget(_ loop: any WatchedLoop) {
        let forgotten = state.withLock { state in
            let forgotten = state.checks.filter { $0.loop === loop }
            state.checks.removeAll { $0.loop === loop }
            return forgotten
        }
        guard !forgotten.isEmpty else { return }
        change.signal()
    }
}
