package import RondoCore

extension RunLoop {
    /// Runs `mode` until it is empty or stopped; the limit is for failures only.
    @discardableResult
    package func runOut(_ mode: Mode = .default) -> RunResult {
        run(in: mode, for: 60, returnAfterSourceHandled: false)
    }

    /// Waits until the loop, which runs `mode` on another thread, has served what is ready there now.
    ///
    /// A pass calls blocks before its sources and at its end. The first of three blocks may be called at an end, and the second
    /// before the sources of the next pass: these have been served when the third is called.
    package func waitUntilServed(_ mode: Mode = .default) throws {
        for _ in 0..<3 {
            let isCalled = Latch()
            perform(inModes: [mode]) { isCalled.open() }
            try isCalled.wait()
        }
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
