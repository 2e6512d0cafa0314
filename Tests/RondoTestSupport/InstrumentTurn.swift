internal import RondoCore

/// The instrument is the process's, and so are the tests: whoever sets it takes his turn.
package enum InstrumentTurn {
    private static let turn = DispatchSemaphore(value: 1)

    package static func take<Value>(_ body: () throws -> Value) rethrows -> Value {
        turn.wait()
        defer { turn.signal() }
        return try body()
    }
}
