internal import RondoMutex

internal import struct Synchronization.Atomic

/// How other threads get the attention of a run loop's thread: an atomic word, without a lock.
///
/// A thread that wants something of the loop stores it behind a lock first, and then asks for attention. The
/// loop's thread clears the request first, and then looks behind the locks. Each side changes the word in one
/// step that orders what it did before, so that one of the two always sees the other.
final class Attention: Sendable {
    private struct Bits: OptionSet {
        let rawValue: UInt32

        /// Attention was asked for since the last look: the next wait does not sleep.
        static let asked = Bits(rawValue: 1)
        /// The loop's thread sleeps or is about to: a thread that asks for attention must write `WakeUp`.
        static let sleeps = Bits(rawValue: 2)
        /// The loop's thread waits and looks at this word meanwhile.
        static let spins = Bits(rawValue: 4)
        /// A foreign loop waits for this one, also while it is not running.
        static let isEmbedded = Bits(rawValue: 8)
        /// `UnservedWatch` will look whether the loop has been run.
        static let isWatched = Bits(rawValue: 16)
        /// The thread has ended.
        static let hasEnded = Bits(rawValue: 32)

        static let waits: Bits = [.sleeps, .spins]
        static let isServed: Bits = [.isEmbedded, .isWatched, .hasEnded]
    }

    private let word = Atomic<UInt32>(0)
    /// Activations are under way. It is not one of the bits, since changing a bit takes as long as a lock,
    /// and each activation begins and ends.
    private let runs = Atomic(false)

    private var bits: Bits { Bits(rawValue: word.load(ordering: .acquiring)) }

    /// - Parameter change: The new value; nil leaves things as they are.
    /// - Returns: What was found.
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

    /// What a caller has to write if `ask()` has returned true.
    var wakeUpToWrite: WakeUp? { wakeUp.withLock { $0 } }

    /// Asks for attention. A loop that is not running forgets the request when it runs (rule RL-50).
    ///
    /// - Returns: Whether the caller has to write `WakeUp`: the first thread that asks a sleeping loop has
    ///   to.
    func ask() -> Bool {
        let found = update { $0.union(.asked).subtracting(.waits) }
        return found.contains(.sleeps) || found.contains(.isEmbedded) && !runs.load(ordering: .acquiring)
    }

    /// Whether the loop's thread waits just now.
    var isWaiting: Bool { !bits.isDisjoint(with: .waits) }

    /// The loop does not run, and is not watched for that; see `RunLoop.warnUnlessRun()`.
    var isUnserved: Bool { bits.isDisjoint(with: .isServed) && !runs.load(ordering: .relaxed) }

    /// Marks the loop as watched.
    ///
    /// - Returns: False where it is watched already, or served.
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

    /// Clears the request for attention.
    ///
    /// - Returns: Whether there was one.
    func takeRequest() -> Bool {
        guard wasAsked else { return false }
        return update { $0.subtracting(.asked) }.contains(.asked)
    }

    /// Whether attention was asked for by a thread that may not have seen that the loop stopped running. A
    /// thread that asks from now on sees it: the word is written to order the two.
    var wasAskedWhileEnding: Bool { update { $0 }.contains(.asked) }

    /// Renews a request that was taken.
    func askAgain() { update { $0.union(.asked) } }

    /// - Parameter spins: Whether the thread will look at `isSpinning` before it sleeps.
    /// - Returns: False where attention was asked for.
    func beginWaiting(spins: Bool) -> Bool {
        !update { $0.contains(.asked) ? nil : $0.union(spins ? .spins : .sleeps) }.contains(.asked)
    }

    /// Whether a thread that spins is to go on waiting: attention was not asked for.
    var isSpinning: Bool { bits.contains(.spins) }

    /// From spinning to sleep.
    ///
    /// - Returns: False where attention was asked for.
    func fallAsleep() -> Bool {
        update { $0.contains(.spins) ? $0.subtracting(.spins).union(.sleeps) : nil }.contains(.spins)
    }

    func endWaiting() { update { $0.isDisjoint(with: .waits) ? nil : $0.subtracting(.waits) } }

    /// The outermost activation begins: a request that was made while the loop was not running is forgotten
    /// (rule RL-50).
    func beginRunning() {
        forgetUnlessRunning()
        runs.store(true, ordering: .releasing)
    }

    /// Clears a request that was made while the loop was not running.
    func forgetUnlessRunning() {
        if !runs.load(ordering: .relaxed) { _ = takeRequest() }
    }

    func endRunning() { runs.store(false, ordering: .releasing) }

    var isEmbedded: Bool { bits.contains(.isEmbedded) }

    func setEmbedded(_ isEmbedded: Bool) {
        update { isEmbedded ? $0.union(.isEmbedded) : $0.subtracting(.isEmbedded) }
    }

    /// To be called when the thread ends.
    func end() {
        runs.store(false, ordering: .releasing)
        update { $0.subtracting(.waits).union(.hasEnded) }
    }
}
