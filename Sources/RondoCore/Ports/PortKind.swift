/// The kind of a port's source, which is signalled while messages wait.
struct PortKind: SourceKind {
    /// The port's line for `RunLoop.debugDescription`; nil if the port has been freed.
    let describe: @Sendable () -> String?
    /// Why the port does not call its delegate, if the reason is not its loop.
    let explain: @Sendable () -> DeliveryObstacle?
    var descriptor: Int32? { nil }
    var takesSignals: Bool { true }

    func obstacle(of source: RunLoop.Source) -> DeliveryObstacle? { explain() }

    func summary(of source: RunLoop.Source) -> String { describe() ?? "port" }
}
