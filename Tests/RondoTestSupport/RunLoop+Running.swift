package import RondoCore

extension RunLoop {
    /// Runs `mode` until it is empty or stopped; the limit is for failures only.
    @discardableResult
    package func runOut(_ mode: Mode = .default) -> RunResult {
        run(in: mode, for: 60, returnAfterSourceHandled: false)
    }

    /// Runs `mode`, in which nothing may happen, for a moment. No test depends on its being long enough: one
    /// that is too short lets a broken behaviour pass, and a right one never fails by it.
    package func runInVain(_ mode: Mode = .default, for seconds: TimeInterval = 0.2) {
        let keepAlive = Port()
        add(keepAlive, forMode: mode)
        _ = run(in: mode, for: seconds, returnAfterSourceHandled: false)
        keepAlive.invalidate()
    }
}
