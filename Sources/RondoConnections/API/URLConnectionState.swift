internal import FoundationNetworking
internal import RondoCore

/// The state of a connection from its creation to its end: its schedule, settings, delegate and queue.
///
/// A value behind the connection's lock. On misuse a method returns a warning, at most one for each
/// connection.
struct URLConnectionState: ~Copyable {
    private enum Phase {
        case created, started, ended
        /// The threads of its loops have ended before the load.
        case lost
    }

    private var phase = Phase.created
    private(set) var modes: [LoopMode] = []
    private(set) var queue: DelegateQueue?
    /// Nil once the delegate has been released.
    private(set) var delegate: DelegateObject?
    private var needsLoader = false
    private var hasWarned = false

    // Set by `URLConnection`: each is the value of one of its members, and none decides anything here.

    /// Nil while the original request is current.
    var currentRequest: URLRequest?
    var settings = URLConnection.Settings.standard
    var label: String?
    /// The optional method whose default was called last (rule UC-74).
    var defaultCalled: OptionalMethod?
    /// Made by the connection after `start(in:)`, because a load refers to its connection.
    var load: Load?

    init(_ delegate: DelegateObject) { self.delegate = delegate }

    // MARK: - Before the start

    mutating func schedule(_ scheduled: LoopMode, isCancelled: Bool) -> String? {
        guard phase == .created, !isCancelled else {
            return complain("schedule(in:forMode:) after start() has no effect: schedule, then start.")
        }
        guard queue == nil else {
            return complain(
                "A connection has either a schedule or a delegate queue; the queue was there first.")
        }
        if !modes.contains(scheduled) { modes.append(scheduled) }
        return nil
    }

    mutating func unschedule(_ scheduled: LoopMode) -> String? {
        switch phase {
        case .created:
            modes.removeAll { $0 == scheduled }
            return nil
        case .started: return complain("unschedule(from:forMode:) after start() has no effect.")
        // Unscheduling after the end is unnecessary but harmless (rule UC-6).
        case .ended, .lost: return nil
        }
    }

    mutating func setQueue(_ new: OperationQueue?) -> String? {
        guard modes.isEmpty || phase != .created else {
            return complain(
                "A connection has either a schedule or a delegate queue; the schedule was there first.")
        }
        queue = new.map { DelegateQueue($0) }
        return nil
    }

    /// Returns `sentence` as the warning, unless the connection has given one before.
    private mutating func complain(_ sentence: String) -> String? {
        defer { hasWarned = true }
        return hasWarned ? nil : sentence
    }

    // MARK: - Start and end

    /// Makes the loader's loop drive the load.
    mutating func driveOnLoader() { needsLoader = true }

    /// Whether the loader's loop would drive the load if it started now: it was asked for, or the connection
    /// has a queue and no schedule.
    var needsLoaderNow: Bool { phase == .created && (needsLoader || modes.isEmpty && queue != nil) }

    /// - Parameter modes: The loops and modes to use if the connection has no schedule yet.
    /// - Returns: False if it was started before.
    mutating func start(in modes: [LoopMode]) -> Bool {
        guard phase == .created else { return false }
        if self.modes.isEmpty { self.modes = modes }
        phase = .started
        return true
    }

    mutating func loseLoops() { phase = .lost }

    /// - Returns: The delegate, which must not be released under the lock.
    mutating func end() -> DelegateObject? {
        if phase != .lost { phase = .ended }
        return releaseDelegate()
    }

    /// Releases the load and the delegate: no further callback comes.
    mutating func releaseDelegate() -> DelegateObject? {
        load = nil
        return delegate.take()
    }

    var isOver: Bool { phase == .ended || phase == .lost }

    enum PublicState {
        case notStarted
        case running([LoopMode])
        case over
        /// No call comes, because the threads of its loops have ended.
        case lost
    }

    var publicState: PublicState {
        switch phase {
        case .created: .notStarted
        case .started: .running(modes)
        case .ended: .over
        case .lost: .lost
        }
    }
}
