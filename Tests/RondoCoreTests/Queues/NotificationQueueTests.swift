import RondoCore
import RondoMutex
import RondoTestSupport
import Testing

/// Tests when notifications of a queue are posted: in which pass, and where in it.
@Suite(.leavesNothing, .timeLimit(.minutes(5))) struct NotificationQueueTests {
    @Test func `NQ-1 each thread has a default queue over the default centre, and may have more`() throws {
        try onLoopThread { loop in
            let queue = NotificationQueue.default
            #expect(queue === NotificationQueue.default)
            let (log, name) = (EventLog(), Notification.Name("NQ-1 \(UUID())"))
            let token = NotificationCenter.default.addObserver(forName: name, object: nil, queue: nil) { _ in
                log.note("posted")
            }
            queue.enqueue(Notification(name: name), postingStyle: .now)
            #expect(log.entries == ["posted"])
            NotificationCenter.default.removeObserver(token)
            let posts = Posts()
            posts.enqueue("own", .now)
            #expect(posts.entries == ["own"])
        }
    }

    @Test func `NQ-1 two threads that live at the same time have two default queues`() throws {
        let end = Latch()
        let other = LoopThread { _ in
            let queue = NotificationQueue.default
            end.waitOrRecord()
            return queue
        }
        _ = try other.loop
        let mine = try onLoopThread { _ in NotificationQueue.default }
        end.open()
        #expect(try other.value() !== mine)
    }

    @Test
    func
        `NQ-2 NQ-20 what another thread enqueues is posted by the loop of the queue's thread, which is woken`()
        throws
    {
        let made = Mutex<Posts?>(nil)
        let thread = LoopThread { loop in
            loop.add(Port(), forMode: .default)
            let posts = Posts()
            posts.whenPosted = { name in
                #expect(RunLoop.currentLoop() === loop)
                if name == "idle" { loop.stop() }
            }
            made.withLock { $0 = posts }
            #expect(loop.runOn() == .stopped)
            return posts.entries
        }
        try thread.loop.waitUntilAsleep()
        let posts = try waitFor("the queue") { made.withLock { $0 } }
        posts.enqueue("asap", .asap)
        posts.enqueue("now", .now)
        posts.enqueue("idle", .whenIdle)
        made.withLock { $0 = nil }
        #expect(try thread.value() == ["asap", "now", "idle"])
    }

    @Test func `NQ-3 enqueue posts nothing by itself`() throws {
        let entries = try onLoopThread { loop in
            let posts = Posts()
            loop.perform {
                posts.enqueue("asap", .asap)
                posts.enqueue("idle", .whenIdle)
                posts.log.note("returned")
            }
            loop.poll()
            return posts.entries
        }
        #expect(entries == ["returned", "asap"])
    }

    @Test(arguments: ["timer", "source", "descriptor", "block", "observer"])
    func `NQ-4 asap is posted at the end of the pass, whatever call-out has enqueued it`(_ kind: String)
        throws
    {
        let entries = try onLoopThread { loop in
            let posts = Posts()
            let pipe = BytePipe()
            let enqueue: @Sendable () -> Void = {
                posts.enqueue("asap", .asap)
                posts.log.note(kind)
            }
            posts.log.observe([.beforeTimers, .exit], of: loop, in: .default)
            let port = Port()
            loop.add(port, forMode: .default)
            switch kind {
            case "timer": loop.addDueTimer("", to: EventLog(), then: enqueue)
            case "source": loop.addSignalled("", to: EventLog(), then: enqueue)
            case "descriptor":
                pipe.write()
                loop.add(pipe.source("", to: EventLog(), then: enqueue), forMode: .default)
            case "block": loop.perform(enqueue)
            default:
                loop.add(
                    RunLoop.Observer(activities: .beforeTimers, repeats: false, order: 1) { _, _ in enqueue()
                    },
                    forMode: .default)
            }
            // Nothing but the notification's own observer ends it.
            posts.whenPosted = { _ in loop.stop() }
            loop.runOn()
            return posts.entries
        }
        #expect(entries == ["beforeTimers", kind, "asap", "exit"])
    }

    @Test func `NQ-4 asap that an observer enqueues before the wait is posted without one`() throws {
        let entries = try onLoopThread { loop in
            let posts = Posts()
            loop.add(Port(), forMode: .default)
            loop.add(
                RunLoop.Observer(activities: .beforeWaiting, repeats: false) { _, _ in
                    posts.enqueue("asap", .asap)
                }, forMode: .default)
            posts.whenPosted = { _ in loop.stop() }
            #expect(loop.runOn() == .stopped)
            return posts.entries
        }
        #expect(entries == ["asap"])
    }

    @Test func `NQ-4 asap that an exit observer enqueues is posted before the run returns`() throws {
        let entries = try onLoopThread { loop in
            let posts = Posts()
            loop.add(
                RunLoop.Observer(activities: .exit, repeats: false) { _, _ in posts.enqueue("asap", .asap) },
                forMode: .default)
            loop.addSignalled("source", to: posts.log)
            loop.poll()
            return posts.entries
        }
        #expect(entries == ["source", "asap"])
    }

    @Test func `NQ-4 NQ-5 asap of a busy loop is posted, whenIdle is not`() throws {
        let entries = try onLoopThread { loop in
            let posts = Posts()
            let pipe = BytePipe()
            pipe.write()
            let count = Mutex(0)
            // Never drained: always ready.
            let busy = RunLoop.Source(fileDescriptor: pipe.readEnd, interest: .read) { _, _ in
                if count.withLock({
                    $0 += 1
                    return $0
                }) == 50 {
                    loop.stop()
                }
            }
            loop.add(busy, forMode: .default)
            posts.enqueue("idle", .whenIdle)
            posts.enqueue("asap", .asap)
            loop.runOn()
            busy.invalidate()
            return posts.entries
        }
        #expect(entries == ["asap"])
    }

    @Test func `NQ-5 whenIdle comes after what is due, ready, queued or as soon as possible`() throws {
        let entries = try onLoopThread { loop in
            let posts = Posts()
            let pipe = BytePipe()
            pipe.write()
            posts.enqueue("idle", .whenIdle)
            loop.add(pipe.source("descriptor", to: posts.log), forMode: .default)
            loop.addDueTimer("timer", to: posts.log)
            loop.addSignalled("source", to: posts.log) { posts.enqueue("asap", .asap) }
            loop.add(
                RunLoop.Observer(activities: .beforeWaiting, repeats: false) { _, _ in
                    loop.performWithoutWaking(inModes: [.default]) { posts.log.note("block") }
                }, forMode: .default)
            posts.whenPosted = { if $0 == "idle" { loop.stop() } }
            loop.runOn()
            return posts.entries
        }
        #expect(entries.last == "idle")
        #expect(Set(entries.dropLast()) == ["descriptor", "timer", "source", "asap", "block"])
    }

    @Test func `NQ-6 a run that is about to end posts asap and not whenIdle`() throws {
        let entries = try onLoopThread { loop in
            let posts = Posts()
            loop.add(Port(), forMode: .default)
            posts.enqueue("idle", .whenIdle)
            posts.enqueue("asap", .asap)
            #expect(loop.poll() == .timedOut)
            loop.perform { loop.stop() }
            #expect(loop.runOn() == .stopped)
            return posts.entries
        }
        #expect(entries == ["asap"])
    }

    @Test func `NQ-7 work that an idle posting makes is done in a new pass, without a sleep`() throws {
        let entries = try onLoopThread { loop in
            let posts = Posts()
            loop.add(Port(), forMode: .default)
            posts.enqueue("idle", .whenIdle)
            posts.whenPosted = { _ in
                loop.performWithoutWaking(inModes: [.default]) {
                    posts.log.note("block")
                    loop.stop()
                }
            }
            #expect(loop.runOn() == .stopped)
            return posts.entries
        }
        #expect(entries == ["idle", "block"])
    }

    @Test func `NQ-8 now is posted before enqueue returns, and takes the place of what waits`() throws {
        let entries = try onLoopThread { loop in
            let posts = Posts()
            posts.enqueue("same", .asap, "old", [.onName])
            posts.enqueue("same", .now, "new", [.onName])
            posts.log.note("returned")
            loop.addSignalled("source", to: posts.log)
            loop.poll()
            return posts.entries
        }
        #expect(entries == ["same new", "returned", "source"])
    }

    @Test
    func `NQ-9 now is posted where the loop does not run or runs in one of the modes, and else dropped`()
        throws
    {
        let entries = try onLoopThread { loop in
            let posts = Posts()
            posts.enqueue("outside", .now, modes: [.work])
            loop.perform(inModes: [.work]) {
                posts.enqueue("in work", .now, modes: [.other, .work])
                posts.enqueue("in default", .now, modes: nil)
                posts.enqueue("in common", .now, modes: [.common])
            }
            loop.poll(.work)
            loop.perform { posts.enqueue("common", .now, modes: [.common]) }
            loop.poll()
            return posts.entries
        }
        #expect(entries == ["outside", "in work", "common"])
    }

    @Test func `NQ-10 a notification is posted in its modes alone, and keeps its place`() throws {
        let entries = try onLoopThread { loop in
            let posts = Posts()
            for mode in [RunLoop.Mode.default, .work, .tracking] { loop.add(Port(), forMode: mode) }
            posts.enqueue("1 work", .asap, modes: [.work])
            posts.enqueue("2 default", .asap)
            posts.enqueue("3 both", .asap, modes: [.work, .default])
            posts.enqueue("4 common", .asap, modes: [.common])
            posts.enqueue("5 work", .asap, modes: [.work])
            loop.poll(.tracking)
            posts.log.note("tracking")
            loop.poll(.default)
            posts.log.note("default")
            loop.poll(.work)
            return posts.entries
        }
        #expect(
            entries == ["4 common", "tracking", "2 default", "3 both", "default", "1 work", "5 work"])
    }

    @Test func `NQ-10 whenIdle waits for its modes too`() throws {
        let entries = try onLoopThread { loop in
            let posts = Posts()
            for mode in [RunLoop.Mode.default, .work] { loop.add(Port(), forMode: mode) }
            posts.enqueue("work", .whenIdle, modes: [.work])
            posts.enqueue("common", .whenIdle, modes: [.common])
            posts.whenPosted = { _ in loop.stop() }
            loop.runOn(.default)
            posts.log.note("default")
            loop.runOn(.work)
            return posts.entries
        }
        #expect(entries == ["common", "default", "work"])
    }

    @Test
    func
        `NQ-17 a notification enqueued while others are posted waits for the next occasion, and for no event`()
        throws
    {
        let entries = try onLoopThread { loop in
            let posts = Posts()
            loop.add(Port(), forMode: .default)
            posts.log.observe(.beforeTimers, of: loop, in: .default)
            posts.enqueue("1", .asap)
            posts.enqueue("2", .asap)
            posts.whenPosted = { name in
                if name == "1" { posts.enqueue("3", .asap) }
                if name == "3" { loop.stop() }
            }
            loop.perform {}
            #expect(loop.runOn() == .stopped)
            return posts.entries
        }
        #expect(entries == ["beforeTimers", "1", "2", "beforeTimers", "3"])
    }

    @Test func `NQ-18 a nested run posts the rest, and each is posted once`() throws {
        let entries = try onLoopThread { loop in
            let posts = Posts()
            loop.add(Port(), forMode: .default)
            for number in 1...3 { posts.enqueue("\(number)", .asap) }
            posts.whenPosted = { name in
                guard name == "1" else { return }
                loop.poll()
                posts.log.note("nested run ended")
            }
            loop.poll()
            return posts.entries
        }
        #expect(entries == ["1", "2", "3", "nested run ended"])
    }

    @Test func `NQ-18 a notification that an observer removes from the queue is not posted`() throws {
        let entries = try onLoopThread { loop in
            let posts = Posts()
            loop.add(Port(), forMode: .default)
            for number in 1...3 { posts.enqueue("\(number)", .asap) }
            posts.whenPosted = { name in
                if name == "1" { posts.dequeue("2", .onName) }
            }
            loop.poll()
            return posts.entries
        }
        #expect(entries == ["1", "3"])
    }

    @Test func `NQ-19 a notification keeps no mode from being empty, and ends no run`() throws {
        let entries = try onLoopThread { loop in
            let posts = Posts()
            posts.enqueue("asap", .asap)
            posts.enqueue("idle", .whenIdle)
            #expect(loop.runOn() == .finished)
            #expect(posts.entries == [])
            let timer = Timer(timeInterval: 0.01, repeats: false) { _ in posts.log.note("timer") }
            loop.add(timer, forMode: .default)
            #expect(loop.run(in: .default, for: 60, returnAfterSourceHandled: true) == .finished)
            return posts.entries
        }
        #expect(entries == ["asap", "idle", "timer"] || entries == ["idle", "asap", "timer"])
    }

    @Test func `NQ-20 a notification enqueued outside a run waits for the next run`() throws {
        let entries = try onLoopThread { loop in
            let posts = Posts()
            posts.enqueue("asap", .asap)
            posts.log.note("run")
            loop.addSignalled("source", to: posts.log)
            loop.poll()
            return posts.entries
        }
        #expect(entries == ["run", "source", "asap"])
    }

    @Test func `NQ-21 at the end of the thread, or of the queue, what waits is dropped`() throws {
        let kept = Mutex<Posts?>(nil)
        let object = WeakObject()
        let entries = try onLoopThread { loop in
            let posts = Posts()
            kept.withLock { $0 = posts }
            let sender = NSObject()
            object.object = sender
            posts.enqueue("dropped", .asap, sender: sender)
            // This one's queue is released before its turn; its centre and observer stay.
            let log = posts.log
            do {
                let short = NotificationQueue(notificationCenter: posts.center)
                short.enqueue(
                    posts.notification("of a released queue"), postingStyle: .asap, coalesceMask: [],
                    forModes: [.work])
            }
            loop.addSignalled("source", to: log, mode: .work)
            loop.poll(.work)
            NotificationQueue.default.enqueue(Notification(name: .init("NQ-21")), postingStyle: .asap)
            return log.entries
        }
        #expect(entries == ["source"])
        #expect(object.object == nil)
        let posts = try #require(kept.withLock { $0.take() })
        posts.enqueue("late", .asap)
        #expect(posts.queue.whyNotDelivering(notification: posts.notification("late")).reason == .threadEnded)
    }
}

/// A queue over a centre of its own, whose notifications are noted by name and tag.
final class Posts: Sendable {
    let log: EventLog
    let center = NotificationCenter()
    let queue: NotificationQueue
    private let action = Mutex<(@Sendable (String) -> Void)?>(nil)

    var entries: [String] { log.entries }

    /// Called with the name of each that is posted.
    var whenPosted: (@Sendable (String) -> Void)? {
        get { action.withLock { $0 } }
        set { action.withLock { $0 = newValue } }
    }

    init(_ log: EventLog = EventLog()) {
        self.log = log
        queue = NotificationQueue(notificationCenter: center)
        _ = center.addObserver(forName: nil, object: nil, queue: nil) { [weak self] note in
            let tag = note.userInfo?["tag"] as? String
            log.note(note.name.rawValue + (tag.map { " \($0)" } ?? ""))
            self?.whenPosted?(note.name.rawValue)
        }
    }

    func notification(_ name: String, _ tag: String? = nil, sender: Any? = nil) -> Notification {
        Notification(name: .init(name), object: sender, userInfo: tag.map { ["tag": $0] })
    }

    func enqueue(
        _ name: String, _ style: NotificationQueue.PostingStyle, _ tag: String? = nil,
        _ mask: NotificationQueue.NotificationCoalescing = [], sender: Any? = nil,
        modes: [RunLoop.Mode]? = nil
    ) {
        queue.enqueue(
            notification(name, tag, sender: sender), postingStyle: style, coalesceMask: mask, forModes: modes)
    }

    func dequeue(_ name: String, _ mask: NotificationQueue.NotificationCoalescing, sender: Any? = nil) {
        queue.dequeueNotifications(matching: notification(name, sender: sender), coalesceMask: mask)
    }
}

/// An object that may be gone.
final class WeakObject: @unchecked Sendable {
    // `@unchecked Sendable`: a weak reference may be read on any thread; it is set on one.
    weak var object: NSObject?
}
