internal import RondoMutex

internal import struct Synchronization.Atomic

/// The request for the attention of a run loop's thread by other threads: an atomic word, without a lock.
///
/// A thread that wants the loop to do something first stores that behind a lock, and then asks for attention.
/// The loop's thread first clears the request, and then looks behind the locks. Each side changes the word in
/// one step that orders its earlier actions, so that one of the two always sees the other.
final class Attention: Sendable {
    private struct Bits: OptionSet {
        let rawValue: UInt32

        /// Attention was asked for since the last look, so the next wait must not sleep.
        static let asked = Bits(rawValue: 1)
        /// The loop's thread sleeps or is about to: a thread that asks for attention must call
        /// `WakeUp.wake()`.
        static let sleeps = Bits(rawValue: 2)
        /// The loop's thread waits by watching this word.
        static let spins = Bits(rawValue: 4)
        /// A foreign loop waits on behalf of this one, also while this loop is not running.
        static let isEmbedded = Bits(rawValue: 8)
        /// `UnservedWatch` will check whether the loop has been run.
        static let isWatched = Bits(rawValue: 16)
        /// The thread has ended.
        static let hasEnded = Bits(rawValue: 32)

        static let waits: Bits = [.sleeps, .spins]
        static let isServed: Bits = [.isEmbedded, .isWatched, .hasEnded]
    }

    private let word = Atomic<UInt32>(0)
    /// Whether any activation is on the stack. Not one of the bits, since changing a bit takes as long as a
    /// lock, and this changes at the beginning and end of each outermost activation.
    private let runs = Atomic(false)

    private var bits: Bits { Bits(rawValue: word.load(ordering: .acquiring)) }

    /// - Parameter change: The new value; nil leaves the word unchanged.
    /// - Returns: The value before the change.
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

    /// The object that ends the sleep of the loop's thread; nil if the loop has none.
    private let wakeUp = Mutex<WakeUp?>(nil)

    // MARK: Any thread

    /// Asks for attention, like `ask()`.
    ///
    /// - Returns: The object whose `wake()` the caller has to call, with no lock held; nil if the loop is
    ///   awake.
    func askForWakeUp() -> WakeUp? { ask() ? wakeUp.withLock { $0 } : nil }

    /// The object whose `wake()` a caller has to call if `ask()` has returned true.
    var wakeUpToWrite: WakeUp? { wakeUp.withLock { $0 } }

    /// Asks for attention. A loop that is not running forgets the request when it is run (rule RL-50).
    ///
    /// - Returns: Whether the caller has to wake the loop: the first thread that asks a sleeping loop must.
    func ask() -> Bool {
        let found = update { $0.union(.asked).subtracting(.waits) }
        return found.contains(.sleeps) || found.contains(.isEmbedded) && !runs.load(ordering: .acquiring)
    }

    /// Whether the loop's thread is waiting.
    var isWaiting: Bool { !bits.isDisjoint(with: .waits) }

    /// Whether the loop is not running, and not watched for that; see `RunLoop.warnUnlessRun()`.
    var isUnserved: Bool { bits.isDisjoint(with: .isServed) && !runs.load(ordering: .relaxed) }

    /// Marks the loop as watched.
    ///
    /// - Returns: False if it is already watched, or served.
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

    /// True if a thread asked before it could see that the loop had stopped. The write makes every later
    /// request see that.
    var wasAskedWhileEnding: Bool { update { $0 }.contains(.asked) }

    /// Renews a request that was taken.
    func askAgain() { update { $0.union(.asked) } }

    /// - Parameter spins: Whether the thread will watch `isSpinning` before it sleeps.
    /// - Returns: False if attention was asked for.
    func beginWaiting(spins: Bool) -> Bool {
        !update { $0.contains(.asked) ? nil : $0.union(spins ? .spins : .sleeps) }.contains(.asked)
    }

    /// Whether a spinning thread has to go on waiting: no attention was asked for.
    var isSpinning: Bool { bits.contains(.spins) }

    /// Changes from spinning to sleeping.
    ///
    /// - Returns: False if attention was asked for.
    func fallAsleep() -> Bool {
        update { $0.contains(.spins) ? $0.subtracting(.spins).union(.sleeps) : nil }.contains(.spins)
    }

    func endWaiting() { update { $0.isDisjoint(with: .waits) ? nil : $0.subtracting(.waits) } }

    /// Called when the outermost activation begins: a request made while the loop was not running is
    /// forgotten (rule RL-50).
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
