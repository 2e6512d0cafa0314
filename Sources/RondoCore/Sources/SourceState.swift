extension RunLoop.Source {
    /// The state behind the source's lock. Not copyable, so that reading a part of it does not copy the
    /// whole.
    struct State: ~Copyable {
        // The small fields are together and leave no gaps, since most connections have a source.
        var isValid = true
        /// The thread of the loop that held the source last has ended.
        var threadHasEnded = false
        /// The source has left its only mode, and the loop removes it when it next looks, unless it is
        /// back by then: see `ModeState.leaving`.
        var isLeaving = false
        /// The number of the signal, in order of all signals; nil while the source is not signalled.
        var signal: UInt64?
        var interest: Interest = []
        var memberships = Memberships()
        var perform: Callback?
        /// Allocated on first use: most sources never need it, and it would be half of their memory.
        var details: Details?

        /// Whether the source is registered in `loop` under the common name.
        func isCommon(in loop: RunLoop) -> Bool { details?.commonLoops.contains(loop) ?? false }

        /// The modes that hold the source, without one that it is leaving.
        var places: Memberships { isLeaving ? Memberships() : memberships }

        /// Whether the removal may wait: there is no cancel callback to be made, and no other mode holds
        /// the source.
        func mayLeaveLater(_ membership: Membership) -> Bool {
            memberships.isOnly(membership)
                && (details.map { $0.cancel == nil && $0.commonLoops.isEmpty } ?? true)
        }

        /// The details, made where there are none.
        mutating func makeDetails() -> Details {
            if let details { return details }
            let made = Details()
            details = made
            return made
        }
    }

    /// The part of the state that few sources have. A class, so that reading a field copies no other.
    /// Guarded by the lock of the source, which all hold that change it: `Source` and `+Loops`.
    final class Details {
        /// Loops where it is registered under the common name, whatever modes it has been taken out
        /// of since.
        var commonLoops: [RunLoop] = []
        var error: SystemError?
        var label: String?
        var attachment: (any AnyObject & Sendable)?
        var schedule: ModeCallback?
        var cancel: ModeCallback?
    }
}
