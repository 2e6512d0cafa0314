internal import RondoCore
internal import RondoMutex

/// The modes that hold a socket port, and by that its descriptor sources.
///
/// A source enters or leaves a mode with no lock held, since an instrument of the program may be told of it. So each
/// step looks again at what it was to bring about, and does it over if another thread has decided otherwise meanwhile.
final class PortSchedule: Sendable {
    private struct Place: Equatable {
        let loop: RunLoop
        let mode: RunLoop.Mode
    }

    private let places = Mutex<[Place]>([])

    /// The port has entered a mode, and its `sources` are to. They are asked for when the mode is known: one that is new
    /// meanwhile is settled twice, but not missed.
    func add(_ loop: RunLoop, _ mode: RunLoop.Mode, sources: () -> [RunLoop.Source]) {
        let place = Place(loop: loop, mode: mode)
        places.withLock { if !$0.contains(place) { $0.append(place) } }
        for source in sources() { settle(source, in: place) }
    }

    func remove(_ loop: RunLoop, _ mode: RunLoop.Mode, sources: () -> [RunLoop.Source]) {
        let place = Place(loop: loop, mode: mode)
        places.withLock { $0.removeAll { $0 == place } }
        for source in sources() { settle(source, in: place) }
    }

    /// Has a new source be wherever the port is.
    func settle(_ source: RunLoop.Source) {
        for place in places.withLock({ $0 }) { settle(source, in: place) }
    }

    private func settle(_ source: RunLoop.Source, in place: Place) {
        var isWanted: Bool
        repeat {
            isWanted = holds(place)
            if isWanted {
                place.loop.addUnwatched(source, forMode: place.mode)
            } else {
                place.loop.remove(source, forMode: place.mode)
            }
        } while holds(place) != isWanted
    }

    private func holds(_ place: Place) -> Bool { places.withLock { $0.contains(place) } }

    /// Calls `body` after so many seconds in one of the modes, or more of them.
    func perform(after seconds: TimeInterval, _ body: @escaping @Sendable () -> Void) {
        let places = places.withLock { $0 }
        // A timer has one loop.
        for loop in Set(places.map(\.loop)) {
            let timer = Timer(timeInterval: seconds, repeats: false) { _ in body() }
            for place in places where place.loop == loop { loop.add(timer, forMode: place.mode) }
        }
    }
}

extension RunLoop.Source {
    /// Watches for reading or for nothing, as `isWatched` says. It is asked again afterwards, as in `PortSchedule`.
    func settleInterest(_ isWatched: () -> Bool) {
        var isWanted: Bool
        repeat {
            isWanted = isWatched()
            interest = isWanted ? .read : []
        } while isWatched() != isWanted
    }
}
