extension RunLoop {
    /// Calls `body` with `target` once, at the start of this loop's next pass in one of `modes`: closures of
    /// a smaller `order` first, those of equal order in the order of the calls (rule PL-19).
    ///
    /// Like a timer, the closure keeps the modes from being empty and ends no run. The counterpart of Apple's
    /// `perform(_:target:argument:order:modes:)`.
    /// - Parameters:
    ///   - modes: `.common` stands for every common mode. With an empty array nothing happens.
    ///   - target: Kept until the call; `cancelPerform(target:)` finds the closure by it.
    /// - Note: On the loop's own thread only; on another thread use `perform(inModes:block:)`.
    @available(*, noasync, message: "A task has no thread of its own; use perform(inModes:block:).")
    public func perform<Target: AnyObject>(
        order: Int, modes: [Mode], target: Target, _ body: @escaping (Target) -> Void
    ) {
        requireOwnThread("perform(order:modes:target:)")
        guard !modes.isEmpty, !threadState.isEnding else { return }
        let keeper = Source {}
        keeper.label = "perform"
        let perform = OrderedPerform(
            order: order, pass: threadState.passes, modes: modes.map(\.rawValue), target: target,
            whenOver: { keeper.invalidate() }, call: { body(target) })
        state.withLock { state in
            state.orderedPerforms.append(perform)
            hints.notePending(state.pendingWork)
        }
        for mode in modes { add(keeper, forMode: mode) }
        // The current pass must not sleep before the next one begins.
        _ = attention.ask()
    }

    /// Cancels the closures of `target` that were given to `perform(order:modes:target:_:)` and that this
    /// loop has not called yet. On the loop's own thread only.
    @available(*, noasync, message: "A task has no thread of its own.")
    public func cancelPerform(target: AnyObject) {
        requireOwnThread("cancelPerform(target:)")
        let found = state.withLock { state in
            let found = state.orderedPerforms.removeAll { $0.isFor(target) }
            hints.notePending(state.pendingWork)
            return found
        }
        for perform in found + threadState.performing where perform.isFor(target) { _ = perform.take() }
    }
}
