internal import RondoCore

/// Lets one test at a time set the instrument, which all tests of the process share.
package enum InstrumentTurn {
    private static let turn = DispatchSemaphore(value: 1)

    package static func take<Value>(_ body: () throws -> Value) rethrows -> Value {
        turn.wait()
        defer { turn.signal() }
        return try body()
    }
}
