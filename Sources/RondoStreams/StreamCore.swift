// What every stream shares: its state, where it is scheduled, and how its delegate is told.
//
// A stream has one signalled source of its own, which is in the loops and modes that the client has scheduled
// it in and nowhere else. Whatever makes a stream ready (a socket in some loop's pass, the other end of a
// bound pair on another thread, a read) only changes the state and signals that source. The delegate is
// called from it alone, and so in the right mode, on the right thread and never inside a call of the
// client's, whatever the bytes came from. A signal is taken by one loop (rule ST-18).
//
// Threads: the state is behind the Mutex. Delegates are called with it let go, and what was owed is asked
// again after every call, because a handler may close, unschedule or release its stream (rule ST-19).

internal import RondoCore
internal import Synchronization

final class StreamCore: Sendable {
    struct Place: Equatable, Sendable {
        let loop: RunLoop
        let mode: RunLoop.Mode
    }

    /// The way from the source to the stream.
    ///
    /// `@unchecked Sendable`: only followed in the source's turn, which `deliver` lets one thread at a time
    /// into; by rule ST-20 that is the thread which uses the stream.
    struct Way: @unchecked Sendable {
        weak var stream: Foundation.Stream?
    }

    private struct Guarded {
        var state: StreamState
        var places: [Place] = []
        var source: RunLoop.Source?
        /// The thread that calls the delegate just now, and how deep, because of nested runs.
        var deliverer: (thread: pthread_t, depth: Int)?
    }

    private let guarded: Mutex<Guarded>

    init(_ direction: StreamState.Direction) {
        guarded = Mutex(Guarded(state: StreamState(direction)))
    }

    // MARK: - State

    /// Changes the state and sees to it that what it owes then is delivered.
    @discardableResult
    func update<R>(_ body: (inout StreamState) -> R) -> R {
        let (result, source) = guarded.withLock { guarded in
            let result = body(&guarded.state)
            return (result, guarded.state.owed.isEmpty ? nil : guarded.source)
        }
        source?.signalAndWakeUp()
        return result
    }

    func opened(isReady: Bool) {
        let source = guarded.withLock { guarded in
            guarded.state.opened(isScheduled: !guarded.places.isEmpty, isReady: isReady)
            return guarded.state.owed.isEmpty ? nil : guarded.source
        }
        source?.signalAndWakeUp()
    }

    var state: StreamState { guarded.withLock { $0.state } }

    /// Where the client has scheduled the stream.
    var schedule: [Place] { guarded.withLock { $0.places } }

    // MARK: - Schedule

    /// False: it was there already, or the stream is closed.
    func schedule(in loop: RunLoop, forMode mode: RunLoop.Mode, _ way: Way) -> Bool {
        let place = Place(loop: loop, mode: mode)
        let source = guarded.withLock { guarded -> RunLoop.Source? in
            guard !guarded.places.contains(place), guarded.state.status != .closed else { return nil }
            guarded.places.append(place)
            let source = guarded.source ?? RunLoop.Source { [weak self] in self?.turn(way) }
            guarded.source = source
            return source
        }
        guard let source else { return false }
        loop.add(source, forMode: mode)
        if !state.owed.isEmpty { source.signalAndWakeUp() }
        return true
    }

    /// False: it was not there.
    func remove(from loop: RunLoop, forMode mode: RunLoop.Mode) -> Bool {
        let place = Place(loop: loop, mode: mode)
        let source = guarded.withLock { guarded -> RunLoop.Source? in
            guard let index = guarded.places.firstIndex(of: place) else { return nil }
            guarded.places.remove(at: index)
            return guarded.source
        }
        guard let source else { return false }
        loop.remove(source, forMode: mode)
        return true
    }

    /// The client closes: the stream leaves all loops and owes nothing any more (rule ST-5).
    ///
    /// - Returns: Where it was scheduled, or nil if there was nothing to close.
    func close() -> [Place]? {
        let (places, source) = guarded.withLock { guarded -> ([Place]?, RunLoop.Source?) in
            guard guarded.state.close() else { return (nil, nil) }
            defer {
                guarded.places = []
                guarded.source = nil
            }
            return (guarded.places, guarded.source)
        }
        source?.invalidate()
        return places
    }

    /// The stream is gone.
    func invalidate() {
        let source = guarded.withLock { guarded in
            defer { guarded.source = nil }
            return guarded.source
        }
        source?.invalidate()
    }

    // MARK: - Delivery

    private func turn(_ way: Way) {
        // Kept for the turn: the handler may release it.
        guard let stream = way.stream, beginDelivery() else { return }
        defer { endDelivery() }
        let batch = state.owed
        let places = guarded.withLock { $0.places }
        // Rule ST-11: in ascending order of their bits.
        for event in [
            .openCompleted, .hasBytesAvailable, .hasSpaceAvailable, .errorOccurred, .endEncountered,
        ]
            as [Foundation.Stream.Event] where batch.contains(event)
        {
            let isDue = guarded.withLock { guarded in
                // A handler that has changed the schedule is followed before the next event, not after it.
                guarded.places == places && guarded.state.take(event)
            }
            if isDue { stream.delegate?.stream(stream, handle: event) }
        }
    }

    /// False: another thread is calling the delegate; it looks again when it is done.
    private func beginDelivery() -> Bool {
        let thread = pthread_self()
        return guarded.withLock { guarded in
            let deliverer = guarded.deliverer ?? (thread, 0)
            guard pthread_equal(deliverer.thread, thread) != 0 else { return false }
            guarded.deliverer = (thread, deliverer.depth + 1)
            return true
        }
    }

    private func endDelivery() {
        let source = guarded.withLock { guarded -> RunLoop.Source? in
            let depth = (guarded.deliverer?.depth ?? 1) - 1
            guarded.deliverer = depth == 0 ? nil : guarded.deliverer.map { ($0.thread, depth) }
            return guarded.state.owed.isEmpty ? nil : guarded.source
        }
        source?.signalAndWakeUp()
    }
}
