internal import RondoMutex

/// A closure that a loop calls at the start of its next pass; see `RunLoop.perform(order:modes:target:_:)`.
final class OrderedPerform: Sendable {
    /// `@unchecked Sendable`: made and called on the loop's thread; the end of the thread releases it.
    private struct Content: @unchecked Sendable {
        let target: AnyObject
        let call: () -> Void
    }

    let order: Int
    /// The pass of its loop in which it was made.
    let pass: UInt
    private let modes: [RunLoop.Mode]
    private let content: Mutex<Content?>
    /// Keeps its modes from being empty.
    private let keeper = RunLoop.Source {}

    init(
        order: Int, pass: UInt, modes: [RunLoop.Mode], target: AnyObject, call: @escaping () -> Void
    ) {
        self.order = order
        self.pass = pass
        self.modes = modes
        content = Mutex(Content(target: target, call: call))
        keeper.label = "perform"
    }

    func isFor(_ mode: ModeState) -> Bool {
        modes.contains { $0 == mode.name || mode.isCommon && $0 == .common }
    }

    func isFor(_ target: AnyObject) -> Bool { content.withLock { $0?.target === target } }

    func enter(_ loop: RunLoop) {
        for mode in modes { loop.add(keeper, forMode: mode) }
    }

    func perform(in mode: Int, of loop: RunLoop) {
        keeper.invalidate()
        guard let content = content.withLock({ $0.take() }) else { return }
        Trace.callOut(loop, mode, .block, label: "perform", of: content.target) { content.call() }
    }

    func cancel() {
        keeper.invalidate()
        withExtendedLifetime(content.withLock { $0.take() }) {}
    }
}

extension RunLoop {
    /// Calls `body` with `target` once, at the start of this loop's next pass in one of `modes`: those of a
    /// smaller `order` first, equal ones in the order of the calls (rule PL-19).
    ///
    /// Like a timer it keeps the modes from being empty and ends no run. The counterpart of Apple's
    /// `perform(_:target:argument:order:modes:)`.
    /// - Parameters:
    ///   - modes: `.common` stands for every common mode. None: nothing happens.
    ///   - target: Kept until then; `cancelPerform(target:)` finds the closure by it.
    /// - Note: On the loop's own thread only; from another one use `perform(inModes:block:)`.
    @available(*, noasync, message: "A task has no thread of its own; use perform(inModes:block:).")
    public func perform<Target: AnyObject>(
        order: Int, modes: [Mode], target: Target, _ body: @escaping (Target) -> Void
    ) {
        requireOwnThread("perform(order:modes:target:)")
        guard !modes.isEmpty, !owner.isEnding else { return }
        let perform = OrderedPerform(order: order, pass: owner.passes, modes: modes, target: target) {
            body(target)
        }
        state.withLock { state in
            state.orderedPerforms.append(perform)
            notePending(state)
        }
        perform.enter(self)
        // The pass that is under way must not sleep before the next one.
        _ = attention.ask()
    }

    /// Takes back the closures that `perform(order:modes:target:_:)` was given for `target` and this loop has
    /// not called yet. On the loop's own thread only.
    @available(*, noasync, message: "A task has no thread of its own.")
    public func cancelPerform(target: AnyObject) {
        requireOwnThread("cancelPerform(target:)")
        let found = state.withLock { state in
            let found = state.orderedPerforms.filter { $0.isFor(target) }
            state.orderedPerforms.removeAll { perform in found.contains { $0 === perform } }
            notePending(state)
            return found
        }
        for perform in found + owner.performing where perform.isFor(target) { perform.cancel() }
    }
}

extension Pass {
    /// Calls the closures for the start of a pass that were made before this one.
    ///
    /// - Returns: Whether there was any.
    @inline(never)
    func performOrdered() -> Bool {
        let pass = loop.owner.passes
        let due = loop.state.withLock { [mode, loop] state in
            let due = state.orderedPerforms.filter { $0.pass != pass && $0.isFor(state.modes[mode]) }
            state.orderedPerforms.removeAll { perform in due.contains { $0 === perform } }
            loop.notePending(state)
            return due
        }
        guard !due.isEmpty else { return false }
        let outer = loop.owner.performing
        loop.owner.performing = outer + due
        for perform in due.stablySorted(by: \.order) { perform.perform(in: mode, of: loop) }
        loop.owner.performing = outer
        return true
    }
}

extension [OrderedPerform] {
    /// (The library's sort is stable, which it does not promise.)
    fileprivate func stablySorted(by order: (OrderedPerform) -> Int) -> [OrderedPerform] {
        enumerated().sorted { (order($0.element), $0.offset) < (order($1.element), $1.offset) }.map(\.element)
    }
}
