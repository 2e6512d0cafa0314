internal import RondoMutex

/// A loop as the unserved watch knows it.
protocol WatchedLoop: AnyObject, Sendable {
    /// Warns of what the loop holds, if it has not been run since. Called on the watch's thread.
    ///
    /// - Parameters:
    ///   - runs: How often it had been run when the watch began.
    ///   - delay: How long ago that was, in seconds.
    func warnIfUnserved(sinceRun runs: UInt64, delay: TimeInterval)

    /// The watch of the loop ends without a look, since the system has no thread for it.
    func watchWasAbandoned()
}

/// The loops that hold something and do not run, and the thread that looks at each of them after a while. The
/// thread exists as long as a loop is watched.
///
/// It is a thread of its own and not one of Dispatch's: Dispatch ends the program where no descriptor is left
/// for its timers, and a machine without descriptors is where a loop that does not run has to be reported.
///
/// The list retains its loops, until the look or until `forget(_:)`. With weak references each loop would
/// have a side table, and every retain and release of it would be slower for the rest of its life.
enum UnservedWatch {
    private struct Look {
        let loop: any WatchedLoop
        let runs: UInt64
        let delay: TimeInterval
        let due: LoopInstant
    }

    private struct State {
        var looks: [Look] = []
        var hasThread = false
    }

    private static let state = Mutex(State())
    /// Signalled when `state` has changed, so that the thread looks at it again.
    private static let change = DispatchSemaphore(value: 0)

    /// Has `loop` asked to warn after `delay` seconds.
    ///
    /// - Returns: False where the system has no thread for it.
    static func watch(_ loop: any WatchedLoop, sinceRun runs: UInt64, delay: TimeInterval) -> Bool {
        let look = Look(
            loop: loop, runs: runs, delay: delay, due: LoopClock.machineNow.advanced(bySeconds: delay))
        let isFirst = state.withLock { state in
            state.looks.append(look)
            defer { state.hasThread = true }
            return !state.hasThread
        }
        guard isFirst else {
            change.signal()
            return true
        }
        do throws(SystemError) {
            try SystemThread.start(name: "rondo.unserved") { lookAtAll() }
            return true
        } catch {
            // Other loops may have been added to the list since.
            let abandoned = state.withLock { state in
                defer { state = State() }
                return state.looks
            }
            for look in abandoned where look.loop !== loop { look.loop.watchWasAbandoned() }
            return false
        }
    }

    private static func lookAtAll() {
        while true {
            let now = LoopClock.machineNow
            let (due, seconds) = state.withLock { state -> ([Look], Double?) in
                let due = state.looks.filter { $0.due <= now }
                state.looks.removeAll { $0.due <= now }
                let next = state.looks.map(\.due).min()
                if due.isEmpty, next == nil { state.hasThread = false }
                return (due, next.map { $0.seconds(since: now) })
            }
            for look in due { look.loop.warnIfUnserved(sinceRun: look.runs, delay: look.delay) }
            if !due.isEmpty { continue }
            guard let seconds else { return }
            _ = change.wait(timeout: .now() + seconds)
        }
    }

    /// Ends the watch of `loop`, whose thread has ended.
    static func forget(_ loop: any WatchedLoop) {
        let forgotten = state.withLock { state in
            let forgotten = state.looks.filter { $0.loop === loop }
            state.looks.removeAll { $0.loop === loop }
            return forgotten
        }
        guard !forgotten.isEmpty else { return }
        change.signal()
    }
}
