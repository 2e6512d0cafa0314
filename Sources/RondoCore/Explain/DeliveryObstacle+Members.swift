extension RunLoop.Source {
    /// Why the source is not being served.
    public var whyNotDelivering: DeliveryObstacle {
        let (isValid, memberships, commonLoops, threadHasEnded) = state.withLock {
            ($0.isValid, $0.memberships.all, $0.details?.commonLoops ?? [], $0.threadHasEnded)
        }
        guard isValid else { return .invalid }
        let others = memberships.filter { !commonLoops.contains($0.loop) }
        let common = commonLoops.flatMap { loop in
            loop.names(of: memberships.filter { $0.loop === loop }.map(\.mode), isCommon: true)
        }
        let modes = others.map { (loop: $0.loop, mode: $0.mode) } + common
        if modes.isEmpty && threadHasEnded { return .threadEnded }
        let obstacle = DeliveryObstacle(modes: modes)
        guard obstacle.reason == .nothingToDeliver else { return obstacle }
        return kind.behaviour.obstacle(of: self) ?? obstacle
    }
}

extension RunLoop.Observer {
    /// Why the observer has not been called.
    public var whyNotDelivering: DeliveryObstacle {
        let (isValid, isCalling, loop, isCommon, threadHasEnded) = state.withLock {
            ($0.isValid, $0.isCalling, $0.loop, $0.isCommon, $0.threadHasEnded)
        }
        guard isValid else { return .invalid }
        if activities.isEmpty {
            return DeliveryObstacle(
                reason: .waitsForNothing, description: "it has no activities: nothing calls it")
        }
        guard let loop else { return threadHasEnded ? .threadEnded : DeliveryObstacle(modes: []) }
        let modes = loop.state.withLock { state in
            state.modes.filter { $0.observers.contains { $0 === self } }.map(\.name)
        }
        let obstacle = DeliveryObstacle(modes: loop.names(of: modes, isCommon: isCommon))
        return isCalling && obstacle.reason == .nothingToDeliver ? .callbackRunsLoop : obstacle
    }
}

extension Timer {
    /// Why the timer has not fired.
    public var whyNotDelivering: DeliveryObstacle {
        let (isValid, modes, deadline, threadHasEnded) = state.withLock { state in
            // Under both locks: otherwise the timer might have moved to another loop.
            let modes = state.loop.map { loop -> [(loop: RunLoop, mode: RunLoop.Mode)] in
                let names = loop.state.withLock { loopState in
                    registration.modes.map { loopState.modes[$0].name }
                }
                return loop.names(of: names, isCommon: state.isCommon)
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

extension RunLoop {
    /// The modes of a member by the names that explanations use: the common name alone if the member was
    /// added under it, and is in the common modes and in no other.
    fileprivate func names(of modes: [Mode], isCommon: Bool) -> [(loop: RunLoop, mode: Mode)] {
        let areCommonModes = isCommon && Set(modes) == Set(self.modes(named: .common))
        return (areCommonModes ? [.common] : modes).map { (loop: self, mode: $0) }
    }
}
