import Rondo
internal import RondoTrace

/// The cost of a recorder for a run loop, measured on this machine.
package struct RecorderCost: Sendable {
    /// Nanoseconds of processor time for a pass that serves one source, without a listener and with a
    /// recorder.
    package let passWithout: Double
    package let passWith: Double
    /// The number of events that a recorder gets in such a pass: the signal, the call-out, and the pass.
    package let eventsPerPass: Double

    package var nanosecondsPerEvent: Double { (passWith - passWithout) / eventsPerPass }

    /// Takes the best of several rounds of each, by turns: other work of the machine makes a round longer,
    /// never shorter.
    ///
    /// Runs the calling thread's loop, in a mode of its own.
    package static func measure(passes: Int = 100_000, rounds: Int = 5) -> RecorderCost {
        var without = Double.infinity
        var with = Double.infinity
        var events = 3.0
        for _ in 0..<rounds {
            without = min(without, nanosecondsPerPass(passes))
            let recorder = Recorder(capacity: passes * 4)
            recorder.start()
            with = min(with, nanosecondsPerPass(passes))
            events = Double(recorder.finish().records.count) / Double(passes)
        }
        return RecorderCost(passWithout: without, passWith: with, eventsPerPass: events)
    }

    private static func nanosecondsPerPass(_ passes: Int) -> Double {
        let loop = RunLoop.current
        let mode = RunLoop.Mode("cost")
        let left = Shared(passes)
        let again = Shared<RunLoop.Source?>(nil)
        let source = RunLoop.Source {
            left.update { $0 -= 1 }
            if left.value > 0 { again.value?.signal() } else { RunLoop.currentLoop().stop() }
        }
        source.label = "source"
        again.value = source
        loop.add(source, forMode: mode)
        source.signal()
        let began = nanosecondsOfThread()
        loop.spend(Stage.patience, in: mode)
        let took = Double(nanosecondsOfThread() - began)
        source.invalidate()
        again.value = nil
        return took / Double(passes)
    }
}
