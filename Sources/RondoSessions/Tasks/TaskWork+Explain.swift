internal import FoundationNetworking
internal import RondoConnections
internal import RondoCore

extension TaskWork {
    /// Why the task has made no call yet (rule US-90). Any thread.
    var obstacle: DeliveryObstacle {
        let (life, load, method) = state.withLock { ($0.life, $0.load, $0.owedReply) }
        let queue = engine?.schedule.queue
        if life.isCompleted {
            return hasWaitingHandler
                ? engine?.schedule.obstacleOfCall ?? DeliveryObstacle.invalid : DeliveryObstacle.invalid
        }
        if life.publicState == .suspended {
            return DeliveryObstacle(
                reason: .suspended,
                description: life.wasResumed
                    ? "it is suspended: call resume() once for each suspend()"
                    : "it was not resumed: call resume()")
        }
        if let queue, queue.isSuspended || load?.hasWaitingCalls ?? false { return queue.obstacle }
        let obstacle = DeliveryObstacle(modes: engine?.schedule.servingModes ?? [])
        guard obstacle.reason == .nothingToDeliver || obstacle.reason == .busy else { return obstacle }
        if let method {
            return DeliveryObstacle(reason: .waits, description: "it waits for the answer to \(method)")
        }
        if let obstacle = load?.obstacle { return DeliveryObstacle(obstacle) }
        guard obstacle.reason == .nothingToDeliver else { return obstacle }
        return DeliveryObstacle(reason: .nothingToDeliver, description: "it waits for the server")
    }
}

extension SessionSchedule {
    /// Why a call that was handed to the queue or the loop has not begun.
    var obstacleOfCall: DeliveryObstacle { queue?.obstacle ?? DeliveryObstacle(modes: servingModes) }

    /// The modes in which tasks are moved.
    fileprivate var servingModes: [(loop: RunLoop, mode: RunLoop.Mode)] {
        switch self {
        case .queue: [(RunLoop.loader, .default)]
        case .loop(let modes): modes.map { ($0.loop, $0.mode) }
        }
    }
}
