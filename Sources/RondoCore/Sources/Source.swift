internal import RondoMutex

internal import struct Synchronization.Atomic

extension RunLoop {
    /// An input source: calls out when it has been signalled, or when its descriptor is ready.
    ///
    /// A *signalled* source (version 0 of `CFRunLoopSource`) is served after `signal()`, in the next pass of
    /// a mode that holds it; `signal()` wakes no loop. A *descriptor* source (version 1) is served when its
    /// file descriptor can be read or written. Either may be in several modes and several loops; the first of
    /// them that finds it ready serves it. Its loops retain it until it is removed or invalidated. A loop
    /// that has watched the descriptor retains the source after that, too, until the mode runs again or the
    /// thread ends; `invalidate()` releases the callback at once.
    public final class Source: Sendable {
        /// The events that a descriptor source waits for, or was found ready for.
        public struct Interest: OptionSet, Hashable, Sendable {
            public let rawValue: UInt8

            public init(rawValue: UInt8) { self.rawValue = rawValue }

            /// There are bytes to read, a connection to accept, or the end of the file.
            public static let read = Interest(rawValue: 1)
            /// There is room to write, or a connection attempt has ended.
            public static let write = Interest(rawValue: 2)
        }

        public typealias ModeCallback = @Sendable (RunLoop, Mode) -> Void

        /// The function that a source calls. A struct, because a bare closure returned from a lock's closure
        /// is wrapped in another closure, one allocation for each call.
        struct Callback: Sendable {
            let call: @Sendable (Source, Interest) -> Void
        }

        private static let signals = Atomic<UInt64>(0)

        /// Signalled sources of one pass are performed in increasing order (rule SRC-6); descriptor sources
        /// ignore it.
        public var order: Int { kind.order }
        let kind: Kind
        /// Whether the descriptor names one file for as long as the source is valid: its owner promises to
        /// invalidate the source before closing the descriptor. A watcher with the right events then need not
        /// be set again.
        let keepsFile: Bool
        let state: Mutex<State>
        private let live = LiveObject(.source)

        /// - Parameters:
        ///   - keepsFile: See `keepsFile`.
        ///   - perform: Called on the thread of a loop that holds the source, with no lock held.
        init(
            _ kind: Kind, keepsFile: Bool = false, interest: Interest = [], schedule: ModeCallback?,
            cancel: ModeCallback?, perform: Callback
        ) {
            self.kind = kind
            self.keepsFile = keepsFile
            var state = State(interest: interest, perform: perform)
            if schedule != nil || cancel != nil {
                let details = state.makeDetails()
                (details.schedule, details.cancel) = (schedule, cancel)
            }
            self.state = Mutex(state)
        }

        // MARK: State

        public var isValid: Bool { state.withLock { $0.isValid } }

        /// A name for logs, traces and `whyNotDelivering`; nil at first. Any thread may set it.
        public var label: String? {
            get { state.withLock { $0.details?.label } }
            set {
                state.withLock {
                    if newValue != nil || $0.details != nil { $0.makeDetails().label = newValue }
                }
            }
        }

        /// An object that the layer above keeps with the source, set once; it is released when the source is
        /// invalidated or freed.
        package var attachment: (any AnyObject & Sendable)? {
            get { state.withLock { $0.details?.attachment } }
            set {
                state.withLock { state in
                    guard state.isValid, newValue != nil || state.details != nil else { return }
                    state.makeDetails().attachment = newValue
                }
            }
        }

        /// Takes the attachment if no mode holds the source; the caller releases it with no lock held.
        package func takeAttachmentUnlessScheduled() -> (any AnyObject & Sendable)? {
            state.withLock { state in
                guard state.memberships.isEmpty else { return nil }
                defer { state.details?.attachment = nil }
                return state.details?.attachment
            }
        }

        /// Whether some mode of some loop holds the source.
        package var isScheduled: Bool { state.withLock { !$0.memberships.isEmpty } }

        /// The modes that hold the source.
        package var scheduledModes: [(loop: RunLoop, mode: Mode)] {
            state.withLock { $0.memberships.all.map { (loop: $0.loop, mode: $0.mode) } }
        }

        package func isIn(_ loop: RunLoop, _ mode: Mode) -> Bool {
            state.withLock { $0.memberships.contains(LoopMode(loop: loop, mode: mode)) }
        }

        /// Whether the source waits to be served for a signal.
        public var isSignalled: Bool { state.withLock { $0.isSignalled } }

        /// Why a descriptor source became invalid by itself: its descriptor was found closed (`EBADF`), or
        /// the kernel refuses to watch it (`ENOSPC` if `fs.epoll.max_user_watches` is used up, or `ENOMEM`).
        ///
        /// As an `NSError` it has the domain `NSPOSIXErrorDomain` and the kernel's own code. It is set before
        /// the cancel callbacks are made.
        public var error: (any Error)? { state.withLock { $0.details?.error } }

        /// The errno of `error`; nil if there is no error.
        package var refusalCode: Int32? { state.withLock { $0.details?.error?.code } }

        /// Whether the descriptor may be closed after the source has become invalid by itself; nil if it has
        /// not.
        ///
        /// After `EBADF` the number may belong to an epoll set or an eventfd of a run loop, and must not be
        /// closed. Its inode does not tell: all of these share one.
        package var mayCloseAfterRefusal: Bool? { refusalCode.map { $0 != EBADF } }

        /// The events that a descriptor source waits for. If the set is empty, the source stays in its modes
        /// and keeps them from being empty, but is not watched. Any thread may set it.
        public var interest: Interest {
            get { state.withLock { $0.interest } }
            set { for loop in changeInterest(to: newValue) { loop.wakeUp() } }
        }

        /// Sets `interest` and wakes no loop, for a caller that holds a lock: a wake-up is shown to the
        /// program's instrument.
        ///
        /// - Returns: The loops that the caller must wake up, with no lock held.
        package func changeInterest(to new: Interest) -> [RunLoop] {
            state.withLock { state in
                guard state.interest != new else { return [] }
                state.interest = new
                var foreign: [RunLoop] = []
                state.memberships.forEach { membership in
                    membership.loop.state.withLock { loopState in
                        guard let index = loopState.existingIndex(of: membership.mode) else { return }
                        loopState.modes[index].noteChange(of: self)
                    }
                    if membership.loop.mustBeWoken { foreign.append(membership.loop) }
                }
                return foreign
            }
        }

        // MARK: Signalling

        /// Asks for the source to be served. Several signals before it is served count as one (rule SRC-3).
        ///
        /// This wakes no loop: to have a sleeping loop serve the source at once, call its `wakeUp()` as well
        /// (rule SRC-2). One exception: a call from a callback of Foundation's, during a sleep that the main
        /// loop has lent to Foundation's loop, ends that sleep (rule BR-7). A descriptor source ignores
        /// signals: only the kernel makes it ready. Any thread.
        public func signal() {
            signal(wakesLoops: false)
        }

        /// Signals the source and wakes every loop that holds it.
        package func signalAndWakeUp() {
            signal(wakesLoops: true)
        }

        private func signal(wakesLoops: Bool) {
            let isTraced = Trace.isListening.load(ordering: .relaxed)
            var wakeUp: WakeUp?
            var others: [WakeUp] = []
            let (isNew, traced) = state.withLock { state -> (Bool, [LoopMode]) in
                var isNew = false
                if kind.behaviour.takesSignals { isNew = state.isValid && !state.isSignalled }
                let last = state.lastSignal
                if isNew {
                    state.isSignalled = true
                    state.lastSignal = Self.signals.wrappingAdd(1, ordering: .relaxed).newValue
                }
                let signal = state.lastSignal
                guard isNew || wakesLoops else { return (false, []) }
                state.memberships.forEach { membership in
                    if isNew {
                        membership.loop.state.withLock { loopState in
                            guard let index = loopState.existingIndex(of: membership.mode) else { return }
                            loopState.modes[index].signalled.insert(self, signal: signal, replacing: last)
                        }
                    }
                    guard wakesLoops || (isNew && membership.loop.sleepsBelowCaller),
                        let asleep = membership.loop.askForAttention()
                    else { return }
                    if wakeUp == nil { wakeUp = asleep } else { others.append(asleep) }
                }
                return (isNew, isTraced ? state.memberships.all : [])
            }
            for membership in traced where isNew {
                Trace.request(membership.loop, .signal, mode: membership.mode, label: label, of: self)
            }
            for membership in traced where wakesLoops { Trace.request(membership.loop, .wakeUp) }
            // With no lock held: a woken thread may need those locks at once.
            wakeUp?.wake()
            for wakeUp in others { wakeUp.wake() }
        }

        /// Takes back a signal that has not been served yet.
        package func withdrawSignal() {
            state.withLock { state in
                guard state.isSignalled else { return }
                state.isSignalled = false
                let signal = state.lastSignal
                state.memberships.forEach { membership in
                    membership.loop.state.withLock { loopState in
                        guard let index = loopState.existingIndex(of: membership.mode) else { return }
                        loopState.modes[index].signalled.remove(self, signal: signal)
                    }
                }
            }
        }

        // MARK: Membership

        /// Takes the source out of every mode of every loop, for ever: a pending signal is dropped, and later
        /// signals and additions do nothing (rule SRC-11). Any thread.
        ///
        /// This wakes no loop: a loop asleep in a mode that has become empty notices that only when something
        /// wakes it (rule RL-32).
        public func invalidate() {
            invalidate(because: nil)
        }

        /// Invalidates the source and wakes the loops of other threads that held it, so that a run whose mode
        /// has become empty ends.
        package func invalidateAndWakeUp() {
            let loops = state.withLock { $0.memberships.all.map(\.loop) }
            invalidate()
            for loop in loops { loop.wakeIfForeign() }
        }

        /// - Returns: The callback, which the source no longer performs; nil if the source was already
        ///   invalid.
        @discardableResult
        func invalidate(because error: SystemError?) -> Callback? {
            // Everything is released after the lock.
            let (memberships, perform, details) = state.withLock {
                state -> (Memberships, Callback?, Details?) in
                guard state.isValid else { return (Memberships(), nil, nil) }
                let old = (state.memberships, state.perform, state.details)
                let signal = state.lastSignal
                state = State(isValid: false)
                if error != nil || old.2?.label != nil {
                    let details = state.makeDetails()
                    (details.error, details.label) = (error, old.2?.label)
                }
                old.0.forEach { withdraw(from: $0, signal: signal) }
                for loop in old.2?.commonLoops ?? [] {
                    loop.state.withLock { _ = $0.commonSources.remove(self) }
                }
                return old
            }
            if let cancel = details?.cancel { memberships.forEach { cancel($0.loop, $0.mode) } }
            return perform
        }

        // MARK: From the pass

        /// Makes `mode` forget the source if another loop or mode has served its signal.
        ///
        /// - Returns: Whether the signal is still pending.
        func forgetUnlessSignalled(in mode: Int, of loop: RunLoop) -> Bool {
            state.withLock { state in
                let signal = state.lastSignal
                if !state.isSignalled {
                    loop.state.withLock { $0.modes[mode].signalled.remove(self, signal: signal) }
                }
                return state.isSignalled
            }
        }

        /// Takes the signal, if it is still pending, and performs the source; a signal from here on counts
        /// anew (rule SRC-4).
        ///
        /// - Returns: Whether the source was performed.
        func performIfSignalled(in mode: Int, of loop: RunLoop) -> Bool {
            let perform = state.withLock { state -> Callback? in
                let signal = state.lastSignal
                // If the signal is not pending, another loop or mode has served it.
                loop.state.withLock { $0.modes[mode].signalled.remove(self, signal: signal) }
                guard state.isValid, state.isSignalled else { return nil }
                state.isSignalled = false
                return state.perform
            }
            guard let perform else { return false }
            Trace.callOut(loop, mode, .signalledSource, label: label, of: self) { perform.call(self, []) }
            return true
        }
    }
}

extension RunLoop.Source: Hashable {
    public static func == (a: RunLoop.Source, b: RunLoop.Source) -> Bool { a === b }
    public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}
