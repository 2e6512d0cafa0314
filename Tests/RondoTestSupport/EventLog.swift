package import RondoCore
internal import RondoMutex

/// Notes events in their order, from any thread.
package final class EventLog: Sendable {
    private let noted = Mutex<[String]>([])

    package init() {}

    package var entries: [String] { noted.withLock { $0 } }

    package func note(_ event: String) {
        noted.withLock { $0.append(event) }
    }

    package func count(of event: String) -> Int {
        noted.withLock { noted in noted.count { $0 == event } }
    }

    /// Notes every activity of `loop` in `mode` by its name, without keeping the mode alive.
    @discardableResult
    package func observe(
        _ activities: RunLoop.Activity = .allActivities, of loop: RunLoop, in mode: RunLoop.Mode
    ) -> RunLoop.Observer {
        let observer = RunLoop.Observer(activities: activities) { [self] _, activity in note(activity.name) }
        loop.add(observer, forMode: mode)
        return observer
    }
}

extension RunLoop.Activity {
    /// The name of a single activity.
    package var name: String {
        switch self {
        case .entry: "entry"
        case .beforeTimers: "beforeTimers"
        case .beforeSources: "beforeSources"
        case .beforeWaiting: "beforeWaiting"
        case .afterWaiting: "afterWaiting"
        case .exit: "exit"
        default: "not one activity: \(rawValue)"
        }
    }
}
