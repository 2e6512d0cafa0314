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
