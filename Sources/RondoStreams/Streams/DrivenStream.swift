package import RondoCore

/// The common part of `InputStream` and `OutputStream`. It is a protocol because each of them already
/// inherits from one of Foundation's classes.
protocol DrivenStream: StreamWithPeer {
    var core: StreamCore { get }
    /// Nil for Foundation's own files and memory, on which no call waits.
    var backend: (any StreamBackend)? { get }
    var direction: StreamState.Direction { get }
}

/// A delegate that keeps itself alive while it is a stream's delegate, although the stream's reference is
/// weak.
package protocol RetainedDelegate: StreamDelegate {
    /// Called when the stream has another delegate, or is released.
    func end()
}

extension Foundation.Stream {
    /// Notes that `event` of this stream was delivered and ignored: there is no delegate, or a client that
    /// has not asked for it. Called in the delivery.
    package func noteIgnored(_ event: Event) {
        (self as? any DrivenStream)?.core.update { $0.ignored(event) }
    }
}

extension DrivenStream {
    var peerName: String? { backend?.peerName }

    /// Called when `old` is no longer the delegate.
    func delegateChanged(from old: (any StreamDelegate)?) {
        core.update { $0.delegateChanged() }
        (old as? any RetainedDelegate)?.end()
    }

    /// Continues the opening as far as possible without waiting, if the stream is scheduled nowhere: a client
    /// that polls has no other way to let the opening proceed.
    func continueOpening() {
        if core.status == .opening { backend?.advance() }
    }

    /// The status at the time of the call. Reading it also continues the opening, so the next read may return
    /// a later status (rule ST-3: `opening` is seen first).
    var statusAskedFor: Foundation.Stream.Status {
        let status = core.status
        continueOpening()
        return status
    }

    func enter(_ loop: RunLoop, _ mode: RunLoop.Mode) {
        let hadQueue = core.queue != nil
        let scheduled = LoopMode(loop: loop, mode: mode)
        guard core.schedule(in: scheduled) else { return }
        backend?.schedule(in: scheduled)
        if hadQueue { backend?.remove(from: .loader) }
    }

    func leave(_ loop: RunLoop, _ mode: RunLoop.Mode) {
        let scheduled = LoopMode(loop: loop, mode: mode)
        if core.remove(from: scheduled) { backend?.remove(from: scheduled) }
    }

    /// Delivers the events on a dispatch queue; the loader's thread then serves the socket.
    func enter(_ queue: DispatchQueue?) {
        let (modes, hadQueue) = (core.modes, core.queue != nil)
        guard core.setQueue(queue) else { return }
        if queue != nil {
            do throws(SystemError) {
                _ = try RunLoop.startedLoader()
            } catch {
                // The system cannot start the thread that would serve the socket.
                core.update { $0.failed(.posix(error.code, error.description)) }
            }
            backend?.schedule(in: .loader)
            for mode in modes { backend?.remove(from: mode) }
        } else if hadQueue {
            backend?.remove(from: .loader)
        }
    }

    /// - Returns: Whether there was something to close; the caller then closes Foundation's own stream, if
    ///   that is the one in use.
    func leaveAndClose() -> Bool {
        let modes = core.servingModes
        guard core.close() else { return false }
        for mode in modes { backend?.remove(from: mode) }
        backend?.close(direction)
        return true
    }

    /// Releases the stream's registrations and closes its side; called in the stream's deinit.
    func releaseRegistrations() {
        core.invalidate()
        backend?.close(direction)
    }

    /// Copies the state of Foundation's stream into the core.
    func follow(_ status: Foundation.Stream.Status, _ error: @autoclosure () -> (any Error)?) {
        // On Linux, Foundation's own stream traps when it is asked for an error that it does not have.
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
