internal import RondoCore
internal import RondoMutex

/// The modes that hold a socket port, and therefore its descriptor sources.
///
/// A source is added to or removed from a mode with no lock held, because an instrument of the program may be
/// called. Each step therefore checks its result and repeats if another thread has changed the modes
/// meanwhile.
final class PortSchedule: Sendable {
    private struct Place: Equatable {
        let loop: RunLoop
        let mode: RunLoop.Mode
    }

    private let places = Mutex<[Place]>([])

    /// Records that the port is in a mode, and adds its `sources` there. `sources` is called after the mode
    /// is recorded: a source made meanwhile may be added twice, but is never missed.
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

    /// Adds a new source to all modes of the port.
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

    /// Calls `body` after `seconds` in one of the modes, or in several.
    func perform(after seconds: TimeInterval, _ body: @escaping @Sendable () -> Void) {
        let places = places.withLock { $0 }
        // A timer belongs to one loop.
        for loop in Set(places.map(\.loop)) {
            let timer = Timer(timeInterval: seconds, repeats: false) { _ in body() }
            for place in places where place.loop == loop { loop.add(timer, forMode: place.mode) }
        }
    }
}

extension RunLoop.Source {
    /// Watches for reading if `isWatched()` is true, otherwise for nothing; repeats if the answer has changed
    /// meanwhile, as in `PortSchedule`.
    func settleInterest(_ isWatched: () -> Bool) {
        var isWanted: Bool
        repeat {
            isWanted = isWatched()
            interest = isWanted ? .read : []
        } while isWatched() != isWanted
    }
}
