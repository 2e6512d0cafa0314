extension RunLoop {
    /// The longest `spinDuration`, in seconds: a millisecond.
    public static let maximumSpinDuration: TimeInterval = 0.001

    /// Seconds for which an idle loop looks for work again and again before it sleeps; 0, the initial value,
    /// means that it sleeps at once.
    ///
    /// A request of another thread (a block, a signal, a wake-up) reaches a spinning loop without a system
    /// call on either side, in less than a microsecond; waking a sleeping loop takes five to ten. Spinning
    /// occupies a core, so it is for loops that answer one another quickly, on machines with cores to spare.
    /// Some ten to a hundred microseconds make sense; a negative value counts as 0, a value above
    /// `maximumSpinDuration` as that maximum.
    ///
    /// A wait begins with a spin only if the wait before it was no longer than this, so a loop that waits for
    /// seconds does not spin at all. The spin also looks at descriptors and the main queue, by a system call
    /// each time, and a timer that is due during the spin fires without the delay of waking up. Observers,
    /// `isWaiting` and instruments see no difference: to them, spinning is waiting.
    /// - Note: Any thread may set it; it counts from the next wait on.
    public var spinDuration: TimeInterval {
        get { Double(spinNanoseconds.load(ordering: .relaxed)) / 1e9 }
        set {
            let nanoseconds = LoopClock.nanoseconds(min(newValue, Self.maximumSpinDuration))
            spinNanoseconds.store(max(0, nanoseconds), ordering: .relaxed)
        }
    }

    /// Whether a wait that begins now begins with a spin. Never under a clock of the loop's own, which does
    /// not advance meanwhile.
    var spinsBeforeSleep: Bool {
        spinNanoseconds.load(ordering: .relaxed) > 0 && threadState.hasWaitedShortly
            && threadState.timeSource == nil
    }
}
