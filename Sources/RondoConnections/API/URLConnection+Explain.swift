public import RondoCore

extension URLConnection {
    /// Why no callback has come, in a sentence and as a reason (see `DeliveryObstacle`). Any thread may ask.
    ///
    /// "Nothing to deliver" means that the loop waits in a scheduled mode: the server has not answered yet.
    public var whyNotDelivering: DeliveryObstacle {
        switch standing {
        case .notStarted:
            DeliveryObstacle(reason: .notScheduled, description: "it has not been started: call start()")
        case .over:
            DeliveryObstacle.invalid
        case .running(let modes):
            DeliveryObstacle(modes: modes.map { ($0.loop, $0.mode) })
        }
    }
}
