// `performSelector:onThread:withObject:waitUntilDone:` and its kin, for closures.

extension Thread {
    /// Runs `body` on this thread's loop, which is woken if it sleeps, while the loop runs in one of `modes`
    /// (rule PL-11).
    ///
    /// If the thread has not asked for its loop yet, the closure waits until the thread has done so and runs
    /// the loop; at the end of the thread it is dropped (rules PL-15 and PL-20). It cannot be cancelled. (The
    /// end of a thread that Foundation did not make, and that never had a loop, is not noticed.)
    /// - Parameter modes: `.common` stands for every common mode. With an empty array nothing happens.
    public func perform(inModes modes: [RunLoop.Mode] = [.common], _ body: sending @escaping () -> Void) {
        guard !modes.isEmpty else { return }
        _ = ThreadLoops.perform(PerformedBlock(run: body), on: self, inModes: modes)
    }

    /// Runs `body` on this thread's loop, and waits for it if `wait` is true (rules PL-11 to PL-16).
    ///
    /// While it waits, the calling thread is blocked, and its own loop runs in no mode. On the thread itself,
    /// `body` runs at once if `wait` is true; if false, it is queued like any other.
    /// - Throws: The error of `body`, if `wait` is true, or `RunLoop.PerformError.threadEnded`.
    @available(*, noasync, message: "It blocks the thread. Use await loop.run(inModes:).")
    public func perform(
        inModes modes: [RunLoop.Mode] = [.common], waitUntilDone wait: Bool,
        _ body: sending @escaping () throws -> Void
    ) throws {
        guard !modes.isEmpty else { return }
        guard wait else {
            let block = PerformedBlock {
                do {
                    try body()
                } catch {
                    Log.core.warning("A closure performed without waiting has thrown an error: \(error)")
                }
            }
            _ = ThreadLoops.perform(block, on: self, inModes: modes)
            return
        }
        if self == Thread.current { return try body() }
        let call = PerformedCall<Void>()
        switch ThreadLoops.perform(call.block(body), on: self, inModes: modes) {
        case .performed(let loop): try call.wait(for: loop, inModes: modes)
        case .waitsForLoop: try call.wait(for: self, inModes: modes)
        case .threadEnded: throw RunLoop.PerformError.threadEnded
        }
    }

    /// Why closures performed on this thread in the common modes have not been called.
    public var whyNotDelivering: DeliveryObstacle {
        if let loop = ThreadLoops.loop(of: self) { return loop.obstacle(inMode: .common) }
        if ThreadLoops.hasEnded(self) {
            return DeliveryObstacle(reason: .threadEnded, description: "the thread has ended")
        }
        return DeliveryObstacle(
            reason: .noLoopYet,
            description:
                "thread \(name ?? "(without a name)") has no loop yet: it has to ask for RunLoop.current and run it"
        )
    }
}

extension RunLoop {
    /// Runs `body` on this loop's thread, while the loop runs in one of `modes`, and returns its result
    /// (rules PL-12 to PL-16).
    ///
    /// The calling thread is blocked meanwhile, and its own loop runs in no mode. On the loop's own thread
    /// `body` runs at once.
    /// - Throws: The error of `body`, or a `PerformError`.
    @available(*, noasync, message: "It blocks the thread. Use await run(inModes:).")
    public func performAndWait<Value: Sendable>(
        inModes modes: [Mode] = [.common], _ body: sending @escaping () throws -> Value
    ) throws -> Value {
        guard !modes.isEmpty else { throw PerformError.noModes }
        if isCurrent { return try body() }
        let call = PerformedCall<Value>()
        perform(call.block(body), inModes: modes)
        return try call.wait(for: self, inModes: modes)
    }

    /// Runs `body` on this loop's thread, while the loop runs in one of `modes`, and returns its result to
    /// the task, which is suspended meanwhile and blocks no thread (rule PL-21).
    ///
    /// - Throws: The error of `body`, or a `PerformError`.
    public func run<Value: Sendable>(
        inModes modes: [Mode] = [.common], _ body: sending @escaping () throws -> Value
    ) async throws -> Value {
        guard !modes.isEmpty else { throw PerformError.noModes }
        let call = PerformedCall<Value>()
        perform(call.block(body), inModes: modes)
        return try await withCheckedThrowingContinuation { continuation in
            call.whenDone { continuation.resume(with: $0) }
        }
    }
}

extension PerformedCall {
    /// Milliseconds between two checks whether a thread without a loop has finished: its end makes no call.
    private static var lookAtThread: Int { 20 }

    /// Blocks the calling thread until the closure has returned.
    fileprivate func wait(for loop: RunLoop, inModes modes: [RunLoop.Mode]) throws -> Value {
        let isDone = DispatchSemaphore(value: 0)
        let waiting = WaitingCalls.begin(
            waitingFor: ObjectIdentifier(loop), named: { loop.nameOfItsThreadAndNumber },
            from: RunLoop.existingLoop.map { ObjectIdentifier($0) },
            threadHasEnded: { self.end(.failure(RunLoop.PerformError.threadEnded)) })
        defer { WaitingCalls.end(waiting) }
        // The thread may have ended before this wait was recorded.
        if !loop.isAlive { end(.failure(RunLoop.PerformError.threadEnded)) }
        whenDone { _ in isDone.signal() }
        if let delay = RunLoop.unservedWarningDelay, isDone.wait(timeout: .now() + delay) == .timedOut {
            WaitingCallWarning.log(waiting, on: loop, inModes: modes, after: delay)
        }
        while true {
            if let outcome { return try outcome.get() }
            isDone.wait()
        }
    }

    /// Does the same for a thread that has no loop yet.
    fileprivate func wait(for thread: Thread, inModes modes: [RunLoop.Mode]) throws -> Value {
        let isDone = DispatchSemaphore(value: 0)
        whenDone { _ in isDone.signal() }
        while isDone.wait(timeout: .now() + .milliseconds(Self.lookAtThread)) == .timedOut {
            ThreadLoops.releaseIfFinished(thread)
            if let loop = ThreadLoops.loop(of: thread) { return try wait(for: loop, inModes: modes) }
        }
        guard let outcome else { throw RunLoop.PerformError.threadEnded }
        return try outcome.get()
    }
}
