/// The source of a port: signalled while messages wait.
struct PortKind: SourceKind {
    /// What the port says of itself for `RunLoop.debugDescription`; nil: it is gone.
    let describe: @Sendable () -> String?
    /// Why the port does not call its delegate, where its loop is not the reason.
    let explain: @Sendable () -> DeliveryObstacle?
    var order: Int { 0 }
    var descriptor: Int32? { nil }
    var takesSignals: Bool { true }

    func obstacle(of source: RunLoop.Source) -> DeliveryObstacle? { explain() }

    func summary(of source: RunLoop.Source) -> String { describe() ?? "port" }
}
