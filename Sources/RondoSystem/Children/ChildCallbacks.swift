internal import RondoMutex

/// The callbacks of a child. Any thread may set them; one that is replaced is released after the lock.
final class ChildCallbacks: Sendable {
    /// The functions to call. A struct, because a closure that is returned from a lock's closure would be
    /// wrapped in another one.
    private struct Functions: Sendable {
        var end: (@Sendable (Child, ChildStatus) -> Void)?
        var completion: (@Sendable (Child, ChildStatus) -> Void)?
        var stop: (@Sendable (Child, ChildStop) -> Void)?
    }

    private let functions = Mutex(Functions())

    var end: (@Sendable (Child, ChildStatus) -> Void)? {
        get { functions.withLock { $0 }.end }
        set {
            var new = newValue
            functions.withLock { swap(&$0.end, &new) }
        }
    }

    var completion: (@Sendable (Child, ChildStatus) -> Void)? {
        get { functions.withLock { $0 }.completion }
        set {
            var new = newValue
            functions.withLock { swap(&$0.completion, &new) }
        }
    }

    var stop: (@Sendable (Child, ChildStop) -> Void)? {
        get { functions.withLock { $0 }.stop }
        set {
            var new = newValue
            functions.withLock { swap(&$0.stop, &new) }
        }
    }

    /// Makes the callback for `item`, if it is set.
    func call(_ item: ChildEvents.Item, of child: Child) {
        let functions = functions.withLock { $0 }
        switch item {
        case .ended(let status): functions.end?(child, status)
        case .stopped(let stop): functions.stop?(child, stop)
        case .completed(let status): functions.completion?(child, status)
        }
    }
}
