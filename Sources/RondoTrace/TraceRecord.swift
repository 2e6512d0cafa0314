internal import RondoCore

/// One event of a run loop, or one request to it, in 32 bytes. Other data are indices of `TraceTables`.
package struct TraceRecord: Sendable, Hashable {
    package enum Kind: UInt8, Sendable, CaseIterable {
        /// An activation begins.
        case entry = 1
        /// An activation ends; `detail` is the raw value of its `RunResult`.
        case exit
        /// A pass; `detail` holds the activities that it went through.
        case pass
        /// The loop slept.
        case wait
        /// A call-out to an observer; `detail` is the activity.
        case observer
        case block
        case signalledSource
        /// `detail` is the `Interest` that the descriptor was ready for.
        case descriptorSource
        /// A call-out to a timer.
        case timer
        case mainQueue
        /// A call to a delegate, by `name`.
        case delegate
        // Requests to a loop, by any thread.
        case stop, wakeUp, perform, signal, add
        /// A span in which an object was ready in `mode` and its loop did not run that mode. `detail` is the
        /// raw value of the kind of call-out that was held back.
        case heldBack
        /// A note of the program, by `name`; `duration` is its value.
        case mark
        /// Deferred work was done; `detail` is the number of pieces.
        case deferredWork
        /// A notification of a queue was posted, by `name`.
        case notification
        /// A notification was enqueued.
        case enqueue
    }

    /// Nanoseconds on the monotonic clock.
    package var began: Int64
    /// Nanoseconds; for a mark, its value.
    package var duration: Int64
    package var subject: UInt32
    package var loop: UInt16
    package var thread: UInt16
    package var mode: UInt16
    package var name: UInt16
    /// 1 in the outermost activation; depths above 255 count as 255.
    package var depth: UInt8
    package var kind: Kind
    package var detail: UInt8

    package init(
        kind: Kind, began: Int64, duration: Int64 = 0, loop: UInt16 = 0, thread: UInt16 = 0, mode: UInt16 = 0,
        subject: UInt32 = 0, name: UInt16 = 0, depth: UInt8 = 0, detail: UInt8 = 0
    ) {
        self.kind = kind
        self.began = began
        self.duration = duration
        self.loop = loop
        self.thread = thread
        self.mode = mode
        self.subject = subject
        self.name = name
        self.depth = depth
        self.detail = detail
    }

    package var ended: Int64 { kind == .mark ? began : began &+ duration }
}

extension TraceRecord.Kind {
    /// True for call-outs, which run callbacks of the program.
    package var isCallOut: Bool {
        switch self {
        case .observer, .block, .signalledSource, .descriptorSource, .timer, .mainQueue, .delegate,
            .notification:
            true
        case .entry, .exit, .pass, .wait, .stop, .wakeUp, .perform, .signal, .add, .heldBack, .mark,
            .deferredWork, .enqueue:
            false
        }
    }

    /// True for requests to the loop, false for its own actions.
    package var isRequest: Bool {
        switch self {
        case .stop, .wakeUp, .perform, .signal, .add, .enqueue: true
        case .entry, .exit, .pass, .wait, .observer, .block, .signalledSource, .descriptorSource, .timer,
            .mainQueue, .delegate, .heldBack, .mark, .deferredWork, .notification:
            false
        }
    }

    /// The word for the kind in reports, pages and traces.
    package var word: String {
        switch self {
        case .entry: "entry"
        case .exit: "exit"
        case .pass: "pass"
        case .wait: "wait"
        case .observer: "observer"
        case .block: "block"
        case .signalledSource: "source"
        case .descriptorSource: "descriptor"
        case .timer: "timer"
        case .mainQueue: "main queue"
        case .delegate: "delegate"
        case .stop: "stop"
        case .wakeUp: "wakeUp"
        case .perform: "perform"
        case .signal: "signal"
        case .add: "add"
        case .heldBack: "held back"
        case .mark: "mark"
        case .deferredWork: "deferred work"
        case .notification: "notification"
        case .enqueue: "enqueue"
        }
    }

    init(_ callOut: RunLoopEvent.CallOut) {
        switch callOut {
        case .observer: self = .observer
        case .block: self = .block
        case .signalledSource: self = .signalledSource
        case .descriptorSource: self = .descriptorSource
        case .timer: self = .timer
        case .mainQueue: self = .mainQueue
        case .delegate: self = .delegate
        case .notification: self = .notification
        }
    }

    init(_ request: RunLoopEvent.Request) {
        switch request {
        case .stop: self = .stop
        case .wakeUp: self = .wakeUp
        case .perform: self = .perform
        case .signal: self = .signal
        case .add: self = .add
        case .enqueue: self = .enqueue
        }
    }
}
