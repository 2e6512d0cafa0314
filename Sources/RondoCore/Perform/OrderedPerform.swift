internal import RondoMutex

/// A closure that a loop calls at the start of its next pass; see `RunLoop.perform(order:modes:target:_:)`.
final class OrderedPerform: Sendable {
    /// The closure and its target. `@unchecked Sendable`: made, called and released on the loop's thread.
    private struct Content: @unchecked Sendable {
        let target: AnyObject
        let call: () -> Void
    }

    let order: Int
    /// The loop's pass in which it was made.
    let pass: UInt
    /// The names of its modes.
    let modes: [String]
    private let content: Mutex<Content?>
    /// Called when the closure has been taken: removes the source that has kept its modes from being empty.
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

    /// Takes the closure out.
    ///
    /// - Returns: The closure, for the caller to call; nil if it was already called or cancelled.
    func take() -> (target: AnyObject, call: () -> Void)? {
        whenOver()
        let content = content.withLock { $0.take() }
        return content.map { ($0.target, $0.call) }
    }
}

extension [OrderedPerform] {
    /// Sorts by `order`, equal elements in their present order. (The library's sort is stable too, but does
    /// not promise it.)
    func stablySorted(by order: (OrderedPerform) -> Int) -> [OrderedPerform] {
        enumerated().sorted { (order($0.element), $0.offset) < (order($1.element), $1.offset) }.map(\.element)
    }
}
