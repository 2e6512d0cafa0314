internal import RondoMutex

internal import struct Synchronization.Atomic

extension RunLoop {
    /// Receives an event for every action of the run loops of the process: for recorders, profilers and
    /// tests.
    ///
    /// Called on the loop's thread, in the middle of a pass, with no lock held; for a request, on the thread
    /// that makes it, which may hold the lock of the stream, socket, descriptor or load that makes the
    /// request. The instrument must not use that object, run a loop or call a function of one, and the loop
    /// waits until it returns.
    public protocol Instrument: Sendable {
        func runLoop(_ loop: RunLoop, did event: RunLoopEvent)
    }

    /// The instrument that receives the events of all run loops; nil, the initial value, means that no events
    /// are made. Any thread may set it.
    public static var instrument: (any Instrument)? {
        get { Trace.listeners.withLock { $0.instrument } }
        set { Trace.change { $0.instrument = newValue } }
    }

    /// Has `recorder` receive the events, too, whatever instrument the program sets, until it is removed. Any
    /// thread.
    package static func addRecorder(_ recorder: any Instrument & AnyObject) {
        Trace.change { $0.recorders.append(recorder) }
    }

    package static func removeRecorder(_ recorder: any Instrument & AnyObject) {
        Trace.change { listeners in listeners.recorders.removeAll { $0 === recorder } }
    }
}

/// The functions that make events for the instrument and for recorders; each costs one branch while there are
/// none.
enum Trace {
    fileprivate struct Listeners: Sendable {
        /// The program's instrument.
        var instrument: (any RunLoop.Instrument)?
        /// The recorders of `RONDO_TRACE` and of the lab.
        var recorders: [any RunLoop.Instrument & AnyObject] = []

        var isEmpty: Bool { instrument == nil && recorders.isEmpty }

        func runLoop(_ loop: RunLoop, did event: RunLoopEvent) {
            for recorder in recorders { recorder.runLoop(loop, did: event) }
            instrument?.runLoop(loop, did: event)
        }
    }

    static let isListening = Atomic<Bool>(false)
    fileprivate static let listeners = Mutex(Listeners())

    fileprivate static func change(_ body: (inout Listeners) -> Void) {
        let before = listeners.withLock { listeners in
            let before = listeners
            body(&listeners)
            isListening.store(!listeners.isEmpty, ordering: .releasing)
            return before
        }
        // Released behind the lock: the `deinit` of an instrument may use a loop, which makes events.
        withExtendedLifetime(before) {}
    }

    /// Makes a call-out, and an event for it.
    static func callOut<Result>(
        _ loop: RunLoop, _ mode: Int, _ kind: @autoclosure () -> RunLoopEvent.CallOut,
        label: @autoclosure () -> String? = nil, of subject: AnyObject? = nil, _ body: () -> Result
    ) -> Result {
        defer { loop.threadState.forgetNow() }
        guard isListening.load(ordering: .relaxed) else { return body() }
        let began = LoopClock.systemNow
        let label = label()
        let result = body()
        let lasted = LoopClock.systemNow.nanoseconds - began.nanoseconds
        tell(
            loop, mode, .callOut(kind(), label: label, nanoseconds: lasted), began: began,
            of: subject.map { ObjectIdentifier($0) })
        return result
    }

    /// Makes an event for a request. Any thread; the caller may hold the lock of a stream or socket, but none
    /// of a loop.
    static func request(
        _ loop: RunLoop, _ request: RunLoopEvent.Request, mode: RunLoop.Mode? = nil,
        label: @autoclosure () -> String? = nil, of subject: AnyObject? = nil
    ) {
        guard isListening.load(ordering: .relaxed) else { return }
        tell(loop, mode, .request(request, label: label()), of: subject.map { ObjectIdentifier($0) })
    }

    static func tell(
        _ loop: RunLoop, _ mode: Int, _ detail: RunLoopEvent.Detail, began: LoopInstant = LoopClock.systemNow,
        of subject: ObjectIdentifier? = nil
    ) {
        let all = listeners.withLock { $0 }
        if all.isEmpty { return }
        let (name, depth) = loop.state.withLock { ($0.modes[mode].name, $0.activations.count) }
        all.runLoop(
            loop,
            did: RunLoopEvent(
                detail: detail, began: began.nanoseconds, mode: name, depth: depth, subject: subject))
    }

    /// Makes an event that need not belong to a pass: in `mode`, or in the running mode if `mode` is nil.
    static func tell(
        _ loop: RunLoop, _ mode: RunLoop.Mode?, _ detail: RunLoopEvent.Detail,
        began: LoopInstant = LoopClock.systemNow,
        of subject: ObjectIdentifier?
    ) {
        let all = listeners.withLock { $0 }
        if all.isEmpty { return }
        let (running, depth) = loop.state.withLock { ($0.runningMode, $0.activations.count) }
        all.runLoop(
            loop,
            did: RunLoopEvent(
                detail: detail, began: began.nanoseconds, mode: mode ?? running, depth: depth,
                subject: subject))
    }
}

extension RunLoop {
    /// Whether there is an instrument or a recorder.
    package static var isTraced: Bool { Trace.isListening.load(ordering: .relaxed) }

    /// Calls the delegate of `object`, which `loop` serves, and makes an event for the call. On the thread on
    /// which the delegate is called.
    package static func tracingDelegateCall<Result>(
        _ name: @autoclosure () -> String, of object: AnyObject, label: @autoclosure () -> String?,
        on loop: @autoclosure () -> RunLoop?, _ body: () -> Result
    ) -> Result {
        guard Trace.isListening.load(ordering: .relaxed), let loop = loop() else { return body() }
        let began = LoopClock.systemNow
        let label = label()
        let result = body()
        let lasted = LoopClock.systemNow.nanoseconds - began.nanoseconds
        // The event gets the running mode of the loop.
        let detail = RunLoopEvent.Detail.callOut(.delegate(name()), label: label, nanoseconds: lasted)
        Trace.tell(loop, nil, detail, began: began, of: ObjectIdentifier(object))
        return result
    }
}
