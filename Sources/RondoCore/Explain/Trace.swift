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
        /// A method of a delegate, by a short name; the only one that may be made on another thread than the
        /// loop's, where a delegate queue makes it.
        case delegate(String)
    }

    /// What was asked of a loop; any thread may have done it.
    public enum Request: Sendable, Equatable {
        case stop
        case wakeUp
        /// A block was queued.
        case perform
        /// A source was signalled. (The loop did not have to hear of it.)
        case signal
        /// A source, timer or observer was added to a mode.
        case add
    }

    public enum Kind: Sendable, Equatable {
        /// An activation begins.
        case entry
        /// An activation ends.
        case exit(RunLoop.RunResult)
        /// The loop has waited, for so many nanoseconds; see `RunLoop.spinDuration`, without which it sleeps.
        case wait(nanoseconds: Int64)
        /// Something was called, with its label if it has one, and took so many nanoseconds.
        case callOut(CallOut, label: String?, nanoseconds: Int64)
        /// Work was done that loads, streams and connections had deferred until now, so many pieces of it, and took so many
        /// nanoseconds.
        case deferredWork(count: Int, nanoseconds: Int64)
        /// A pass has ended, which went through these activities, whoever observed them, and took so many
        /// nanoseconds, its wait included.
        case pass(RunLoop.Activity, nanoseconds: Int64)
        /// Somebody asked something of the loop; the label is that of the object concerned.
        case request(Request, label: String?)
    }

    public let kind: Kind
    /// When it began, on the monotonic clock, in nanoseconds.
    public let began: Int64
    /// The mode that ran, or that a request named; nil where there was none.
    public let mode: RunLoop.Mode?
    /// 1 in the outermost activation, one more in each nested one; 0 while the loop does not run.
    public let depth: Int
    /// The timer, source, observer or connection concerned, to tell two with the same label apart. It says
    /// nothing once that object is gone: another may have its place.
    public let subject: ObjectIdentifier?
}

extension RunLoop {
    /// Is told what every run loop of the process does: for recorders, profilers and tests.
    ///
    /// Called on the loop's thread, in the middle of a pass, with no lock held; of requests, on the thread
    /// that makes them. It must not run a loop nor ask anything of one, and what it takes in time the loop
    /// loses.
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
        label: @autoclosure () -> String? = nil, of subject: AnyObject? = nil, _ body: () -> Result
    ) -> Result {
        defer { loop.owner.knownNow = nil }
        guard isListening.load(ordering: .relaxed) else { return body() }
        let began = LoopClock.now
        let label = label()
        let result = body()
        let lasted = LoopClock.now.nanoseconds - began.nanoseconds
        tell(
            loop, mode, .callOut(kind(), label: label, nanoseconds: lasted), began: began,
            of: subject.map { ObjectIdentifier($0) })
        return result
    }

    /// Tells of a request, with no lock held. Any thread.
    @inline(__always)
    static func request(
        _ loop: RunLoop, _ request: RunLoopEvent.Request, mode: RunLoop.Mode? = nil,
        label: @autoclosure () -> String? = nil, of subject: AnyObject? = nil
    ) {
        guard isListening.load(ordering: .relaxed) else { return }
        tell(loop, mode, .request(request, label: label()), of: subject.map { ObjectIdentifier($0) })
    }

    static func tell(
        _ loop: RunLoop, _ mode: Int, _ kind: RunLoopEvent.Kind, began: LoopInstant = LoopClock.now,
        of subject: ObjectIdentifier? = nil
    ) {
        guard let instrument = instrument.withLock({ $0 }) else { return }
        let (name, depth) = loop.state.withLock { ($0.modes[mode].name, $0.activations.count) }
        instrument.runLoop(
            loop,
            did: RunLoopEvent(
                kind: kind, began: began.nanoseconds, mode: name, depth: depth, subject: subject))
    }

    /// As above, of something that need not be in a pass: in `mode`, or where that is nil in whichever runs.
    static func tell(
        _ loop: RunLoop, _ mode: RunLoop.Mode?, _ kind: RunLoopEvent.Kind, began: LoopInstant = LoopClock.now,
        of subject: ObjectIdentifier?
    ) {
        guard let instrument = instrument.withLock({ $0 }) else { return }
        let (running, depth) = loop.state.withLock { ($0.runningMode, $0.activations.count) }
        instrument.runLoop(
            loop,
            did: RunLoopEvent(
                kind: kind, began: began.nanoseconds, mode: mode ?? running, depth: depth, subject: subject))
    }
}

extension RunLoop {
    /// Whether anybody is told what run loops do.
    package static var isTraced: Bool { Trace.isListening.load(ordering: .relaxed) }

    /// Makes a call to the delegate of `object`, which `loop` serves, and tells the instrument of it. On
    /// whichever thread the delegate is called.
    package static func tracingDelegateCall<Result>(
        _ name: @autoclosure () -> String, of object: AnyObject, label: @autoclosure () -> String?,
        on loop: @autoclosure () -> RunLoop?, _ body: () -> Result
    ) -> Result {
        guard Trace.isListening.load(ordering: .relaxed), let loop = loop() else { return body() }
        let began = LoopClock.now
        let label = label()
        let result = body()
        let lasted = LoopClock.now.nanoseconds - began.nanoseconds
        // In the mode of the loop only if it is the loop that calls.
        let kind = RunLoopEvent.Kind.callOut(.delegate(name()), label: label, nanoseconds: lasted)
        Trace.tell(loop, nil, kind, began: began, of: ObjectIdentifier(object))
        return result
    }
}
