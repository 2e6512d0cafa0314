import Rondo
internal import RondoMutex
package import RondoTrace

/// Runs experiments one at a time, because the process has one recorder.
package enum Runner {
    /// Seconds between two checks for held-back objects: shorter than for a program that records for long.
    private static let lookInterval = 0.002
    /// Seconds for a whole experiment. Each of its waits has `Stage.patience`, so only a call that never
    /// returns takes this long.
    private static let patience = 4 * Stage.patience

    /// Runs `experiment` and checks its recording.
    ///
    /// An experiment that waits in vain gives up, and the recording says so: that is a verdict too.
    ///
    /// An experiment that needs the main thread runs on the calling thread, which must be the main thread.
    /// Any other runs on a new thread with a new loop.
    /// - Parameter watching: Called ten times a second on another thread, with the recording so far, and at
    ///   the end with the whole recording.
    /// - Throws: `StageFailure`, if the experiment could not begin.
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

/// Passes the recording of an experiment to `watching` while it runs.
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
