internal import RondoMutex

extension RunLoop {
    /// The stages of a run loop at which observers can be called; raw values are those of
    /// `CFRunLoopActivity`.
    public struct Activity: OptionSet, Hashable, Sendable, CustomStringConvertible {
        public let rawValue: UInt

        public init(rawValue: UInt) { self.rawValue = rawValue }

        /// Once, when an activation begins.
        public static let entry = Activity(rawValue: 1 << 0)
        /// In every pass, first.
        public static let beforeTimers = Activity(rawValue: 1 << 1)
        /// In every pass, second.
        public static let beforeSources = Activity(rawValue: 1 << 2)
        /// Before the loop may sleep.
        public static let beforeWaiting = Activity(rawValue: 1 << 5)
        /// After the wait, before the event that ended it is served.
        public static let afterWaiting = Activity(rawValue: 1 << 6)
        /// Once, when an activation ends.
        public static let exit = Activity(rawValue: 1 << 7)
        public static let allActivities = Activity(rawValue: 0x0FFF_FFFF)

        /// The names of the stages, separated by blanks: "beforeTimers beforeSources"; "none" without a
        /// stage. Bits that stand for no stage are written in hexadecimal digits: "entry 0x8".
        public var description: String {
            let names: [(Activity, String)] = [
                (.entry, "entry"), (.beforeTimers, "beforeTimers"), (.beforeSources, "beforeSources"),
                (.beforeWaiting, "beforeWaiting"), (.afterWaiting, "afterWaiting"), (.exit, "exit"),
            ]
            let named = contains(.allActivities) ? .allActivities : Activity(names.map(\.0))
            let others = subtracting(named).rawValue
            let found =
                names.filter { contains($0.0) }.map(\.1)
                + (others == 0 ? [] : ["0x" + String(others, radix: 16)])
            return found.isEmpty ? "none" : found.joined(separator: " ")
        }
    }

    /// An observer of a run loop, called at chosen stages of the loop. The counterpart of
    /// `CFRunLoopObserver`.
    ///
    /// An observer does not keep a mode from being empty (rule SRC-24). The loop retains it until it is
    /// removed or invalidated.
    public final class Observer: Sendable {
        struct State {
            var isValid = true
            var loop: RunLoop?
            var memberships = RunLoop.Source.Memberships()
            /// The observer is registered in its loop under the common name, even if it has been removed from
            /// single modes since.
            var isCommon = false
            var isCalling = false
            var callback: (@Sendable (Observer, Activity) -> Void)?
            var label: String?
            var attachment: (any AnyObject & Sendable)?
            /// The thread of the loop that last held the observer has ended.
            var threadHasEnded = false
        }

        public let activities: Activity
        /// Observers of one activity are called in increasing order; observers of equal order in the order of
        /// addition.
        public let order: Int
        public let repeats: Bool
        let state: Mutex<State>
        private let live = LiveObject(.observer)

        /// - Parameters:
        ///   - activities: The stages at which to call the observer; each call gets exactly one.
        ///   - repeats: False: the observer is invalidated after its first call, whatever its activities
        ///     (rule SRC-20).
        ///   - callback: Called on the thread of the loop, with no lock held.
        public init(
            activities: Activity, repeats: Bool = true, order: Int = 0,
            _ callback: @escaping @Sendable (Observer, Activity) -> Void
        ) {
            self.activities = activities
            self.repeats = repeats
            self.order = order
            state = Mutex(State(callback: callback))
        }

        public var isValid: Bool { state.withLock { $0.isValid } }

        /// A name for logs, traces and `whyNotDelivering`; nil at first. Any thread may set it.
        public var label: String? {
            get { state.withLock { $0.label } }
            set { state.withLock { $0.label = newValue } }
        }

        /// An object that the layer above keeps with the observer, set once; it is released when the observer
        /// is invalidated or freed.
        package var attachment: (any AnyObject & Sendable)? {
            get { state.withLock { $0.attachment } }
            set { state.withLock { if $0.isValid { $0.attachment = newValue } } }
        }

        /// Takes the observer out of all its modes; it is never called again. Any thread.
        public func invalidate() {
            // Everything is released after the lock.
            let (loop, memberships, released) = state.withLock { state in
                defer {
                    state.isValid = false
                    state.loop = nil
                    state.callback = nil
                    state.attachment = nil
                    state.memberships = RunLoop.Source.Memberships()
                    state.isCommon = false
                }
                return (state.loop, state.memberships, (state.callback, state.attachment))
            }
            loop?.state.withLock { state in
                state.commonObservers.remove(self)
                memberships.forEach { membership in
                    guard let index = state.existingIndex(of: membership.mode) else { return }
                    state.remove(self, fromMode: index)
                }
                loop?.hints.noteObserved(state.observedActivities.rawValue)
            }
            withExtendedLifetime(released) {}
        }

        /// Registers the observer under the common name.
        ///
        /// - Returns: The modes that it has to enter.
        func register(in loop: RunLoop) -> [Mode] {
            state.withLock { state in
                guard state.isValid, state.loop == nil || state.loop === loop else { return [] }
                let modes = loop.state.withLock { loopState -> [Mode] in
                    guard loopState.isAlive else { return [] }
                    loopState.commonObservers.insert(self)
                    return loopState.commonModes.map { loopState.modes[$0].name }
                }
                if !modes.isEmpty {
                    state.loop = loop
                    state.isCommon = true
                }
                return modes
            }
        }

        /// - Returns: The modes that the observer has to leave; none if it was not registered (rule RL-24).
        func unregister(from loop: RunLoop) -> [Mode] {
            state.withLock { state in
                guard state.loop === loop, state.isCommon else { return [] }
                state.isCommon = false
                if state.memberships.isEmpty { state.loop = nil }
                return loop.state.withLock { loopState in
                    loopState.commonObservers.remove(self)
                    return loopState.commonModes.map { loopState.modes[$0].name }
                }
            }
        }

        /// - Parameter isCommon: The observer enters because it is registered under the common name. Nothing
        ///   happens if another thread has unregistered it meanwhile.
        func enter(_ loop: RunLoop, _ mode: Mode, isCommon: Bool = false) {
            let membership = LoopMode(loop: loop, mode: mode)
            state.withLock { state in
                guard state.isValid, state.loop == nil || state.loop === loop else { return }
                guard !isCommon || state.isCommon, !state.memberships.contains(membership) else { return }
                let added = loop.state.withLock { loopState -> Bool in
                    let index = loopState.index(of: mode)
                    guard loopState.isAlive else { return false }
                    loopState.add(self, toMode: index)
                    loop.hints.noteObserved(loopState.observedActivities.rawValue)
                    return true
                }
                if added {
                    state.loop = loop
                    state.memberships.append(membership)
                    state.threadHasEnded = false
                } else if state.loop == nil {
                    state.threadHasEnded = true
                }
            }
        }

        /// - Parameter isCommon: The observer leaves because it is no longer registered under the common
        ///   name. Nothing happens if it has been registered again.
        func leave(_ loop: RunLoop, _ mode: Mode, isCommon: Bool = false) {
            state.withLock { state in
                guard state.loop === loop, !isCommon || !state.isCommon else { return }
                guard state.memberships.remove(LoopMode(loop: loop, mode: mode)) else { return }
                loop.state.withLock { loopState in
                    guard let index = loopState.existingIndex(of: mode) else { return }
                    loopState.remove(self, fromMode: index)
                    loop.hints.noteObserved(loopState.observedActivities.rawValue)
                }
                state.threadHasEnded = !loop.state.withLock { $0.isAlive }
                if state.memberships.isEmpty && !state.isCommon { state.loop = nil }
            }
        }

        /// From the pass: calls the observer, unless it has been invalidated since or its callback is on the
        /// stack (rule SRC-23).
        func notify(_ activity: Activity, in mode: Int, of loop: RunLoop) {
            let callback = state.withLock { state -> (@Sendable (Observer, Activity) -> Void)? in
                guard state.isValid, !state.isCalling else { return nil }
                state.isCalling = true
                return state.callback
            }
            guard let callback else { return }
            Trace.callOut(loop, mode, .observer(activity), label: label, of: self) {
                callback(self, activity)
            }
            state.withLock { $0.isCalling = false }
            if !repeats { invalidate() }
        }
    }
}

extension RunLoop.Observer: Hashable {
    public static func == (a: RunLoop.Observer, b: RunLoop.Observer) -> Bool { a === b }
    public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}

extension RunLoop {
    /// Calls `observer` at its activities while this loop runs in `mode`.
    ///
    /// An observer belongs to one loop at a time: adding it to a second one does nothing (rule SRC-21).
    /// - Note: Any thread may call this; the observer is called on this loop's thread only.
    public func add(_ observer: Observer, forMode mode: Mode) {
        if mode == .common {
            for mode in observer.register(in: self) { observer.enter(self, mode, isCommon: true) }
        } else {
            observer.enter(self, mode)
        }
        Trace.request(self, .add, mode: mode, label: observer.label, of: observer)
    }

    public func remove(_ observer: Observer, forMode mode: Mode) {
        if mode == .common {
            for mode in observer.unregister(from: self) { observer.leave(self, mode, isCommon: true) }
        } else {
            observer.leave(self, mode)
        }
    }

    public func contains(_ observer: Observer, forMode mode: Mode) -> Bool {
        state.withLock { state in
            if mode == .common { return state.commonObservers.contains(observer) }
            guard let index = state.existingIndex(of: mode) else { return false }
            return state.modes[index].observers.contains { $0 === observer }
        }
    }
}
