/// An object of the program that asks another one when it is released.
package final class ReleaseProbe: Sendable {
    private let ask: @Sendable () -> Void

    package init(_ ask: @escaping @Sendable () -> Void) { self.ask = ask }

    deinit { ask() }
}
