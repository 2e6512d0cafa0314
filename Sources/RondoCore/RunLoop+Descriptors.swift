internal import CEv

extension RunLoop.Source.Interest {
    /// libev's `EV_READ | EV_WRITE`.
    var events: Int32 {
        (contains(.read) ? Int32(EV_READ) : 0) | (contains(.write) ? Int32(EV_WRITE) : 0)
    }

    init(events: Int32) {
        self = []
        if events & Int32(EV_READ) != 0 { insert(.read) }
        if events & Int32(EV_WRITE) != 0 { insert(.write) }
    }
}

// Loop's thread only.
extension RunLoop {
    /// Makes the mode's watchers match its members: first what left, so that a number that was closed and given
    /// out again is free, then what came or changed.
    func updateWatchers(stop: [Source], watch: [Source], in modeLoop: ModeLoop) {
        for source in stop { modeLoop.unwatch(source) }
        for source in watch {
            guard case .descriptor(let descriptor) = source.kind else { continue }
            // libev, as Debian builds it, aborts the process when it is handed a closed descriptor.
            guard fcntl(descriptor, F_GETFD) != -1 else {
                source.invalidate(because: SystemError("fcntl", code: errno))
                modeLoop.unwatch(source)
                continue
            }
            modeLoop.watch(source, descriptor: descriptor, events: source.interest.events)
            if owner.serving.contains(source) && isNested { modeLoop.pause(source) }
        }
    }

    private var isNested: Bool { state.withLock { $0.activations.count > 1 } }

    /// Calls a descriptor source that was found ready.
    ///
    /// - Returns: Whether it was called: not if it is invalid by now, or on the stack already (rule SRC-26).
    func serve(_ source: Source, events: Int32) -> Bool {
        guard !owner.serving.contains(source) else { return false }
        if events & rondo_ev_error != 0 {
            source.invalidate(because: SystemError("epoll_ctl", code: EBADF))
            return false
        }
        owner.serving.append(source)
        let served = source.perform(ready: Source.Interest(events: events))
        owner.serving.removeLast()
        // A nested run has left it out of the modes that it ran.
        for modeLoop in owner.modeLoops { modeLoop?.resume(source) }
        return served
    }

    /// Sets the timerfd, if what it is set to is not what is wanted, or has passed (and would end every sleep).
    func armTimer(at instant: LoopInstant, now: LoopInstant) {
        guard instant != owner.armed || owner.armed <= now else { return }
        owner.wakeUp?.arm(instant)
        owner.armed = instant
    }
}
