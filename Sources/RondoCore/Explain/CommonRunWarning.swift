internal import Logging

extension RunLoop {
    /// Warns, once for each loop, that a run function got the common name, which is not a mode and cannot be
    /// run (rule RL-18). Loop's thread only.
    func warnOfRunInCommonModes() {
        guard threadState.noteRunInCommonModes() else { return }
        Log.core.warning(
            """
            The run loop of thread \(threadName ?? "(without a name)") was to be run in the common modes, and returned at \
            once: that name stands for several modes, and is none. Run it \(Mode.common.adviceToRun).
            """)
    }
}
