extension RunLoop.Source {
    /// Why the source is not being served.
    public var whyNotDelivering: DeliveryObstacle {
        let (isValid, modes, threadHasEnded) = state.withLock { state in
            // The common name stands for the modes that the source entered through it.
            let common = (state.details?.commonLoops ?? []).map { (loop: $0, mode: RunLoop.Mode.common) }
            let others = state.memberships.all.filter { !state.isCommon(in: $0.loop) }
            return (
                state.isValid, others.map { (loop: $0.loop, mode: $0.mode) } + common, state.threadHasEnded
            )
        }
        guard isValid else { return .invalid }
        if modes.isEmpty && threadHasEnded { return .threadEnded }
        let obstacle = DeliveryObstacle(modes: modes)
        guard obstacle.reason == .nothingToDeliver else { return obstacle }
        return kind.behaviour.obstacle(of: self) ?? obstacle
    }
}

extension RunLoop.Observer {
    /// Why the observer has not been called.
    public var whyNotDelivering: DeliveryObstacle {
        let (isValid, loop, threadHasEnded) = state.withLock { ($0.isValid, $0.loop, $0.threadHasEnded) }
        guard isValid else { return .invalid }
        if activities.isEmpty {
            return DeliveryObstacle(
                reason: .waitsForNothing, description: "it has no activities: nothing calls it")
        }
        guard let loop else { return threadHasEnded ? .threadEnded : DeliveryObstacle(modes: []) }
        let modes = loop.state.withLock { state in
            state.modes.filter { $0.observers.contains { $0 === self } }.map(\.name)
        }
        return DeliveryObstacle(modes: modes.map { (loop, $0) })
    }
}

extension Timer {
    /// Why the timer has not fired.
    public var whyNotDelivering: DeliveryObstacle {
        let (isValid, modes, deadline, threadHasEnded) = state.withLock { state in
            // Under both locks: otherwise the timer might have moved to another loop.
            let modes = state.loop.map { loop -> [(loop: RunLoop, mode: RunLoop.Mode)] in
                if state.isCommon { return [(loop: loop, mode: .common)] }
                return loop.state.withLock { loopState in
                    registration.modes.map { (loop: loop, mode: loopState.modes[$0].name) }
                }
            }
            return (state.isValid, modes ?? [], state.deadline, state.threadHasEnded)
        }
        guard isValid else { return .invalid }
        if modes.isEmpty && threadHasEnded { return .threadEnded }
        let obstacle = DeliveryObstacle(modes: modes)
        guard obstacle.reason == .nothingToDeliver, let loop = modes.first?.loop else { return obstacle }
        let seconds = deadline.seconds(since: loop.nowByItsClock)
        let sentence =
            if deadline == .never {
                "it is parked: its date is in the distant future"
            } else if seconds < 0 {
                // It is not called again in a run nested in its callback.
                "it is overdue by \(String(format: "%.1f s", -seconds)): its callback has begun, or is about to"
            } else {
                "it is not due: it fires in \(String(format: "%.1f s", seconds))"
            }
        return DeliveryObstacle(reason: .nothingToDeliver, description: sentence)
    }
}
