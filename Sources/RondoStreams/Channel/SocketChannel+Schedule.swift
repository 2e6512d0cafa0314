package import RondoCore

// Which loops and modes serve the channel, and what may hold them off.
extension SocketChannel {
    /// Lets in what run loops bring. Set before the channel is scheduled, by an owner whose threads are several; taken
    /// away by one that leaves.
    package var gate: (any ChannelGate)? {
        get { interest.gate }
        set { interest.gate = newValue }
    }

    /// Also while open. `.common` stands for every common mode; several loops and modes may be given.
    package func schedule(in loop: RunLoop, forMode mode: RunLoop.Mode) {
        guard !isClosed else { return }
        schedule(at: SharedQueue.join(loop, mode))
    }

    /// Where `courier` serves its clients; to be called by one of them, who leaves it after the channel.
    package func schedule(with courier: SharedQueue) {
        guard !isClosed else { return }
        courier.joinAgain()
        schedule(at: courier)
    }

    /// - Parameter courier: It was joined for the channel.
    private func schedule(at courier: SharedQueue) {
        let (loop, mode) = (courier.loop, courier.mode)
        let turns = madeTurns
        if gate == nil { gate = OpenGate(self) }
        guard turns.add(courier) else { return courier.leave() }
        forEachSource { loop.add($0, forMode: mode) }
        forEachTimer { loop.add($0, forMode: mode) }
        // Opened before it had anywhere to start.
        if case .starting = phase { turns.signalAndWakeUp() }
    }

    package func remove(from loop: RunLoop, forMode mode: RunLoop.Mode) {
        turns?.leave(Place(loop: loop, mode: mode))
        forEachSource { loop.remove($0, forMode: mode) }
        forEachTimer { loop.remove($0, forMode: mode) }
    }

    package func removeFromAllLoops() { takeOutOfLoops()?.leave() }

    /// As `removeFromAllLoops()`, under a lock of the caller's.
    ///
    /// - Returns: Whom to leave without it; nil: nobody.
    package func takeOutOfLoops() -> StreamSchedule.Left? {
        turns?.takeAll { loop, mode in
            forEachSource { loop.remove($0, forMode: mode) }
            forEachTimer { loop.remove($0, forMode: mode) }
        }
    }

    /// A callback of its source is on this thread's stack, and the loop runs again inside: nothing would be heard of
    /// it in that run.
    package var isServedFurtherOut: Bool { connected.map { RunLoop.isServedFurtherOut($0.source) } ?? false }

    /// A callback of its source is on this thread's stack, in a run in which it may leave the loop later; see
    /// `RunLoop.mayLeaveLater(_:)`.
    package var mayStayScheduled: Bool {
        connected.map { RunLoop.currentLoop().mayLeaveLater($0.source) } ?? false
    }

    /// Watches again what `ChannelInterest.suspend()` has let go.
    package func resumeInterest() {
        if interest.resume() { turns?.signalAndWakeUp() }
    }

    var places: [Place] { turns?.places ?? [] }

    func forEachSource(_ body: (RunLoop.Source) -> Void) {
        // As nearly every channel is between two requests.
        if case .open(let connected, _) = phase, hasNothingRare { return body(connected.source) }
        if case .connecting(let connecting) = phase {
            for attempt in connecting.attempts.values { body(attempt.source) }
        }
        if let connected { body(connected.source) }
        if let asker { body(asker) }
    }

    private func forEachTimer(_ body: (Timer) -> Void) {
        guard !hasNothingRare else { return }
        for timer in delays { body(timer) }
        for timer in limits { body(timer) }
    }

    /// Watches `source` in all places from now on.
    func enter(_ source: RunLoop.Source, interest wanted: RunLoop.Source.Interest) {
        source.label = label
        interest.set(wanted, of: source)
        for place in places { place.loop.add(source, forMode: place.mode) }
    }

    /// One timer for each loop, since a timer belongs to one; whichever fires first is heard.
    func timers(after seconds: Double, _ body: @escaping (SocketChannel) -> Void) -> [Timer] {
        let call = Call(interest: interest, body: body)
        return Set(places.map(\.loop)).map { loop in
            let timer = Timer(timeInterval: max(0, seconds), repeats: false) { _ in call() }
            for place in places where place.loop == loop { loop.add(timer, forMode: place.mode) }
            return timer
        }
    }

    /// `@unchecked Sendable`: the body is called inside the gate only.
    private struct Call: @unchecked Sendable {
        let interest: ChannelInterest
        let body: (SocketChannel) -> Void

        func callAsFunction() { interest.enter(body) }
    }
}
