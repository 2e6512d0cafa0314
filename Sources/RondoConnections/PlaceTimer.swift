internal import RondoCore

/// A timer of a load: one for each of its loops, since a timer belongs to one.
struct PlaceTimer {
    private let timers: [Timer]

    /// - Parameter fire: Called on whichever of the loops comes first, and on the others too.
    init(
        _ places: [Loader.Place], after seconds: TimeInterval, repeats: Bool,
        fire: @escaping @Sendable () -> Void
    ) {
        let loops = places.count == 1 ? [places[0].loop] : Array(Set(places.map(\.loop)))
        timers = loops.map { loop in
            let timer = Timer(timeInterval: seconds, repeats: repeats) { _ in fire() }
            for place in places where place.loop === loop { loop.add(timer, forMode: place.mode) }
            return timer
        }
    }

    /// The next firing comes in so many seconds.
    func move(to seconds: TimeInterval) {
        for timer in timers { timer.fireDate = LoopClock.date(inSeconds: max(seconds, 0.001)) }
    }

    func invalidate() {
        for timer in timers { timer.invalidate() }
    }
}
