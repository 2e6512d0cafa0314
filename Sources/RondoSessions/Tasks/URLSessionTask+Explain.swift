internal import FoundationNetworking
internal import RondoConnections
public import RondoCore

extension URLSessionTask {
    /// Why no call has come, in a sentence and as a reason (rule US-90). Any thread may ask.
    ///
    /// "Nothing to deliver" means that the task's driver waits: the server has not answered yet.
    public var whyNotDelivering: DeliveryObstacle { work.obstacle }
}

extension URLSession {
    /// The same of the first of its tasks that was resumed and has not ended.
    public var whyNotDelivering: DeliveryObstacle {
        guard let task = table.all.first else {
            return DeliveryObstacle(
                reason: .nothingToDeliver, description: "no task was resumed that has not ended")
        }
        let obstacle = task.whyNotDelivering
        return DeliveryObstacle(
            reason: obstacle.reason, description: "task \(task.taskIdentifier): \(obstacle.description)")
    }
}

extension TaskWork {
    fileprivate var obstacle: DeliveryObstacle {
        let (life, load, method) = state.withLock { ($0.life, $0.load, $0.owedAnswer) }
        if life.isCompleted { return RunLoop.invalidObstacle }
        if life.state == .suspended {
            return DeliveryObstacle(
                reason: .suspended,
                description: life.wasResumed
                    ? "it is suspended: call resume() once for each suspend()"
                    : "it was not resumed: call resume()")
        }
        if let queue = driver?.queue?.queue, queue.isSuspended {
            return DeliveryObstacle(reason: .suspended, description: "its delegate queue is suspended")
        }
        let obstacle = RunLoop.obstacle(places: places)
        guard obstacle.reason == .nothingToDeliver || obstacle.reason == .busy else { return obstacle }
        if let method {
            return DeliveryObstacle(reason: .waits, description: "it waits for the answer to \(method)")
        }
        switch load?.currentStanding ?? .underWay {
        case .waitsForPlace:
            return DeliveryObstacle(
                reason: .waits,
                description: "it waits for a place: as many connections to its host as may be are in use")
        case .waitsForConnectivity:
            return DeliveryObstacle(reason: .waits, description: "it waits for a network")
        case .underWay: break
        }
        guard obstacle.reason == .nothingToDeliver else { return obstacle }
        return DeliveryObstacle(reason: .nothingToDeliver, description: "it waits for the server")
    }

    private var places: [(loop: RunLoop, mode: RunLoop.Mode)] {
        switch driver {
        case .queue: [(RunLoop.loader, .default)]
        case .loop(let modes): modes.map { ($0.loop, $0.mode) }
        case nil: []
        }
    }
}
