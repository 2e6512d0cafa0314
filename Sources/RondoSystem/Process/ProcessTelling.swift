internal import RondoCore

/// Where the end of a process is told: on the loop of the thread that has started it, or where it was scheduled.
struct ProcessTelling: Sendable {
    fileprivate struct Place: Sendable, Equatable {
        let loop: RunLoop
        let mode: RunLoop.Mode

        static func == (one: Place, other: Place) -> Bool {
            one.loop === other.loop && one.mode == other.mode
        }
    }

    /// The default mode of the starting thread.
    private var launching: Place?
    private var scheduled: [Place] = []
    /// In the modes from the start to the end, so that a loop has something to wait for.
    private(set) var source: RunLoop.Source?

    var isScheduled: Bool { !scheduled.isEmpty }

    /// Whether `source` would be served by a run of the default mode of `loop`.
    func isServed(by loop: RunLoop) -> Bool { source.map { loop.contains($0, forMode: .default) } ?? false }

    private var places: [Place] { scheduled.isEmpty ? launching.map { [$0] } ?? [] : scheduled }

    /// The process was started on the thread of `loop`.
    mutating func begin(on loop: RunLoop) { launching = Place(loop: loop, mode: .default) }

    /// - Returns: False: it is there already.
    mutating func schedule(in loop: RunLoop, _ mode: RunLoop.Mode) -> Bool {
        let place = Place(loop: loop, mode: mode)
        guard !scheduled.contains(place) else { return false }
        scheduled.append(place)
        return true
    }

    /// - Returns: False: it is not there.
    mutating func unschedule(from loop: RunLoop, _ mode: RunLoop.Mode) -> Bool {
        let place = Place(loop: loop, mode: mode)
        guard let index = scheduled.firstIndex(of: place) else { return false }
        scheduled.remove(at: index)
        return true
    }

    /// The source, which calls `tell`, and what has to be done with it without a lock.
    struct Change: Sendable {
        let source: RunLoop.Source
        fileprivate let added: [Place]

        func apply() {
            for place in added { place.loop.addUnwatched(source, forMode: place.mode) }
            // The threads of all these loops have ended: the end of the process is not told any more.
            source.releaseUnlessScheduled()
        }

        func signal() { source.signalAndWakeUp() }
    }

    /// Makes the source where there is none, for all places. As long as it is in one, it keeps the process (rule PR-9).
    mutating func listen(for process: Process) -> Change {
        if let source { return Change(source: source, added: places) }
        let link = SourceLink()
        let made = RunLoop.Source(
            cancel: { _, _ in link.source?.releaseUnlessScheduled() },
            perform: { [weak process] in process?.tell() })
        made.label = "end of a process"
        made.attachment = process
        link.source = made
        source = made
        return Change(source: made, added: places)
    }

    /// The source, which is not needed any more.
    mutating func take() -> RunLoop.Source? { source.take() }
}

/// What a source's own callbacks refer to it by.
///
/// `@unchecked Sendable`: a weak reference, set once before the source is anywhere.
final class SourceLink: @unchecked Sendable {
    weak var source: RunLoop.Source?
}

extension RunLoop.Source {
    /// Lets go of the object that the source keeps while it is in some mode: it is in none any more.
    func releaseUnlessScheduled() {
        guard !isScheduled else { return }
        let kept = attachment
        attachment = nil
        // Not released under the lock of the source.
        withExtendedLifetime(kept) {}
    }
}
