import RondoMutex
import RondoTestSupport
import Testing

@testable import RondoCore

/// Tests which notification takes the place of another, and what a loop logs and reports about its notifications.
@Suite(.leavesNothing, .timeLimit(.minutes(5))) struct NotificationCoalescingTests {
    /// Returns the notifications that a poll posts after `enqueue` has enqueued some.
    private func posted(_ enqueue: @escaping @Sendable (Posts) -> Void) throws -> [String] {
        try onLoopThread { loop in
            let posts = Posts()
            enqueue(posts)
            loop.add(Port(), forMode: .default)
            loop.poll()
            return posts.entries
        }
    }

    @Test func `NQ-11 for an empty list of modes nothing is posted, and nothing is taken out`() throws {
        let entries = try posted { posts in
            posts.enqueue("same", .asap, "1", [.onName])
            posts.enqueue("same", .asap, "2", [.onName], modes: [])
            posts.enqueue("now", .now, modes: [])
        }
        #expect(entries == ["same 1"])
    }

    @Test func `NQ-9 NQ-11 a dropped notification is warned about`() async {
        await #expect(processExitsWith: .success) {
            LogCatcher.begin()
            try onLoopThread { loop in
                let posts = Posts()
                posts.enqueue("never", .asap, modes: [])
                loop.perform { posts.enqueue("elsewhere", .now, modes: [.work]) }
                loop.poll()
                let warnings = LogCatcher.log.entries
                precondition(warnings.count == 2, "\(warnings)")
                precondition(warnings[0].contains("never") && warnings[0].contains("no mode"), warnings[0])
                precondition(
                    warnings[1].contains("elsewhere") && warnings[1].contains("runs in default"), warnings[1])
            }
        }
    }

    @Test func `NQ-12 notifications of a style are posted in the order enqueued`() throws {
        let numbers = (1...100).map { "\($0)" }
        let entries = try posted { posts in
            for number in numbers { posts.enqueue(number, .asap) }
        }
        #expect(entries == numbers)
    }

    @Test func `NQ-12 the queues of one thread take turns in posting`() throws {
        let entries = try onLoopThread { loop in
            let log = EventLog()
            let (first, second) = (Posts(log), Posts(log))
            for number in 1...3 {
                first.enqueue("first \(number)", .asap)
                second.enqueue("second \(number)", .asap)
            }
            loop.add(Port(), forMode: .default)
            loop.poll()
            return withExtendedLifetime((first, second)) { log.entries }
        }
        #expect(entries == ["first 1", "second 1", "first 2", "second 2", "first 3", "second 3"])
    }

    @Test func `NQ-13 coalescing is by name, by sender, or by both together`() throws {
        let (a, b) = (Sender(), Sender())
        let byName = try posted { posts in
            posts.enqueue("x", .asap, "1", sender: a)
            posts.enqueue("y", .asap, "2", sender: a)
            posts.enqueue("x", .asap, "3", .onName, sender: b)
        }
        #expect(byName == ["y 2", "x 3"])
        let bySender = try posted { posts in
            posts.enqueue("x", .asap, "1", sender: a)
            posts.enqueue("y", .asap, "2", sender: b)
            posts.enqueue("z", .asap, "3", .onSender, sender: a)
        }
        #expect(bySender == ["y 2", "z 3"])
        let byBoth = try posted { posts in
            posts.enqueue("x", .asap, "1", sender: a)
            posts.enqueue("x", .asap, "2", sender: b)
            posts.enqueue("y", .asap, "3", sender: a)
            posts.enqueue("x", .asap, "4", [.onName, .onSender], sender: a)
        }
        #expect(byBoth == ["x 2", "y 3", "x 4"])
    }

    @Test func `NQ-13 equal senders that are two objects do not match, nor do two queues`() throws {
        let entries = try onLoopThread { loop in
            let log = EventLog()
            let (first, second) = (Posts(log), Posts(log))
            first.enqueue("x", .asap, "1", .onSender, sender: NSString("equal"))
            first.enqueue("x", .asap, "2", .onSender, sender: NSString("equal"))
            second.enqueue("x", .asap, "3", .onName)
            loop.add(Port(), forMode: .default)
            loop.poll()
            return withExtendedLifetime((first, second)) { log.entries }
        }
        #expect(entries == ["x 1", "x 2", "x 3"])
    }

    @Test func `NQ-14 a new notification goes to the end with its own style and modes`() throws {
        let entries = try posted { posts in
            posts.enqueue("x", .asap, "1")
            posts.enqueue("y", .asap, "2")
            posts.enqueue("x", .asap, "3", .onName)
            // Out of either style, and into another mode.
            posts.enqueue("z", .asap, "4")
            posts.enqueue("z", .whenIdle, "5", .onName)
            posts.enqueue("w", .whenIdle, "6")
            posts.enqueue("w", .asap, "7", .onName)
            posts.enqueue("v", .asap, "8")
            posts.enqueue("v", .asap, "9", .onName, modes: [.work])
        }
        #expect(entries == ["y 2", "x 3", "w 7"])
    }

    @Test func `NQ-14 a thousand changes are one posting, the newest`() throws {
        let entries = try posted { posts in
            for number in 1...1000 { posts.enqueue("changed", .asap, "\(number)", [.onName, .onSender]) }
        }
        #expect(entries == ["changed 1000"])
    }

    @Test func `NQ-15 enqueue without a mask coalesces by name and sender, for the default mode`() throws {
        let (a, b) = (Sender(), Sender())
        let entries = try onLoopThread { loop in
            let posts = Posts()
            for (name, sender) in [("x", a), ("x", b), ("y", a), ("x", a)] {
                posts.queue.enqueue(posts.notification(name, sender: sender), postingStyle: .asap)
            }
            for mode in [RunLoop.Mode.default, .tracking] { loop.add(Port(), forMode: mode) }
            loop.poll(.tracking)
            posts.log.note("default")
            loop.poll()
            return posts.entries
        }
        #expect(entries == ["default", "x", "y", "x"])
    }

    @Test func `NQ-15 a notification is compared with those of its sender, and not with all that wait`() {
        let waiting = QueuedNotifications()
        let (queue, senders) = (Sender(), (0..<3000).map { _ in Sender() })
        let notifications = senders.map { Notification(name: .init("x"), object: $0) }
        for notification in notifications {
            waiting.append(
                QueuedNotifications.Entry(
                    queue: ObjectIdentifier(queue), label: nil, center: .default, notification: notification,
                    modes: [RunLoop.Mode.default.rawValue]),
                .asap)
        }
        for (notification, sender) in zip(notifications, senders) {
            let removed = waiting.removeAll(
                of: ObjectIdentifier(queue), like: notification, inName: true, inSender: true)
            #expect(removed.map { $0.notification.object as? Sender } == [sender])
        }
        #expect(waiting.isEmpty(.asap) && waiting.lookedAt == senders.count)
    }

    @Test func `NQ-10 a posting does not look at the notifications that wait for other modes`() {
        let (waiting, queue) = (QueuedNotifications(), Sender())
        let enqueue = { (name: String, modes: [RunLoop.Mode]) in
            waiting.append(
                QueuedNotifications.Entry(
                    queue: ObjectIdentifier(queue), label: nil, center: .default,
                    notification: Notification(name: .init(name)), modes: modes.map(\.rawValue)),
                .asap)
        }
        for number in 0..<100 {
            enqueue("waits", [.work])
            enqueue("\(number)", number.isMultiple(of: 2) ? [.default] : [.tracking, .common])
        }
        var (posted, last) = ([String](), UInt64(0))
        while let entry = waiting.take(
            .asap, in: RunLoop.Mode.default.rawValue, isCommon: true, after: last, upTo: waiting.lastNumber)
        {
            posted.append(entry.notification.name.rawValue)
            last = entry.number
        }
        #expect(posted == (0..<100).map { "\($0)" })
        #expect(waiting.lookedAt == 100)
        #expect(waiting.modes == [RunLoop.Mode.work.rawValue])
        #expect(waiting.count(.asap, named: RunLoop.Mode.work.rawValue) == 100)
    }

    @Test func `NQ-15 many notifications of different senders keep their order when each is replaced`() throws
    {
        let senders = (0..<3000).map { _ in Sender() }
        let entries = try posted { posts in
            for round in ["1", "2"] {
                for sender in senders {
                    posts.queue.enqueue(posts.notification("x", round, sender: sender), postingStyle: .asap)
                }
            }
        }
        #expect(entries == Array(repeating: "x 2", count: senders.count))
    }

    @Test
    func `NQ-13 a value as a sender is the same as no other one, and does not hinder coalescing by name`()
        throws
    {
        let entries = try posted { posts in
            posts.enqueue("x", .asap, "1", sender: "value")
            posts.enqueue("x", .asap, "2", [.onName, .onSender], sender: "value")
            posts.enqueue("y", .asap, "3", .onSender)
            posts.enqueue("x", .asap, "4", .onName, sender: "value")
            posts.enqueue("z", .asap, "5", .onSender)
        }
        #expect(entries == ["x 4", "z 5"])
    }

    @Test func `NQ-16 dequeueNotifications takes out what matches, with an empty mask nothing`() throws {
        let a = Sender()
        let entries = try posted { posts in
            posts.enqueue("x", .asap, "1", sender: a)
            posts.enqueue("x", .asap, "2")
            posts.enqueue("y", .asap, "3", sender: a)
            posts.enqueue("y", .asap, "4")
            posts.enqueue("z", .asap, "5")
            posts.dequeue("z", [])
            posts.dequeue("x", [.onName, .onSender], sender: a)
            posts.dequeue("y", .onName)
        }
        #expect(entries == ["x 2", "z 5"])
    }

    @Test func `NQ-22 whyNotDelivering says why a notification waits, as for timers`() throws {
        try onLoopThread { loop in
            let posts = Posts()
            posts.enqueue("waits", .asap, modes: [.work])
            let why: @Sendable () -> DeliveryObstacle = {
                posts.queue.whyNotDelivering(notification: posts.notification("waits"))
            }
            #expect(why().reason == .loopNeverRan)
            loop.addSignalled("source", to: EventLog(), mode: .other)
            loop.poll(.other)
            #expect(why().reason == .loopNotRunning)
            loop.perform { #expect(why().reason == .runsInAnotherMode(.default)) }
            loop.poll()
            loop.perform(inModes: [.work]) {
                #expect(why().reason == .busy)
                #expect(why().description.hasSuffix("it is posted at the end of the pass"))
            }
            loop.poll(.work)
            #expect(why().reason == .notScheduled)
        }
    }

    @Test func `a loop describes the notifications that wait`() throws {
        let text = try onLoopThread { loop in
            let posts = Posts()
            posts.enqueue("1", .asap)
            posts.enqueue("2", .asap, modes: [.common])
            posts.enqueue("3", .whenIdle)
            return loop.debugDescription
        }
        #expect(text.contains("  default (common)\n    notifications: 2 as soon as possible, 1 when idle\n"))
        #expect(text.hasSuffix("  tracking (common)\n    notifications: 1 as soon as possible"))
    }

    @Test func `a loop that is not run is warned about for its notifications`() async {
        await #expect(processExitsWith: .success) {
            LogCatcher.begin()
            RunLoop.unservedWarningDelay = 0.01
            let end = Latch()
            let thread = LoopThread { _ in
                let posts = Posts()
                posts.enqueue("1", .asap)
                posts.enqueue("2", .whenIdle)
                posts.enqueue("3", .asap, modes: [.work])
                posts.enqueue("4", .asap, modes: [.common])
                end.waitOrRecord()
            }
            let warning = try waitFor("the warning") { LogCatcher.log.entries.first }
            precondition(warning.contains("default: 2 notifications"), warning)
            precondition(warning.contains("the common modes: 1 notification"), warning)
            precondition(warning.contains("work: 1 notification"), warning)
            end.open()
            try thread.value()
        }
    }

    @Test func `an embedded mode posts when it is idle`() throws {
        let entries = try onLoopThread { loop in
            let posts = Posts()
            let log = posts.log
            guard let embedding = try? loop.embed(mode: .work) else { return ["no embedding"] }
            posts.enqueue("idle", .whenIdle, modes: [.work])
            posts.enqueue("asap", .asap, modes: [.work])
            loop.addSignalled("source", to: log, mode: .work)
            loop.add(Port(), forMode: .work)
            for _ in 0..<20 {
                var request = pollfd(fd: embedding.fileDescriptor, events: Int16(POLLIN), revents: 0)
                guard poll(&request, 1, 0) > 0 else { break }
                embedding.turn()
            }
            embedding.invalidate()
            return log.entries
        }
        #expect(entries == ["source", "asap", "idle"])
    }
}

/// An object to be a sender.
private final class Sender: NSObject, Sendable {}
