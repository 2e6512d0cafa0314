/// An action of a run loop, as a `RunLoop.Instrument` receives it.
///
/// The kind of an event determines which of its values are not nil; see the kinds.
public struct RunLoopEvent: Sendable {
    /// The kind of an event. Later versions may report more kinds: a `switch` needs a `default`.
    public struct Kind: Sendable, Hashable, CustomStringConvertible {
        public let description: String

        private init(_ name: String) { description = name }

        /// An activation begins.
        public static let entry = Kind("entry")
        /// An activation ends. Has `result`.
        public static let exit = Kind("exit")
        /// The loop has waited. Has `nanoseconds`. Without `RunLoop.spinDuration` to wait is to sleep.
        public static let wait = Kind("wait")
        /// A pass has ended. Has `activities`, and `nanoseconds`, which include its wait.
        public static let pass = Kind("pass")

        /// Work was done that loads, streams and connections had deferred. Has `count`, the number of pieces,
        /// and `nanoseconds`.
        public static let deferredWork = Kind("deferredWork")

        // Call-outs. They have `nanoseconds`, and `label` if the object has one.

        /// An observer was called. Has `activities`.
        public static let observer = Kind("observer")
        public static let block = Kind("block")
        public static let signalledSource = Kind("signalledSource")
        /// A descriptor source was called. Has `interest`.
        public static let descriptorSource = Kind("descriptorSource")
        public static let timer = Kind("timer")
        /// A notification of a `NotificationQueue` was posted. `method` is its name, `label` that of the
        /// queue.
        public static let notification = Kind("notification")
        public static let mainQueue = Kind("mainQueue")
        /// A delegate was called. Has `method`. Only this call-out may be made on another thread than the
        /// loop's, if a delegate queue makes the call.
        public static let delegate = Kind("delegate")

        // Requests, made on any thread. `label` is that of the object concerned.

        public static let stop = Kind("stop")
        public static let wakeUp = Kind("wakeUp")
        /// A block was queued.
        public static let perform = Kind("perform")
        /// A source was signalled. (The loop need not have been woken.)
        public static let signal = Kind("signal")
        /// A source, timer or observer was added to a mode.
        public static let add = Kind("add")
        /// A notification was enqueued: `label` is its name.
        public static let enqueue = Kind("enqueue")
    }

    package let detail: Detail
    /// The instant at which it began, on the machine's monotonic clock even if the loop has another one, in
    /// nanoseconds.
    public let began: Int64
    /// The running mode, or the mode that a request named; nil if there is none.
    public let mode: RunLoop.Mode?
    /// 1 in the outermost activation, one more in each nested one; 0 while the loop does not run.
    public let depth: Int
    /// The timer, source, observer or connection concerned, to distinguish two with the same label.
    /// Meaningless once that object has been freed: another may have its address.
    public let subject: ObjectIdentifier?
}

extension RunLoopEvent: CustomStringConvertible {
    public var kind: Kind {
        switch detail {
        case .entry: .entry
        case .exit: .exit
        case .wait: .wait
        case .pass: .pass
        case .deferredWork: .deferredWork
        case .callOut(let callOut, _, _): callOut.kind
        case .request(let request, _): request.kind
        }
    }

    /// Whether the event is a call-out.
    public var isCallOut: Bool { if case .callOut = detail { true } else { false } }

    /// Whether the event is a request.
    public var isRequest: Bool { if case .request = detail { true } else { false } }

    /// The duration of a wait, pass or call-out, or of deferred work.
    public var nanoseconds: Int64? {
        switch detail {
        case .wait(let nanoseconds), .callOut(_, _, let nanoseconds), .pass(_, let nanoseconds),
            .deferredWork(_, let nanoseconds):
            nanoseconds
        case .entry, .exit, .request: nil
        }
    }

    /// The label of the object concerned, if it has one.
    public var label: String? {
        switch detail {
        case .callOut(_, let label, _), .request(_, let label): label
        case .entry, .exit, .wait, .pass, .deferredWork: nil
        }
    }

    /// Why an activation has ended.
    public var result: RunLoop.RunResult? { if case .exit(let result) = detail { result } else { nil } }

    /// The activities that a pass went through, observed or not, or the activity for which an observer was
    /// called.
    public var activities: RunLoop.Activity? {
        switch detail {
        case .pass(let activities, _), .callOut(.observer(let activities), _, _): activities
        case .entry, .exit, .wait, .callOut, .deferredWork, .request: nil
        }
    }

    /// The number of pieces of deferred work that were done.
    public var count: Int? { if case .deferredWork(let count, _) = detail { count } else { nil } }

    /// The readiness of the descriptor.
    public var interest: RunLoop.Source.Interest? {
        if case .callOut(.descriptorSource(let interest), _, _) = detail { interest } else { nil }
    }

    /// The delegate's method, by a short name, or the name of the notification.
    public var method: String? {
        switch detail {
        case .callOut(.delegate(let name), _, _), .callOut(.notification(let name), _, _): name
        case .entry, .exit, .wait, .callOut, .pass, .deferredWork, .request: nil
        }
    }

    public var description: String {
        var words = [kind.description]
        if let label { words.append("“\(label)”") }
        if let method { words.append(method) }
        if let activities { words.append("\(activities)") }
        if let mode { words.append("in \(mode.shortName)") }
        if let result { words.append("\(result)") }
        if let nanoseconds { words.append("\(nanoseconds) ns") }
        return words.joined(separator: " ")
    }
}

// MARK: - For the package

extension RunLoopEvent {
    /// The event with its values. The package can switch over all cases; programs cannot.
    package enum Detail: Sendable, Equatable {
        case entry
        case exit(RunLoop.RunResult)
        case wait(nanoseconds: Int64)
        case callOut(CallOut, label: String?, nanoseconds: Int64)
        case pass(RunLoop.Activity, nanoseconds: Int64)
        case deferredWork(count: Int, nanoseconds: Int64)
        case request(Request, label: String?)
    }

    /// The kinds of call-out, with their values.
    package enum CallOut: Sendable, Equatable {
        case observer(RunLoop.Activity)
        case block
        case signalledSource
        case descriptorSource(RunLoop.Source.Interest)
        case timer
        case mainQueue
        case delegate(String)
        /// With the name of the notification.
        case notification(String)

        fileprivate var kind: Kind {
            switch self {
            case .observer: .observer
            case .block: .block
            case .signalledSource: .signalledSource
            case .descriptorSource: .descriptorSource
            case .timer: .timer
            case .mainQueue: .mainQueue
            case .delegate: .delegate
            case .notification: .notification
            }
        }
    }

    /// The kinds of request.
    package enum Request: Sendable, Equatable {
        case stop
        case wakeUp
        case perform
        case signal
        case add
        case enqueue

        fileprivate var kind: Kind {
            switch self {
            case .stop: .stop
            case .wakeUp: .wakeUp
            case .perform: .perform
            case .signal: .signal
            case .add: .add
            case .enqueue: .enqueue
            }
        }
    }
}
