package import RondoCore

extension RunLoop {
    /// Runs `mode` until it is empty or stopped; the limit is for failures only.
    @discardableResult
    package func runOut(_ mode: Mode = .default) -> RunResult {
        run(in: mode, for: 60, returnAfterSourceHandled: false)
    }

    /// Waits until the loop, which runs `mode` on another thread, has performed the sources that are signalled now, and served a
    /// ready descriptor.
    ///
    /// A pass calls blocks before its signalled sources, after them if there were any, and at its end. So of four blocks, each of
    /// which is handed in when the one before was called, the last comes after all steps of a pass that began after this call.
    package func waitUntilServed(_ mode: Mode = .default) throws {
        for _ in 0..<4 { try waitForBlock(mode) }
    }

    /// Waits until the loop, which runs `mode` on another thread, has called a block that it is given now.
    package func waitForBlock(_ mode: Mode = .default) throws {
        let isCalled = Latch()
        perform(inModes: [mode]) { isCalled.open() }
        try isCalled.wait()
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
