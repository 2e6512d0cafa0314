extension RunLoop.Source {
    /// The state behind the source's lock. Not copyable, so that reading a part of it does not copy the
    /// whole.
    struct State: ~Copyable {
        // Changed by `Source` and `+Loops`, because a signal, an entry and an invalidation change modes in
        // the same step, with the lock of each mode's loop. The small fields stand together and leave no
        // gaps, since most connections have a source.
        var isValid = true
        /// The thread of the loop that last held the source has ended.
        var threadHasEnded = false
        /// A signal waits to be served.
        var isSignalled = false
        var interest: Interest = []
        /// The number of the last signal, counted over all sources; 0 before the first. By it the modes find
        /// the source among those that are signalled.
        var lastSignal: UInt64 = 0
        var memberships = Memberships()
        var perform: Callback?
        /// Allocated on first use: most sources never need it, and it would be half of their memory.
        private(set) var details: Details?

        /// Whether the source is registered in `loop` under the common name.
        func isCommon(in loop: RunLoop) -> Bool { details?.commonLoops.contains(loop) ?? false }

        /// The details, made if there are none.
        mutating func makeDetails() -> Details {
            if let details { return details }
            let made = Details()
            details = made
            return made
        }
    }

    /// The part of the state that few sources have. A class, so that reading one field does not copy the
    /// others. Guarded by the source's lock, which every method that changes it holds: `Source` and `+Loops`.
    final class Details {
        /// Loops in which the source is registered under the common name, even if it has been removed from
        /// single modes since.
        var commonLoops: [RunLoop] = []
        var error: SystemError?
        var label: String?
        var attachment: (any AnyObject & Sendable)?
        var schedule: ModeCallback?
        var cancel: ModeCallback?
    }
}
