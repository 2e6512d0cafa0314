internal import Synchronization

/// What a run loop did, as it is handed to a `RunLoop.Instrument`.
public struct RunLoopEvent: Sendable {
    public enum CallOut: Sendable, Equatable {
        case observer(RunLoop.Activity)
        case block
        case signalledSource
        case descriptorSource(RunLoop.Source.Interest)
        case timer
        case mainQueue
    }

    public enum Kind: Sendable, Equatable {
        /// An activation begins.
        case entry
        /// An activation ends.
        case exit(RunLoop.RunResult)
        /// The loop has slept, for so many nanoseconds.
        case wait(nanoseconds: Int64)
        /// Something was called, with its label if it has one, and took so many nanoseconds.
        case callOut(CallOut, label: String?, nanoseconds: Int64)
    }

    public let kind: Kind
    /// When it began, on the monotonic clock, in nanoseconds.
    public let began: Int64
    public let mode: RunLoop.Mode
    /// 1 in the outermost activation, one more in each nested one.
    public let depth: Int
}

extension RunLoop {
    /// Is told what every run loop of the process does: for recorders, profilers and tests.
    ///
    /// Called on the loop's thread, in the middle of a pass, with no lock held. It must not run a loop, and
    /// what it takes in time the loop loses.
    public protocol Instrument: Sendable {
        func runLoop(_ loop: RunLoop, did event: RunLoopEvent)
    }

    /// Who is told what run loops do; nil, as at first, nobody. Any thread may set it.
    public static var instrument: (any Instrument)? {
        get { Trace.instrument.withLock { $0 } }
        set {
            Trace.instrument.withLock { $0 = newValue }
            Trace.isListening.store(newValue != nil, ordering: .releasing)
        }
    }
}

/// The hooks: one branch where nobody listens.
enum Trace {
    static let isListening = Atomic<Bool>(false)
    fileprivate static let instrument = Mutex<(any RunLoop.Instrument)?>(nil)

    /// Makes a call-out, and tells of it.
    @inline(__always)
    static func callOut<Result>(
        _ loop: RunLoop, _ mode: Int, _ kind: @autoclosure () -> RunLoopEvent.CallOut,
        label: @autoclosure () -> String? = nil, _ body: () -> Result
    ) -> Result {
        defer { loop.owner.knownNow = nil }
        guard isListening.load(ordering: .relaxed) else { return body() }
        let began = LoopClock.now
        let label = label()
        let result = body()
        let lasted = LoopClock.now.nanoseconds - began.nanoseconds
        tell(loop, mode, .callOut(kind(), label: label, nanoseconds: lasted), began: began)
        return result
    }

    static func tell(
        _ loop: RunLoop, _ mode: Int, _ kind: RunLoopEvent.Kind, began: LoopInstant = LoopClock.now
    ) {
        guard let instrument = instrument.withLock({ $0 }) else { return }
        let (name, depth) = loop.state.withLock { ($0.modes[mode].name, $0.activations.count) }
        instrument.runLoop(
            loop, did: RunLoopEvent(kind: kind, began: began.nanoseconds, mode: name, depth: depth))
    }
}
