internal import RondoCore

/// Drives a stream on its loop for tasks that run elsewhere.
///
/// A task asks by `wake()`; a source of the driver's own then has `serve` called on the loop's thread, in the
/// mode, as the stream's events have as well. The source is also how the driver learns that the loop's thread
/// has ended, since nothing would come any more and a task would wait for ever.
///
/// `@unchecked Sendable`: the stream is only touched in `serve`, on the loop's thread, after it was handed
/// over whole; the source is set once, in `init`; `serve` and `abandon` are
/// Sendable.
final class StreamDriver<Driven: DrivenStream>: StreamDelegate, @unchecked Sendable {
    private let stream: Driven
    private let loop: RunLoop
    private let mode: RunLoop.Mode
    private let serve: @Sendable (Driven) -> Void
    private let abandon: @Sendable () -> Void
    private var source: RunLoop.Source?
    private var hasStarted = false

    /// - Parameters:
    ///   - serve: On the loop's thread: looks at what can be done.
    ///   - abandon: The thread of the loop has ended. Any thread.
    init(
        _ stream: Driven, _ loop: RunLoop, _ mode: RunLoop.Mode, serve: @escaping @Sendable (Driven) -> Void,
        abandon: @escaping @Sendable () -> Void
    ) {
        self.stream = stream
        self.loop = loop
        self.mode = mode
        self.serve = serve
        self.abandon = abandon
        let source = RunLoop.Source(
            cancel: { [weak self] _, _ in self?.abandon() }, perform: { [weak self] in self?.serveStream() })
        source.label = "asynchronous stream"
        self.source = source
        loop.add(source, forMode: mode)
    }

    deinit { source?.invalidate() }

    /// Asks for a call of `serve`. Any thread.
    func wake() {
        guard let source, source.isScheduled else { return abandon() }
        source.signalAndWakeUp()
    }

    private func serveStream() {
        if !hasStarted {
            hasStarted = true
            stream.delegate = self
            stream.enter(loop, mode)
            if stream.streamStatus == .notOpen { stream.open() }
        }
        serve(stream)
    }

    func stream(_ aStream: Foundation.Stream, handle eventCode: Foundation.Stream.Event) { serve(stream) }
}

extension NSError {
    /// The loop that a task waits for is gone.
    static var loopHasEnded: NSError {
        .posix(ESRCH, "the thread of the run loop that the stream is driven by has ended")
    }
}
