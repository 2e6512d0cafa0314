// As a package that knows nothing of Rondo: its run loop is Foundation's.
public import Foundation

/// Ticks on the main run loop, as it knows it.
@MainActor public final class ForeignTicker {
    private var timer: Timer?
    public private(set) var ticks = 0

    public init() {}

    public func start(every interval: TimeInterval, _ tick: @escaping @MainActor () -> Void) {
        timer = Timer.scheduledTimer(withTimeInterval: interval, repeats: true) { [weak self] _ in
            MainActor.assumeIsolated {
                self?.ticks += 1
                tick()
            }
        }
    }

    public func stop() { timer?.invalidate() }
}

/// Runs the main run loop itself, as frameworks do.
public func runForeignLoop(until isDone: () -> Bool) {
    let limit = Date(timeIntervalSinceNow: 60)
    while !isDone(), limit.timeIntervalSinceNow > 0 {
        // Timers do not end a run.
        _ = RunLoop.current.run(mode: .default, before: Date(timeIntervalSinceNow: 0.02))
    }
}
