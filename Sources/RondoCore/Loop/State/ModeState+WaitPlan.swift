extension ModeState {
    /// What a pass learns before it asks the kernel for the mode's events: whether it may wait there, and until when.
    struct WaitPlan {
        let nearestTimer: LoopInstant?
        let wasWoken: Bool
        let isCommon: Bool
        /// Whether `Attention` now reports that the loop waits. The caller then has to wait, and to call
        /// `endWaiting()` afterwards.
        let waits: Bool
        let changes: Changes?
    }
}
