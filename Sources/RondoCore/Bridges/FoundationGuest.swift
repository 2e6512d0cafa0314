internal import CRondoEv

/// Bridge A: a mode of the main loop is a guest of Foundation's main loop, in trio's sense of guest mode. A
/// Dispatch source on the main queue, which Foundation's loop drains, watches an `Embedding` and turns it.
///
/// `@unchecked Sendable`: only the main thread touches this object, because the main queue's blocks run
/// there.
final class FoundationGuest: FoundationBridge, @unchecked Sendable {
    /// The most turns in one block of the main queue, so that Foundation's loop is served in between.
    private static let turnsTogether = 16

    private unowned let loop: RunLoop
    let mode: RunLoop.Mode
    private var embedding: RunLoop.Embedding?
    private var source: (any DispatchSourceRead)?
    /// True while this loop runs by itself: Foundation's loop does not turn the embedding until that run has
    /// ended.
    private var isSuspended = false
    private var hasEnded = false

    init(_ loop: RunLoop, _ mode: RunLoop.Mode) {
        self.loop = loop
        self.mode = mode
    }

    var summary: String { "guest of Foundation's run loop in \(mode.shortName)" }

    func start() {
        guard !hasEnded, embedding == nil else { return }
        do {
            // libdispatch ends the program if it gets no descriptor for itself, so make sure that one is
            // free.
            close(try systemCall("eventfd") { rondo_eventfd() })
            guard MainQueue.descriptor != nil else { throw SystemError("eventfd", code: EMFILE) }
            let embedding = try RunLoop.Embedding(loop, mode, mirrorsMainQueue: false)
            let source = DispatchSource.makeReadSource(fileDescriptor: embedding.fileDescriptor, queue: .main)
            source.setEventHandler { [weak self] in self?.turn() }
            // The descriptor must stay open until the cancelled source no longer uses it.
            // `nonisolated(unsafe)`: the handler only releases it, on the main queue, where it belongs.
            nonisolated(unsafe) let kept = embedding
            source.setCancelHandler { withExtendedLifetime(kept) {} }
            source.activate()
            (self.embedding, self.source) = (embedding, source)
        } catch {
            Log.core.error(
                "Foundation's run loop cannot serve Rondo's main loop yet (\(error)). It is tried again, ten times a second."
            )
            startLater()
        }
    }

    /// Tries again by a timer of the loader's loop, which also runs without descriptors; Dispatch's timers
    /// need one.
    private func startLater() {
        // By the machine's clock, like the loader's: the main loop may have a test's clock.
        let date = LoopClock.systemDate(inSeconds: 0.1)
        let timer = Timer(fire: date, interval: 0.1, repeats: true) { [weak self] timer in
            guard self != nil else { return timer.invalidate() }
            guard MainQueue.descriptor != nil else { return }
            timer.invalidate()
            DispatchQueue.main.async { self?.start() }
        }
        do {
            try RunLoop.startedLoader().add(timer, forMode: .default)
        } catch {
            Log.core.error(
                "No thread is left to wait for a descriptor: Rondo's main loop is not served (\(error)).")
        }
    }

    /// Called in a block of the main queue.
    private func turn() {
        guard !hasEnded, let embedding else { return }
        // The loop runs by itself, or is about to.
        guard loop.state.withLock({ $0.activations.isEmpty }), !loop.threadState.isDrainingMainQueue else {
            isSuspended = true
            source?.suspend()
            return
        }
        loop.threadState.isDrainingMainQueue = true
        defer { loop.threadState.isDrainingMainQueue = false }
        for _ in 0..<Self.turnsTogether {
            embedding.turn()
            guard !hasEnded, rondo_epoll_has_events(embedding.fileDescriptor) > 0 else { return }
        }
    }

    func activationEnded() {
        guard isSuspended, loop.state.withLock({ $0.activations.isEmpty }) else { return }
        isSuspended = false
        source?.resume()
    }

    func end() {
        hasEnded = true
        embedding?.invalidate()
        embedding = nil
        source?.cancel()
        // A suspended source never calls its cancel handler.
        if isSuspended { source?.resume() }
        source = nil
    }
}
