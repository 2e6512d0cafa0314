internal import CRondoEv

/// Bridge A: a mode of the main loop is a guest of Foundation's main loop, which drains the main queue, where a Dispatch source
/// watches an `Embedding` and turns it.
///
/// `@unchecked Sendable`: only the main thread touches it, where the main queue's blocks run.
final class FoundationGuest: FoundationBridge, @unchecked Sendable {
    /// How many turns one block of the main queue makes at most, so that Foundation's loop is served between.
    private static let turnsTogether = 16

    private unowned let loop: RunLoop
    let mode: RunLoop.Mode
    private var embedding: RunLoop.Embedding?
    private var source: (any DispatchSourceRead)?
    /// This loop runs by itself: until it has ended, Foundation's does not turn it.
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
            // libdispatch ends the program where it finds no descriptor for itself.
            close(try systemCall("eventfd") { rondo_eventfd() })
            guard MainQueue.descriptor != nil else { throw SystemError("eventfd", code: EMFILE) }
            let embedding = try RunLoop.Embedding(loop, mode, mirrorsMainQueue: false)
            let source = DispatchSource.makeReadSource(fileDescriptor: embedding.fileDescriptor, queue: .main)
            source.setEventHandler { [weak self] in self?.turn() }
            // The descriptor is closed after the source has let go of it.
            nonisolated(unsafe) let kept = embedding  // Released on the main queue, where it belongs.
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

    /// By a timer of the loader's loop, which runs without descriptors too; Dispatch's timers need one.
    private func startLater() {
        let timer = Timer(timeInterval: 0.1, repeats: true) { [weak self] timer in
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

    /// In a block of the main queue.
    private func turn() {
        guard !hasEnded, let embedding else { return }
        // It runs by itself, or is about to.
        guard loop.state.withLock({ $0.activations.isEmpty }), !loop.owner.isDrainingMainQueue else {
            isSuspended = true
            source?.suspend()
            return
        }
        loop.owner.isDrainingMainQueue = true
        defer { loop.owner.isDrainingMainQueue = false }
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
        // A suspended source would not let go.
        if isSuspended { source?.resume() }
        source = nil
    }
}
