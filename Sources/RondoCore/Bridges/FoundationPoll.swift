/// Serves the due timers, blocks and sources of the calling thread's Foundation run loop, in the mode of the
/// same name, without waiting.
struct FoundationPoll {
    /// One poll runs blocks, one signalled source, and then one of: due timers, the main queue, one ready
    /// source. Three polls reach all kinds (rule BR-13).
    private static let pollsTogether = 3

    private let loop: RunLoop
    private let mode: RunLoop.Mode
    private let use: MainQueueUse?

    /// - Parameter use: Detects whether the main queue was drained; nil except on the main thread.
    init(_ loop: RunLoop, _ mode: RunLoop.Mode, use: MainQueueUse?) {
        (self.loop, self.mode, self.use) = (loop, mode, use)
    }

    /// - Returns: The date of Foundation's next timer in the mode; nil if it has none.
    @discardableResult
    func run() -> LoopInstant? {
        let threadState = loop.threadState
        use?.begin()
        threadState.forgetNow()
        threadState.isInFoundation = true
        defer {
            threadState.isInFoundation = false
            threadState.forgetNow()
        }
        var next: Date?
        for _ in 0..<Self.pollsTogether { next = Foundation.RunLoop.current.limitDate(forMode: mode) }
        if let use, use.isSeen { threadState.wasServedAsleep = true }
        guard let next, next < .distantFuture else { return nil }
        return LoopClock.systemNow.advanced(bySeconds: max(0, next.timeIntervalSinceNow))
    }
}
