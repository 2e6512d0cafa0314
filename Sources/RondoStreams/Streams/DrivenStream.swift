package import RondoCore

/// The common part of `InputStream` and `OutputStream`, which cannot inherit it from one class, since each has one of
/// Foundation's above it.
protocol DrivenStream: StreamWithPeer {
    var core: StreamCore { get }
    /// Nil: the stream is Foundation's own file or memory, on which no call waits.
    var backend: (any StreamBackend)? { get }
    var direction: StreamState.Direction { get }
}

/// A delegate that lives as long as it is a stream's, although that holds it weakly.
package protocol LastingDelegate: StreamDelegate {
    /// The stream has another one, or is gone.
    func end()
}

extension DrivenStream {
    var peerName: String? { backend?.peerName }

    /// Goes on with opening, as far as that is possible at once, if the stream is scheduled nowhere: a client that polls has
    /// no other way to see it opened without waiting.
    func goOnOpening() {
        if core.status == .opening { backend?.advance() }
    }

    /// The status as it is now. Asking lets opening go on, so the next question may find another one (rule ST-3: `opening`
    /// is seen first).
    var statusAskedFor: Foundation.Stream.Status {
        let status = core.status
        goOnOpening()
        return status
    }

    func enter(_ loop: RunLoop, _ mode: RunLoop.Mode) {
        let hadQueue = core.queue != nil
        let scheduled = ScheduledMode(loop: loop, mode: mode)
        guard core.schedule(in: scheduled) else { return }
        backend?.schedule(in: scheduled)
        if hadQueue { backend?.remove(from: .loader) }
    }

    func leave(_ loop: RunLoop, _ mode: RunLoop.Mode) {
        let scheduled = ScheduledMode(loop: loop, mode: mode)
        if core.remove(from: scheduled) { backend?.remove(from: scheduled) }
    }

    /// Delivers the events on a queue; the loader's thread then serves the socket.
    func enter(_ queue: DispatchQueue?) {
        let (modes, hadQueue) = (core.modes, core.queue != nil)
        guard core.setQueue(queue) else { return }
        if queue != nil {
            do throws(SystemError) {
                _ = try RunLoop.startedLoader()
            } catch {
                // The system gives no thread that could serve the socket.
                core.update { $0.failed(.posix(error.code, error.description)) }
            }
            backend?.schedule(in: .loader)
            for mode in modes { backend?.remove(from: mode) }
        } else if hadQueue {
            backend?.remove(from: .loader)
        }
    }

    /// - Returns: Whether there was something to close: the caller closes Foundation's own, where it is that.
    func leaveAndClose() -> Bool {
        let modes = core.modes + (core.queue == nil ? [] : [.loader])
        guard core.close() else { return false }
        for mode in modes { backend?.remove(from: mode) }
        backend?.close(direction)
        return true
    }

    /// The stream is gone.
    func letGo() {
        core.invalidate()
        backend?.close(direction)
    }

    /// Takes over what has become of Foundation's stream.
    func follow(_ status: Foundation.Stream.Status, _ error: @autoclosure () -> (any Error)?) {
        // Foundation's own traps on Linux when it is asked for an error that is not there.
        let error = status == .error ? error() as NSError? ?? .unexplained : nil
        core.update { state in
            switch status {
            case .atEnd: state.ended()
            case .error: state.failed(error ?? .unexplained)
            default: state.used(isReady: true)
            }
        }
    }
}
