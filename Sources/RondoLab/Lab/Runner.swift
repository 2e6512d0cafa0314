import Rondo
package import RondoTrace
internal import Synchronization

/// Runs experiments, one at a time: the recorder is the process's instrument.
package enum Runner {
    /// Seconds between two looks for what is held back: closer than for a program that is left recording.
    private static let lookInterval = 0.002

    /// Runs `experiment` and judges it.
    ///
    /// One that needs the main thread is run on the calling thread, which has to be that; any other on a thread of
    /// its own, whose loop is new.
    /// - Parameter watching: Called ten times a second on another thread, with what was recorded so far.
    /// - Throws: `StageFailure`, if it could not be carried out.
    package static func run(
        _ experiment: Experiment, watching: (@Sendable (Recording) -> Void)? = nil
    ) throws -> Outcome {
        let recorder = Recorder(lookInterval: lookInterval)
        let stage = try Stage(recorder: recorder)
        defer { stage.end() }
        recorder.start()
        let watch = watching.map { watching in
            Watch { watching(recorder.soFar()) }
        }
        let failure: (any Error)?
        if experiment.needsMainThread {
            failure = carryOut(experiment, on: stage)
        } else {
            let result = Shared<(any Error)?>(nil)
            let ended = DispatchSemaphore(value: 0)
            let thread = Thread {
                nameThisThread("lab")
                result.value = carryOut(experiment, on: stage)
                ended.signal()
            }
            thread.name = "lab"
            thread.start()
            ended.wait()
            failure = result.value
        }
        let recording = recorder.finish()
        watch?.stop()
        // The last picture shows all of it.
        watching?(recording)
        if let failure { throw failure }
        return Outcome(
            experiment: experiment, recording: recording, verdict: experiment.verdict(on: recording))
    }

    private static func carryOut(_ experiment: Experiment, on stage: Stage) -> (any Error)? {
        do {
            try experiment.body(stage)
            try stage.joinThreads()
            return nil
        } catch {
            return error
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
