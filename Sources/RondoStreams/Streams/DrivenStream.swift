package import RondoCore

/// What `InputStream` and `OutputStream` have in common, and cannot inherit from one class, since each has
/// one of Foundation's above it.
protocol DrivenStream: StreamWithPeer {
    var core: StreamCore { get }
    /// Nil: Foundation's own file or memory, which never makes anybody wait.
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

    /// A connection that is being opened goes on with that, as far as it can at once, where nobody has
    /// scheduled it: a client that polls has no other way to see it opened without waiting.
    func goOnOpening() {
        if core.status == .opening { backend?.advance() }
    }

    /// The status as it is; whoever asks again may find another (rule ST-3: opening comes first).
    var statusAskedFor: Foundation.Stream.Status {
        let status = core.status
        goOnOpening()
        return status
    }

    func enter(_ loop: RunLoop, _ mode: RunLoop.Mode) {
        let hadQueue = core.queue != nil
        let place = ScheduledMode(loop: loop, mode: mode)
        guard core.schedule(in: place) else { return }
        backend?.schedule(in: place)
        if hadQueue { backend?.remove(from: .loader) }
    }

    func leave(_ loop: RunLoop, _ mode: RunLoop.Mode) {
        let place = ScheduledMode(loop: loop, mode: mode)
        if core.remove(from: place) { backend?.remove(from: place) }
    }

    /// What a socket needs is then done on the loader's thread, and the queue has the events.
    func enter(_ queue: DispatchQueue?) {
        let (places, hadQueue) = (core.modes, core.queue != nil)
        guard core.setQueue(queue) else { return }
        if queue != nil {
            do throws(SystemError) {
                _ = try RunLoop.startedLoader()
            } catch {
                // There is no thread that could do it.
                core.update { $0.failed(.posix(error.code, error.description)) }
            }
            backend?.schedule(in: .loader)
            for place in places { backend?.remove(from: place) }
        } else if hadQueue {
            backend?.remove(from: .loader)
        }
    }

    /// - Returns: Whether there was something to close: the caller closes Foundation's own, where it is that.
    func leaveAndClose() -> Bool {
        let places = core.modes + (core.queue == nil ? [] : [.loader])
        guard core.close() else { return false }
        for place in places { backend?.remove(from: place) }
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
