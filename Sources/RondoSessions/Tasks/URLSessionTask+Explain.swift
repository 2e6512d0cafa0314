internal import FoundationNetworking
internal import RondoConnections
public import RondoCore

extension URLSessionTask {
    /// Why the task has made no call yet: a reason and a sentence (rule US-90). Any thread may ask.
    ///
    /// The reason `nothingToDeliver` means that the server has not answered yet.
    public var whyNotDelivering: DeliveryObstacle { work.obstacle }
}

extension URLSession {
    /// The same for the session's first task that was resumed and has not ended, or for a completion handler
    /// of one that has (rule US-90). Any thread may ask.
    public var whyNotDelivering: DeliveryObstacle {
        guard let task = table.all.first else {
            if engine.hasWaitingHandler {
                let obstacle = engine.schedule.obstacleOfCall
                return DeliveryObstacle(
                    reason: obstacle.reason,
                    description: "a completion handler has not been called: \(obstacle.description)")
            }
            return DeliveryObstacle(
                reason: .nothingToDeliver, description: "no task was resumed that has not ended")
        }
        let obstacle = task.whyNotDelivering
        return DeliveryObstacle(
            reason: obstacle.reason, description: "task \(task.taskIdentifier): \(obstacle.description)")
    }
}
