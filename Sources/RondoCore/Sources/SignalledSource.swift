/// A source that is served after `signal()`: version 0 of `CFRunLoopSource`.
struct SignalledKind: SourceKind {
    let order: Int
    var descriptor: Int32? { nil }
    var takesSignals: Bool { true }

    func obstacle(of source: RunLoop.Source) -> DeliveryObstacle? {
        guard source.isSignalled else { return nil }
        return DeliveryObstacle(
            reason: .loopNotWoken,
            description: "signalled, but its loop sleeps and was not woken: call wakeUp() of the loop")
    }

    func summary(of source: RunLoop.Source) -> String {
        let state = source.isSignalled ? ", signalled" : ""
        return "source\(source.quotedLabel), signalled by hand, order \(order)\(state)"
    }
}

extension RunLoop.Source {
    /// A source that is served after `signal()`.
    ///
    /// - Parameters:
    ///   - schedule: Called for every (loop, mode) that the source enters, on the thread that adds the
    ///     source.
    ///   - cancel: Called for every (loop, mode) that the source leaves: by removal, invalidation, or the end
    ///     of the loop's thread.
    ///   - perform: Called on the thread of a loop that holds the source, with no lock held.
    public convenience init(
        order: Int = 0, schedule: ModeCallback? = nil, cancel: ModeCallback? = nil,
        perform: @escaping @Sendable () -> Void
    ) {
        self.init(
            .signalled(SignalledKind(order: order)), schedule: schedule, cancel: cancel,
            perform: Callback { _, _ in perform() })
    }
}
