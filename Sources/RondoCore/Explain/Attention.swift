internal import RondoMutex

internal import struct Synchronization.Atomic

/// How other threads get the attention of a run loop's thread: a word without a lock.
///
/// Whoever wants something leaves it behind a lock first and asks for attention then; the loop's thread forgets that
/// it was asked first and looks then. Each side changes the word in one step that orders what it did before, so
/// that one of the two always sees the other.
final class Attention: Sendable {
    private struct Bits: OptionSet {
        let rawValue: UInt32

        /// Somebody wanted attention since the last look: the next wait does not sleep.
        static let asked = Bits(rawValue: 1)
        /// The loop's thread is about to sleep or sleeps, and whoever wants its attention must write `WakeUp`.
        static let sleeps = Bits(rawValue: 2)
        /// The loop's thread waits and looks at this word meanwhile.
        static let spins = Bits(rawValue: 4)
        /// A foreign loop waits for this one, also while it is not running.
        static let isEmbedded = Bits(rawValue: 8)
        /// Somebody will look whether the loop is run.
        static let isWatched = Bits(rawValue: 16)
        /// The thread has ended.
        static let hasEnded = Bits(rawValue: 32)

        static let waits: Bits = [.sleeps, .spins]
        static let isServed: Bits = [.isEmbedded, .isWatched, .hasEnded]
    }

    private let word = Atomic<UInt32>(0)
    /// Activations are under way. Not among the bits: to change one of those takes as long as a lock, and an empty
    /// pass begins and ends one.
    private let runs = Atomic(false)

    private var bits: Bits { Bits(rawValue: word.load(ordering: .acquiring)) }

    /// - Parameter change: The new value; nil leaves things as they are.
    /// - Returns: What was found.
    @inline(__always)
    @discardableResult
    private func update(_ change: (Bits) -> Bits?) -> Bits {
        var known = word.load(ordering: .relaxed)
        while let desired = change(Bits(rawValue: known)) {
            let (exchanged, original) = word.weakCompareExchange(
                expected: known, desired: desired.rawValue, ordering: .acquiringAndReleasing)
            if exchanged { break }
            known = original
        }
        return Bits(rawValue: known)
    }

    /// What ends the sleep of the loop's thread; nil where it has none.
    private let wakeUp = Mutex<WakeUp?>(nil)

    // MARK: Any thread

    /// Asks for attention, as `ask()` does.
    ///
    /// - Returns: What the caller has to write, with no lock held; nil where the loop is awake.
    func askForWakeUp() -> WakeUp? { ask() ? wakeUp.withLock { $0 } : nil }

    /// What the caller has to write whom `ask()` has told so.
    var wakeUpToWrite: WakeUp? { wakeUp.withLock { $0 } }

    /// Asks for attention. A loop that is not running forgets it when it runs (rule RL-50).
    ///
    /// - Returns: Whether the caller has to write `WakeUp`, which the first that asks a sleeping loop does.
    func ask() -> Bool {
        let found = update { $0.union(.asked).subtracting(.waits) }
        return found.contains(.sleeps) || found.contains(.isEmbedded) && !runs.load(ordering: .acquiring)
    }

    /// Whether the loop's thread waits just now.
    var isWaiting: Bool { !bits.isDisjoint(with: .waits) }

    /// Nobody runs the loop, and nobody will look whether somebody does; see `RunLoop.warnUnlessRun()`.
    var isUnserved: Bool { bits.isDisjoint(with: .isServed) && !runs.load(ordering: .relaxed) }

    /// Whoever looks whether an unserved loop is run takes it on.
    ///
    /// - Returns: False where somebody does already, or it is served.
    func beginWatching() -> Bool {
        guard !runs.load(ordering: .relaxed) else { return false }
        return update { $0.isDisjoint(with: .isServed) ? $0.union(.isWatched) : nil }
            .isDisjoint(with: .isServed)
    }

    func endWatching() { update { $0.subtracting(.isWatched) } }

    // MARK: Loop's thread only

    func setWakeUp(_ new: WakeUp?) {
        let old = wakeUp.withLock { wakeUp in
            defer { wakeUp = new }
            return wakeUp
        }
        withExtendedLifetime(old) {}
    }

    var wasAsked: Bool { bits.contains(.asked) }

    /// Whether somebody has asked since the last look. It is forgotten by that.
    func takeRequest() -> Bool {
        guard wasAsked else { return false }
        return update { $0.subtracting(.asked) }.contains(.asked)
    }

    /// Whether somebody has asked, who need not have seen that the loop has ended to run: whoever asks from now on
    /// does. (The word is written to order the two.)
    var wasAskedWhileEnding: Bool { update { $0 }.contains(.asked) }

    /// What was asked for is asked for once more.
    func askAgain() { update { $0.union(.asked) } }

    /// - Parameter spins: Whether the thread will look at `isSpinning` before it sleeps.
    /// - Returns: False where somebody has asked.
    func beginWaiting(spins: Bool) -> Bool {
        !update { $0.contains(.asked) ? nil : $0.union(spins ? .spins : .sleeps) }.contains(.asked)
    }

    /// Whether a thread that spins is to go on waiting: nobody has asked.
    var isSpinning: Bool { bits.contains(.spins) }

    /// From spinning to sleep.
    ///
    /// - Returns: False where somebody has asked.
    func fallAsleep() -> Bool {
        update { $0.contains(.spins) ? $0.subtracting(.spins).union(.sleeps) : nil }.contains(.spins)
    }

    func endWaiting() { update { $0.isDisjoint(with: .waits) ? nil : $0.subtracting(.waits) } }

    /// The outermost activation begins: what was asked of a loop that was not running is forgotten (rule RL-50).
    func beginRunning() {
        forgetUnlessRunning()
        runs.store(true, ordering: .releasing)
    }

    func forgetUnlessRunning() {
        if !runs.load(ordering: .relaxed) { _ = takeRequest() }
    }

    func endRunning() { runs.store(false, ordering: .releasing) }

    var isEmbedded: Bool { bits.contains(.isEmbedded) }

    func setEmbedded(_ isEmbedded: Bool) {
        update { isEmbedded ? $0.union(.isEmbedded) : $0.subtracting(.isEmbedded) }
    }

    /// The thread is over.
    func end() {
        runs.store(false, ordering: .releasing)
        update { $0.subtracting(.waits).union(.hasEnded) }
    }
}
