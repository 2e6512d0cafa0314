internal import RondoCore

/// The loop and modes on which the end of a process is reported: those of the starting thread, or those that
/// the program has scheduled it in.
struct ProcessSchedule: Sendable {
    /// The default mode of the starting thread.
    private var launching: LoopMode?
    private var scheduled: [LoopMode] = []
    /// In the modes from the start to the end, so that a run of the loop does not return at once.
    private(set) var source: RunLoop.Source?

    /// True if the program has scheduled the process on a loop whose thread lives.
    var isScheduled: Bool { scheduled.contains { $0.loop.isAlive } }

    /// True if a run of the default mode of `loop` would serve `source`.
    func isServed(by loop: RunLoop) -> Bool { source.map { loop.contains($0, forMode: .default) } ?? false }

    private var modes: [LoopMode] { scheduled.isEmpty ? launching.map { [$0] } ?? [] : scheduled }

    /// Notes that the process was started on the thread of `loop`.
    mutating func begin(on loop: RunLoop) { launching = LoopMode(loop: loop, mode: .default) }

    /// - Returns: False if the process is scheduled there already.
    mutating func schedule(in loop: RunLoop, _ mode: RunLoop.Mode) -> Bool {
        let new = LoopMode(loop: loop, mode: mode)
        guard !scheduled.contains(new) else { return false }
        scheduled.append(new)
        return true
    }

    /// - Returns: False if the process is not scheduled there.
    mutating func unschedule(from loop: RunLoop, _ mode: RunLoop.Mode) -> Bool {
        let old = LoopMode(loop: loop, mode: mode)
        guard let index = scheduled.firstIndex(of: old) else { return false }
        scheduled.remove(at: index)
        return true
    }

    /// The source, which calls `tell`, and the changes to make with it after the lock.
    struct Change: Sendable {
        let source: RunLoop.Source
        fileprivate let added: [LoopMode]

        func apply() {
            for entry in added { entry.loop.addUnwatched(source, forMode: entry.mode) }
            // The threads of all these loops have ended, so that the end cannot be reported.
            source.releaseUnlessScheduled()
        }

        func signal() { source.signalAndWakeUp() }
    }

    /// Makes the source, if there is none, for all modes. As long as the source is in a mode, it retains the
    /// process (rule PR-9).
    mutating func listen(for process: Process) -> Change {
        if let source { return Change(source: source, added: modes) }
        let link = SourceLink()
        let made = RunLoop.Source(
            cancel: { [weak process] _, _ in
                process?.sourceHasLeft()
                link.source?.releaseUnlessScheduled()
            },
            perform: { [weak process] in process?.tell() })
        made.label = "end of a process"
        made.attachment = process
        link.source = made
        source = made
        return Change(source: made, added: modes)
    }

    /// Removes the source, which is not needed any more.
    mutating func take() -> RunLoop.Source? { source.take() }
}

/// The reference of a source's callbacks to the source.
///
/// `@unchecked Sendable`: a weak reference that is set once, before the source is in any loop.
final class SourceLink: @unchecked Sendable {
    fileprivate(set) weak var source: RunLoop.Source?
}

extension RunLoop.Source {
    /// Releases the object that the source retains while it is in a mode, if it is in none any more.
    func releaseUnlessScheduled() {
        // Released after the lock of the source.
        withExtendedLifetime(takeAttachmentUnlessScheduled()) {}
    }
}
