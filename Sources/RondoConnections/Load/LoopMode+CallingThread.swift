internal import RondoCore

extension [LoopMode] {
    /// Whether the calling thread is in a pass of one of these modes.
    var servesCallingThread: Bool {
        // With one mode comparing loops is enough: only that loop's thread can have registered the channel there, and it is
        // still inside this callback.
        if count == 1 { return self[0].loop.isCurrent }
        return contains { scheduled in
            guard scheduled.loop.isCurrent, let mode = scheduled.loop.currentMode else { return false }
            return scheduled.mode == mode
                || scheduled.mode == .common && scheduled.loop.modes(named: .common).contains(mode)
        }
    }
}
