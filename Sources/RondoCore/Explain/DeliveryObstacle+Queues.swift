package import Dispatch

extension DeliveryObstacle {
    /// The obstacle of a call that was handed to `queue` and has not begun (rule US-90). Any thread.
    package static func ofCall(waitingFor queue: OperationQueue) -> DeliveryObstacle {
        // Foundation makes up a name for a queue without one.
        let given = queue.name.flatMap { $0.isEmpty || $0.hasPrefix("NSOperationQueue ") ? nil : $0 }
        let name = given.map { "the queue “\($0)”" } ?? "its queue"
        if queue.isSuspended {
            return DeliveryObstacle(
                reason: .suspended, description: "its calls are made on \(name), which is suspended")
        }
        if queue === OperationQueue.main { return ofCallWaitingForMainQueue }
        if let underlying = queue.underlyingQueue { return ofCall(waitingFor: underlying) }
        return DeliveryObstacle(
            reason: .waits,
            description: "its call waits for \(name), behind an operation that has not ended")
    }

    /// The same for a dispatch queue. Dispatch does not tell whether a queue is suspended.
    package static func ofCall(waitingFor queue: DispatchQueue) -> DeliveryObstacle {
        // Each look at `DispatchQueue.main` makes another object.
        if queue.label == DispatchQueue.main.label { return ofCallWaitingForMainQueue }
        return DeliveryObstacle(
            reason: .waits,
            description: "its call waits for the dispatch queue “\(queue.label)”, which is suspended or busy")
    }

    private static var ofCallWaitingForMainQueue: DeliveryObstacle {
        let loop = RunLoop.main
        // Another loop, or Dispatch, may serve the main queue.
        guard loop.state.withLock({ loop.leavesMainQueueWaiting($0) }), MainQueue.waitsForMainThread else {
            return DeliveryObstacle(
                reason: .waits, description: "its call waits for the main queue, behind other work")
        }
        let (reason, sentence) = loop.standing(inMode: .common)
        return DeliveryObstacle(
            reason: reason,
            description: "its call waits for the main queue, which the main run loop serves; \(sentence)")
    }
}
