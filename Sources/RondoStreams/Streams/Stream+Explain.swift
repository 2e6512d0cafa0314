public import RondoCore

extension InputStream {
    /// The reason why no event has come, with a sentence. Any thread may read it.
    public var whyNotDelivering: DeliveryObstacle { core.whyNotDelivering }
}

extension OutputStream {
    /// The reason why no event has come, with a sentence. Any thread may read it.
    public var whyNotDelivering: DeliveryObstacle { core.whyNotDelivering }
}

extension StreamCore {
    var whyNotDelivering: DeliveryObstacle {
        let state = state
        switch state.status {
        case .notOpen:
            return DeliveryObstacle(reason: .notScheduled, description: "it has not been opened: call open()")
        case .closed:
            return DeliveryObstacle.invalid
        case .error where state.owed.isEmpty:
            return DeliveryObstacle(reason: .invalid, description: "it has failed, and its delegate was told")
        case .atEnd where state.owed.isEmpty:
            return DeliveryObstacle(reason: .invalid, description: "it has ended, and its delegate was told")
        case .open where state.isReady && state.wasIgnored && !state.isArmed:
            let event = state.direction == .input ? "bytes" : "space"
            return DeliveryObstacle(
                reason: .nothingToDeliver,
                description: "its event for \(event) was ignored: it has no delegate (a stream does not keep "
                    + "its delegate alive), or its client has not asked for that event")
        case .open where state.isReady && !state.isArmed:
            let event =
                state.direction == .input
                ? "it has told of bytes, and nothing was read since"
                : "it has told of space, and nothing was written since"
            return DeliveryObstacle(reason: .nothingToDeliver, description: event)
        default:
            if let queue {
                if !state.owed.isEmpty { return DeliveryObstacle.ofCall(waitingFor: queue) }
                return DeliveryObstacle(
                    reason: .nothingToDeliver,
                    description: "its events go to a dispatch queue: nothing to deliver yet")
            }
            let obstacle = DeliveryObstacle(modes: modes.map { ($0.loop, $0.mode) })
            guard obstacle.reason == .nothingToDeliver, state.status == .opening else { return obstacle }
            return DeliveryObstacle(reason: .nothingToDeliver, description: "it is still being opened")
        }
    }
}
