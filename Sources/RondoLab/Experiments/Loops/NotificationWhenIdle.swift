import Rondo
internal import RondoTrace

extension Experiment {
    static let notificationWhenIdle = Experiment(
        "notification-when-idle", title: "A notification that is posted when the loop is idle",
        background: """
            A notification queue keeps notifications until the run loop has time for them, and replaces one that waits by \
            a newer one of the same name.
            """,
        question: """
            A callback changes a value five times, and enqueues a notification each time, to be posted when the loop is \
            idle. Three more blocks wait. How often is it posted, with which value, and when?
            """,
        choices: [
            "Five times, at once", "Five times, after the blocks",
            "Once, with the first value, before the blocks",
            "Once, with the last value, after the blocks",
        ], answer: 3,
        why: """
            Notifications of one name are coalesced: the newest replaces the one that waits, and its userInfo is the one \
            that is posted. Idle is a loop that has nothing else to do and is about to sleep, so the blocks go first. A \
            view that redraws itself on such a notification does so once, however often its value has changed.
            """,
        rules: ["NQ-7", "NQ-14"], body: notificationWhenIdleCode
    ) { evidence in
        let enqueued = evidence.notes("enqueued")
        let posted = evidence.notes("posted")
        let blocks = evidence.notes("block")
        return [
            Check(
                "it is enqueued five times", enqueued.count == 5,
                seen: "it was enqueued \(Evidence.times(enqueued.count))"),
            Check(
                "it is posted once", posted.count == 1, seen: "it was posted \(Evidence.times(posted.count))"),
            Check(
                "with the last value", posted.last?.duration == 5,
                seen: posted.last.map { "the value was \($0.duration)" } ?? "there was none"),
            Check(
                "after all blocks",
                blocks.count == 3 && Evidence.inOrder(blocks.map(\.began).max(), posted.first?.began),
                seen:
                    "\(blocks.filter { $0.began <= posted.first?.began ?? 0 }.count) of 3 blocks came before it"
            ),
        ]
    }
}

// begin notification-when-idle
@Sendable private func notificationWhenIdleCode(_ stage: Stage) throws {
    let loop = RunLoop.current
    let name = Notification.Name("the value has changed")
    let isPosted = Shared(false)
    let token = NotificationCenter.default.addObserver(forName: name, object: nil, queue: nil) {
        notification in
        stage.note("posted", notification.userInfo?["value"] as? Int ?? 0)
        isPosted.value = true
    }
    loop.keepAlive(in: .default)
    loop.perform {
        for value in 1...5 {
            NotificationQueue.default.enqueue(
                Notification(name: name, userInfo: ["value": value]), postingStyle: .whenIdle)
            stage.note("enqueued", value)
        }
        // The blocks run one after the other, each in a pass of its own.
        loop.perform {
            stage.note("block")
            loop.perform {
                stage.note("block")
                loop.perform { stage.note("block") }
            }
        }
    }
    try stage.run(loop) { isPosted.value }
    // Leaves time in which the notification could be posted again.
    loop.spend(0.1, in: .default)
    NotificationCenter.default.removeObserver(token)
}
// end
