// How a message gets from the thread that sends it to the delegate.
//
// Messages wait in the port's queue, in order. While some wait the port's source is signalled; each time it is
// performed the first message is taken and the delegate is called. One thread handles messages at a time, so that two
// loops that hold the port keep the order; a run that is nested in the delegate's method goes on with the next message.

extension Port {
    /// How many messages of this process wait until their senders are held back; 64 at first, at least 1 (rule PM-4).
    ///
    /// To a `SocketPort` other processes may have sent as many besides. Any thread.
    public var maximumQueuedMessages: Int {
        get { state.withLock { $0.queue.limit } }
        set { state.withLock { $0.queue.setLimit(newValue) } }
    }

    // MARK: Sending

    /// Copies what a message is to carry; nil, after one warning, if it cannot be carried.
    package func content(msgid: Int, components: NSArray?, from sender: Port?) -> PortContent? {
        if let content = PortContent(msgid: msgid, components: components, sender: sender) { return content }
        warnOnce(.message, "a component of a message is neither Data nor a Port: it was not sent")
        return nil
    }

    /// Puts a message into the queue; waits for room until the date.
    package func enqueue(_ content: PortContent, before limitDate: Date) -> Bool {
        enum Step { case taken, refused, blocked(BlockedSender) }
        let end = LoopClock.machineNow.advanced(bySeconds: limitDate.timeIntervalSinceNow)
        let mayWait = end > LoopClock.machineNow
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
            // A message that was handed over at the last moment was handed over.
            return state.withLock { $0.queue.giveUp(sender) } ? false : sender.wasHandedOver ?? false
        }
    }

    private func warnIfOwnThread() {
        let loops = source?.state.withLock { $0.places.all.map(\.loop) } ?? []
        guard !loops.isEmpty, loops.allSatisfy({ $0.isCurrent }) else { return }
        warnOnce(
            .ownThread,
            "its queue is full, and the thread that sends is the only one that takes messages: it waits in vain"
        )
    }

    // MARK: Messages of peers

    /// Whether a message of a peer finds room, in number and in `bytes` for all of them.
    package func hasRoomForPeers(bytes: Int) -> Bool {
        state.withLock { $0.queue.peerCount < $0.queue.limit && $0.queue.peerSize < bytes }
    }

    /// Whether half of the room for peers is free again.
    package var isHalfEmpty: Bool { state.withLock { $0.queue.peerCount <= $0.queue.limit / 2 } }

    /// Puts in a message of a peer, for which there is room. `signalIfMessagesWait()` is to follow.
    package func enqueueFromPeer(_ content: PortContent) {
        state.withLock { state in if state.isValid { state.queue.putFromPeer(content) } }
    }

    // MARK: Receiving

    /// Has the loops that hold the port call `deliver()` if there is something to deliver.
    package func signalIfMessagesWait() {
        let source = state.withLock { $0.queue.isEmpty ? nil : $0.source }
        source?.signalAndWakeUp()
    }

    /// Hands the first message that waits to the delegate. On the thread of a loop that holds the port.
    func deliver() {
        let thread = pthread_self()
        let content = state.withLock { state -> PortContent? in
            // Another thread handles a message, and signals when it has done so. This one goes on with the next.
            if let handler = state.handler, handler.thread != thread { return nil }
            guard let content = state.queue.takeFirst() else { return nil }
            state.handler = (thread, (state.handler?.depth ?? 0) + 1)
            return content
        }
        guard let content else { return }
        backing?.messageWasTaken()
        // For a run that is nested in the delegate's method.
        signalIfMessagesWait()
        if let delegate = delegate() {
            RunLoop.tracingDelegateCall("handle(_:)", of: self, label: label, on: RunLoop.existingLoop) {
                delegate.handle(content.message(through: self))
            }
        }
        state.withLock { state in
            let depth = (state.handler?.depth ?? 1) - 1
            state.handler = depth == 0 ? nil : (thread, depth)
        }
        // For another loop, whose signal has met with the handler of before.
        signalIfMessagesWait()
    }

    // MARK: What it says of itself

    /// Why no message has come, in a sentence and as a reason. Any thread may ask.
    public var whyNotDelivering: DeliveryObstacle {
        guard isValid else { return DeliveryObstacle.invalid }
        return source?.whyNotDelivering ?? DeliveryObstacle(places: [])
    }

    /// Why the delegate is not called though a loop waits in a mode that holds the port.
    var obstacle: DeliveryObstacle? {
        guard delegate() == nil else { return nil }
        return DeliveryObstacle(
            reason: .waitsForNothing, description: "it has no delegate: its messages are dropped")
    }

    /// "port “commands”, 3 messages wait", "socket port “control” 127.0.0.1:4711", for `RunLoop.debugDescription`.
    var summary: String {
        let waiting = state.withLock { $0.queue.count }
        return waiting == 0 ? name : "\(name), \(waiting) \(waiting == 1 ? "message waits" : "messages wait")"
    }

    private var name: String {
        let label = label.map { " “\($0)”" } ?? ""
        return "\(backing == nil ? "port" : "socket port")\(label)\(backing.map { " \($0.summary)" } ?? "")"
    }

    /// Logs a warning about this port, the first of its kind only.
    package func warnOnce(_ warning: PortWarning, _ text: String) {
        guard state.withLock({ $0.warnings.insert(warning).inserted }) else { return }
        Log.core.warning("\(name): \(text).")
    }
}
