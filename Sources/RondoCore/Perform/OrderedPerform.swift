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
    /// The names of its modes.
    let modes: [String]
    private let content: Mutex<Content?>
    /// Called when it ends: what has kept its modes from being empty leaves them.
    private let whenOver: @Sendable () -> Void

    init(
        order: Int, pass: UInt, modes: [String], target: AnyObject, whenOver: @escaping @Sendable () -> Void,
        call: @escaping () -> Void
    ) {
        self.order = order
        self.pass = pass
        self.modes = modes
        self.whenOver = whenOver
        content = Mutex(Content(target: target, call: call))
    }

    func isFor(_ target: AnyObject) -> Bool { content.withLock { $0?.target === target } }

    /// Ends it.
    ///
    /// - Returns: The closure to be called now; nil: it was called or taken back before.
    func take() -> (target: AnyObject, call: () -> Void)? {
        whenOver()
        let content = content.withLock { $0.take() }
        return content.map { ($0.target, $0.call) }
    }
}

extension [OrderedPerform] {
    /// (The library's sort is stable, which it does not promise.)
    func stablySorted(by order: (OrderedPerform) -> Int) -> [OrderedPerform] {
        enumerated().sorted { (order($0.element), $0.offset) < (order($1.element), $1.offset) }.map(\.element)
    }
}
