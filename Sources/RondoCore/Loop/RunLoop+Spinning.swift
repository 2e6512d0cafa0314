extension RunLoop {
    /// The longest `spinDuration`, in seconds: a millisecond.
    public static let maximumSpinDuration: TimeInterval = 0.001

    /// Seconds for which the loop, when it has nothing to do, looks for something again and again before it
    /// sleeps; 0, as at first: it sleeps at once.
    ///
    /// What another thread asks of a loop that spins (a block, a signal, a wake-up) is seen without a system
    /// call on either side, in less than a microsecond; what sleeps is woken in five to ten. That takes a
    /// core for itself, so it is for loops that answer one another quickly, on machines with cores to spare.
    /// Some ten to a hundred microseconds make sense; negative values count as 0, larger ones than
    /// `maximumSpinDuration` as that.
    ///
    /// A wait begins with a spin only if the wait before it was no longer than this, so that a loop that
    /// waits for seconds does not spin at all. Descriptors and the main queue are looked at as well, by a
    /// system call each time, and a timer that falls into the spin fires without the delay of waking up.
    /// Observers, `isWaiting` and instruments see no difference: to spin is to wait.
    /// - Note: Any thread may set it; it counts from the next wait on.
    public var spinDuration: TimeInterval {
        get { Double(spinNanoseconds.load(ordering: .relaxed)) / 1e9 }
        set {
            let nanoseconds = LoopClock.nanoseconds(min(newValue, Self.maximumSpinDuration))
            spinNanoseconds.store(max(0, nanoseconds), ordering: .relaxed)
        }
    }

    /// Whether a wait that begins now begins with a spin. Not under a clock of the loop's own, which does not
    /// advance meanwhile.
    var spinsBeforeSleep: Bool {
        spinNanoseconds.load(ordering: .relaxed) > 0 && owner.hasWaitedShortly && owner.timeSource == nil
    }
}
