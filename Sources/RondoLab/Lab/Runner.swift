import Rondo
internal import RondoMutex
package import RondoTrace

/// Runs experiments, one at a time: the recorder is the process's instrument.
package enum Runner {
    /// Seconds between two looks for what is held back: closer than for a program that is left recording.
    private static let lookInterval = 0.002
    /// Seconds for a whole experiment, each of whose waits has `Stage.patience`; only a call that never returns
    /// takes so long.
    private static let patience = 4 * Stage.patience

    /// Runs `experiment` and judges it.
    ///
    /// One that waits in vain, because the behaviour is another than it counts on, gives up, and the recording
    /// says so: that is a verdict as well.
    ///
    /// One that needs the main thread is run on the calling thread, which has to be that; any other on a thread of
    /// its own, whose loop is new.
    /// - Parameter watching: Called ten times a second on another thread, with what was recorded so far, and at
    ///   last with all of it.
    /// - Throws: `StageFailure`, if it could not even begin.
    package static func run(
        _ experiment: Experiment, watching: (@Sendable (Recording, _ isWhole: Bool) -> Void)? = nil
    ) throws -> Outcome {
        let recorder = Recorder(lookInterval: lookInterval)
        let stage = try Stage(recorder: recorder)
        defer { stage.end() }
        recorder.start()
        let watch = watching.map { watching in
            Watch { watching(recorder.soFar(), false) }
        }
        if experiment.needsMainThread {
            carryOut(experiment, on: stage)
        } else {
            let ended = DispatchSemaphore(value: 0)
            let thread = Thread {
                nameThisThread("lab")
                carryOut(experiment, on: stage)
                ended.signal()
            }
            thread.name = "lab"
            thread.start()
            if ended.wait(timeout: .now() + patience) == .timedOut {
                stage.note(Experiment.gaveUp + "a call did not return within \(Int(patience)) s")
            }
        }
        let recording = recorder.finish()
        watch?.stop()
        watching?(recording, true)
        return Outcome(
            experiment: experiment, recording: recording, verdict: experiment.verdict(on: recording))
    }

    private static func carryOut(_ experiment: Experiment, on stage: Stage) {
        do {
            try experiment.body(stage)
            try stage.joinThreads()
        } catch {
            stage.note(Experiment.gaveUp + "\(error)")
        }
    }
}

/// Looks at an experiment while it runs.
private final class Watch: Sendable {
    private static let interval = 0.1
    private let mayGoOn = Mutex(true)
    private let ended = DispatchSemaphore(value: 0)

    init(_ body: @escaping @Sendable () -> Void) {
        Thread.detachNewThread { [self] in
            while mayGoOn.withLock({ $0 }) {
                body()
                Thread.sleep(forTimeInterval: Self.interval)
            }
            ended.signal()
        }
    }

    func stop() {
        mayGoOn.withLock { $0 = false }
        ended.wait()
    }
}
