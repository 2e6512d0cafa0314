public import RondoCore

extension URLConnection {
    /// Why no callback has come, in a sentence and as a reason (see `DeliveryObstacle`). Any thread may ask.
    ///
    /// "Waits" means that as many connections are in use as are allowed, to the server or in all, or that a
    /// call waits for its turn on the delegate queue, "nothing to deliver" that the loop waits in a scheduled
    /// mode: the server has not answered yet.
    public var whyNotDelivering: DeliveryObstacle {
        switch publicState {
        case .notStarted: return DeliveryObstacle.notStarted
        case .over: return DeliveryObstacle.invalid
        case .lost:
            return DeliveryObstacle(
                reason: .threadEnded,
                description: "the thread of its loop has ended before the load: make another connection")
        case .running(let modes):
            if let queue = delegateQueue, queue.isSuspended || hasWaitingCalls { return queue.obstacle }
            let obstacle = DeliveryObstacle(modes: modes.map { ($0.loop, $0.mode) })
            guard obstacle.reason == .nothingToDeliver || obstacle.reason == .busy else { return obstacle }
            return loadObstacle.map { DeliveryObstacle($0) } ?? obstacle
        }
    }
}

extension DeliveryObstacle {
    /// The obstacle of a connection or download before its `start()`.
    static let notStarted = DeliveryObstacle(
        reason: .notScheduled, description: "it has not been started: call start()")
}
