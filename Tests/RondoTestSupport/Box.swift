internal import RondoMutex

/// A value that closures on several threads write.
package final class Box<Value: Sendable>: Sendable {
    private let held: Mutex<Value>

    package init(_ value: Value) { held = Mutex(value) }

    package var value: Value {
        get { held.withLock { $0 } }
        set { held.withLock { $0 = newValue } }
    }

    /// Changes the value under the lock.
    @discardableResult
    package func mutate<Result: Sendable>(_ change: (inout Value) -> Result) -> Result {
        held.withLock { change(&$0) }
    }
}
