internal import RondoCore

/// Drives a stream on its loop for tasks that run elsewhere.
///
/// A task calls `wake()`; a source of the driver then calls `serve` on the loop's thread, in the mode, and so
/// do the stream's events. The source also tells the driver when the loop's thread has ended, after which
/// nothing would come and a task would wait forever.
///
/// `@unchecked Sendable`: only `serve` touches the stream, on the loop's thread, after the stream was sent
/// here; the source is set once, in `init`; `serve` and `abandon` are Sendable.
final class StreamDriver<Driven: DrivenStream>: StreamDelegate, @unchecked Sendable {
    private let stream: Driven
    private let loop: RunLoop
    private let mode: RunLoop.Mode
    private let serve: @Sendable (Driven) -> Void
    private let abandon: @Sendable () -> Void
    private var source: RunLoop.Source?
    private var hasStarted = false

    /// - Parameters:
    ///   - serve: Called on the loop's thread to do what is possible.
    ///   - abandon: Called when the loop's thread has ended. Any thread.
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

    /// Requests a call of `serve`. Any thread.
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
    /// The error for a task whose loop's thread has ended.
    static var loopHasEnded: NSError {
        .posix(ESRCH, "the thread of the run loop that the stream is driven by has ended")
    }
}
