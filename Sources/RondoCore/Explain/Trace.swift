internal import RondoMutex

internal import struct Synchronization.Atomic

extension RunLoop {
    /// Receives an event for everything that the run loops of the process do: for recorders, profilers and
    /// tests.
    ///
    /// Called on the loop's thread, in the middle of a pass, with no lock held; of requests, on the thread
    /// that makes them. It must not run a loop nor ask anything of one, and the loop stands still while it is
    /// called.
    public protocol Instrument: Sendable {
        func runLoop(_ loop: RunLoop, did event: RunLoopEvent)
    }

    /// The instrument that receives the events of all run loops; nil, as at first: events are not made. Any
    /// thread may set it.
    public static var instrument: (any Instrument)? {
        get { Trace.instrument.withLock { $0 } }
        set {
            Trace.instrument.withLock { $0 = newValue }
            Trace.isListening.store(newValue != nil, ordering: .releasing)
        }
    }
}

/// The calls that make events for the instrument: one branch each while there is none.
enum Trace {
    static let isListening = Atomic<Bool>(false)
    fileprivate static let instrument = Mutex<(any RunLoop.Instrument)?>(nil)

    /// Makes a call-out, and an event of it.
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

    /// Makes an event of a request. Any thread, with no lock held.
    static func request(
        _ loop: RunLoop, _ request: RunLoopEvent.Request, mode: RunLoop.Mode? = nil,
        label: @autoclosure () -> String? = nil, of subject: AnyObject? = nil
    ) {
        guard isListening.load(ordering: .relaxed) else { return }
        tell(loop, mode, .request(request, label: label()), of: subject.map { ObjectIdentifier($0) })
    }

    static func tell(
        _ loop: RunLoop, _ mode: Int, _ detail: RunLoopEvent.Detail, began: LoopInstant = LoopClock.now,
        of subject: ObjectIdentifier? = nil
    ) {
        guard let instrument = instrument.withLock({ $0 }) else { return }
        let (name, depth) = loop.state.withLock { ($0.modes[mode].name, $0.activations.count) }
        instrument.runLoop(
            loop,
            did: RunLoopEvent(
                detail: detail, began: began.nanoseconds, mode: name, depth: depth, subject: subject))
    }

    /// As above, of an event that need not be in a pass: in `mode`, or where that is nil in the running mode.
    static func tell(
        _ loop: RunLoop, _ mode: RunLoop.Mode?, _ detail: RunLoopEvent.Detail,
        began: LoopInstant = LoopClock.now,
        of subject: ObjectIdentifier?
    ) {
        guard let instrument = instrument.withLock({ $0 }) else { return }
        let (running, depth) = loop.state.withLock { ($0.runningMode, $0.activations.count) }
        instrument.runLoop(
            loop,
            did: RunLoopEvent(
                detail: detail, began: began.nanoseconds, mode: mode ?? running, depth: depth,
                subject: subject))
    }
}

extension RunLoop {
    /// Whether there is an instrument.
    package static var isTraced: Bool { Trace.isListening.load(ordering: .relaxed) }

    /// Makes a call to the delegate of `object`, which `loop` serves, and an event of it. On the thread on
    /// which the delegate is called.
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
        let detail = RunLoopEvent.Detail.callOut(.delegate(name()), label: label, nanoseconds: lasted)
        Trace.tell(loop, nil, detail, began: began, of: ObjectIdentifier(object))
        return result
    }
}
