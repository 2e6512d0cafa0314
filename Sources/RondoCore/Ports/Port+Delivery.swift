// How a message gets from the sending thread to the delegate.
//
// Messages wait in the port's queue, in order. While any wait, the port's source is signalled; each time the
// source is performed, the first message is taken and the delegate is called. One thread handles messages at
// a time, so that two loops that hold the port keep the order; a run nested in the delegate's method
// continues with the next message. If a second loop finds a message meanwhile, it has used up the signal; it
// asks the first loop to signal again, because a nested run there may be waiting for that message.

extension Port {
    /// The number of messages of this process that may wait before further senders are blocked; 64 at first,
    /// at least 1 (rule PM-4).
    ///
    /// In a `SocketPort` the same number of messages from other processes may wait besides. Any thread.
    public var maximumQueuedMessages: Int {
        get { state.withLock { $0.queue.limit } }
        set { state.withLock { $0.queue.setLimit(newValue) } }
    }

    // MARK: Sending

    /// Copies the content of a message; returns nil, after one warning, if a component cannot be sent.
    package func content(msgid: Int, components: NSArray?, from sender: Port?) -> PortContent? {
        if let content = PortContent(msgid: msgid, components: components, sender: sender) { return content }
        warnOnce(.message, "a component of a message is neither Data nor a Port: it was not sent")
        return nil
    }

    /// Puts a message into the queue; waits for room until `limitDate`.
    package func enqueue(_ content: PortContent, before limitDate: Date) -> Bool {
        enum Step { case taken, refused, blocked(BlockedSender) }
        let end = LoopClock.systemNow.advanced(bySeconds: limitDate.timeIntervalSinceNow)
        let mayWait = end > LoopClock.systemNow
        let step = state.withLock { state -> Step in
            guard state.isValid else { return .refused }
            if state.queue.put(content) { return .taken }
            guard mayWait else { return .refused }
            let sender = BlockedSender(content)
            state.queue.block(sender)
            return .blocked(sender)
        }
        switch step {
        case .refused: return false
        case .taken:
            signalIfMessagesWait()
            return true
        case .blocked(let sender):
            warnIfOwnThread()
            sender.wait(until: end)
            // The message may have been handed over just as the wait ended; it then counts as sent.
            return state.withLock { $0.queue.giveUp(sender) } ? false : sender.wasHandedOver ?? false
        }
    }

    private func warnIfOwnThread() {
        let loops = source?.state.withLock { $0.memberships.all.map(\.loop) } ?? []
        guard !loops.isEmpty, loops.allSatisfy({ $0.isCurrent }) else { return }
        warnOnce(
            .ownThread,
            "its queue is full, and only the sending thread takes messages from it: a send that waits for room waits until its limit date"
        )
    }

    // MARK: Messages of peers

    /// Whether there is room for a message of a peer: in number, and with all peers' messages below `bytes`.
    package func hasRoomForPeers(bytes: Int) -> Bool {
        state.withLock { $0.queue.peerCount < $0.queue.limit && $0.queue.peerSize < bytes }
    }

    /// Whether at least half of the room for peers is free.
    package var isHalfEmpty: Bool { state.withLock { $0.queue.peerCount <= $0.queue.limit / 2 } }

    /// Enqueues a message of a peer, for which there is room. The caller then calls `signalIfMessagesWait()`.
    package func enqueueFromPeer(_ content: PortContent) {
        state.withLock { state in if state.isValid { state.queue.putFromPeer(content) } }
    }

    // MARK: Receiving

    /// Makes the loops that hold the port call `deliver()` if messages wait.
    package func signalIfMessagesWait() {
        let source = state.withLock { $0.queue.isEmpty ? nil : $0.source }
        source?.signalAndWakeUp()
    }

    /// Hands the first waiting message to the delegate. On the thread of a loop that holds the port.
    func deliver() {
        let (content, busyLoop) = state.withLock { state -> (PortContent?, RunLoop?) in
            // If another thread handles a message, that thread signals when it is done. The thread that
            // handles one may continue with the next, in a nested run.
            guard state.handler.mayEnter else {
                return (nil, state.queue.isEmpty ? nil : state.handler.ask())
            }
            guard let content = state.queue.takeFirst() else { return (nil, nil) }
            state.handler.begin(on: RunLoop.existingLoop)
            return (content, nil)
        }
        if let busyLoop { leaveMessages(to: busyLoop) }
        guard let content else { return }
        backing?.messageWasTaken()
        // Signalled again for a run nested in the delegate's method.
        signalIfMessagesWait()
        if let delegate = delegate() {
            RunLoop.tracingDelegateCall("handle(_:)", of: self, label: label, on: RunLoop.existingLoop) {
                delegate.handle(content.message(through: self))
            }
        }
        state.withLock { $0.handler.end() }
        // Signalled again for another loop, which did nothing when it found this thread handling a message.
        signalIfMessagesWait()
    }

    /// Has a run of `loop`, nested in the delegate's method, handle the messages that wait.
    private func leaveMessages(to loop: RunLoop) {
        let modes = scheduledModes.filter { $0.loop === loop }.map { $0.mode }
        // A loop that the port enters is signalled then.
        guard !modes.isEmpty else {
            return state.withLock { $0.handler.endAsking() }
        }
        loop.perform(inModes: modes) { [weak self] in self?.signalOwnLoop() }
    }

    /// On the thread of a loop to which another has left messages. It wakes no loop: this one serves the
    /// source now.
    private func signalOwnLoop() {
        let source = state.withLock { state -> RunLoop.Source? in
            state.handler.endAsking()
            return state.queue.isEmpty ? nil : state.source
        }
        source?.signal()
    }

    // MARK: Descriptions

    /// Why no message has arrived, in a sentence and as a reason. Any thread may ask.
    public var whyNotDelivering: DeliveryObstacle {
        guard isValid else { return DeliveryObstacle.invalid }
        return source?.whyNotDelivering ?? DeliveryObstacle(modes: [])
    }

    /// Why the delegate is not called although a loop waits in a mode that holds the port.
    var obstacle: DeliveryObstacle? {
        guard delegate() == nil else { return nil }
        return DeliveryObstacle(
            reason: .waitsForNothing, description: "it has no delegate: its messages are dropped")
    }

    /// The port's line in `RunLoop.debugDescription`: "port “commands”, 3 messages wait", "socket port
    /// “control” 127.0.0.1:4711".
    var summary: String {
        let waiting = state.withLock { $0.queue.count }
        return waiting == 0 ? name : "\(name), \(waiting) \(waiting == 1 ? "message waits" : "messages wait")"
    }

    private var name: String {
        let label = label.map { " “\($0)”" } ?? ""
        return "\(backing == nil ? "port" : "socket port")\(label)\(backing.map { " \($0.summary)" } ?? "")"
    }

    /// Logs a warning about this port; only the first of each kind.
    package func warnOnce(_ warning: PortWarning, _ text: String) {
        guard state.withLock({ $0.warnings.insert(warning).inserted }) else { return }
        Log.core.warning("\(name): \(text).")
    }
}

/// The kinds of warning that a port logs, each once.
package enum PortWarning: Hashable, Sendable {
    /// A message with a component that cannot be sent.
    case message
    /// A sender that waits for its own thread.
    case ownThread
    /// A peer that violates the format.
    case peer
    /// A socket that no longer accepts or receives anything.
    case socket
}
