import Rondo
import RondoForeignPackage
import RondoMutex
import RondoTestSupport

// Bridge C: Rondo's loop runs, and polls Foundation's.

/// Runs `body` on a thread of its own, and waits for it.
private func onAThread(_ body: @escaping @Sendable () -> Void) {
    let done = DispatchSemaphore(value: 0)
    onAnotherThread {
        body()
        done.signal()
    }
    expect(done.wait(timeout: .now() + 60) == .success, "the thread has ended")
}

func pollsServeFoundation() {
    onAThread {
        let loop = RunLoop.current
        let log = Log()
        loop.servesFoundation(in: [.default, .tracking], atLeastEvery: 0.01)
        for mode in [RunLoop.Mode.default, .tracking, RunLoop.Mode("mine")] {
            let timer = foundationTimer(after: 0.005, repeats: true, mode: mode) { log.note(mode.rawValue) }
            loop.add(Port(), forMode: mode)
            if mode == RunLoop.Mode("mine") {
                _ = loop.run(in: mode, for: 0.1, returnAfterSourceHandled: false)
            } else {
                runRondo(mode) { log.count(of: mode.rawValue) > 3 }
            }
            timer.invalidate()
        }
        expect(log.count(of: "mine") == 0, "in no other mode: \(log.entries)")
        // A loop that never sleeps polls as well.
        log.clear()
        foundationTimer(after: 0.01) {
            log.note("busy")
            loop.stop()
        }
        let busy = RunLoop.Source {}
        loop.add(busy, forMode: .default)
        let observer = RunLoop.Observer(activities: .beforeSources) { _, _ in busy.signal() }
        loop.add(observer, forMode: .default)
        expect(loop.run(in: .default, for: 60, returnAfterSourceHandled: false) == .stopped, "\(log.entries)")
        observer.invalidate()
        // No modes: the end.
        loop.servesFoundation(in: [])
        log.clear()
        foundationTimer(after: 0) { log.note("late") }
        _ = loop.run(in: .default, for: 0.1, returnAfterSourceHandled: false)
        expect(log.entries.isEmpty, "\(log.entries)")
    }
    // The main thread, with the name of the common modes.
    let loop = RunLoop.main
    let log = Log()
    loop.servesFoundation(in: [.common])
    foundationTimer(after: 0.01, mode: .tracking) { log.note("tracking") }
    runRondo(.tracking) { log.entries == ["tracking"] }
    // Blocks of the main queue that a poll drains are counted.
    for _ in 0..<50 {
        let isDone = Cell(false)
        onAnotherThread { DispatchQueue.main.async { isDone.withLock { $0 = true } } }
        runRondo(slice: 60) { isDone.withLock { $0 } }
    }
}

func pollsAreInTime() {
    onAThread {
        let loop = RunLoop.current
        let log = Log()
        let port = Port()
        loop.add(port, forMode: .default)
        // Polls every hour, so that only objects of the thread itself are served in time.
        loop.servesFoundation(in: [.default], atLeastEvery: 3600)
        loop.add(
            Timer(timeInterval: 0.02, repeats: false) { _ in
                // A timer that a callback makes is found before the next sleep.
                foundationTimer(after: 0.02) {
                    log.note("own")
                    loop.stop()
                }
            }, forMode: .default)
        expect(
            loop.run(in: .default, for: 60, returnAfterSourceHandled: false) == .stopped, "a timer is on time"
        )
        nonisolated(unsafe) let foundations = Foundation.RunLoop.current
        let thread = threadNumber()
        onAnotherThread {
            // The poll before the sleep is over when the thread sleeps.
            while !(loop.isWaiting && isAsleep(thread: thread)) { sched_yield() }
            foundations.perform { log.note("performed") }
        }
        _ = loop.run(in: .default, for: 0.2, returnAfterSourceHandled: false)
        // The run ends with a pass that does not sleep, and so does not poll.
        expect(log.entries == ["own"], "what another thread hands over waits: \(log.entries)")
        loop.servesFoundation(in: [.default], atLeastEvery: 0.01)
        let end = Timer(timeInterval: 0.001, repeats: true) { _ in if log.entries.count == 2 { loop.stop() } }
        loop.add(end, forMode: .default)
        expect(loop.run(in: .default, for: 60, returnAfterSourceHandled: false) == .stopped, "\(log.entries)")
        expect(log.entries == ["own", "performed"], "\(log.entries)")
        end.invalidate()
        // Another thread moves a timer to an earlier date.
        nonisolated(unsafe) let far = foundationTimer(after: 3600) {
            log.note("moved")
            loop.stop()
        }
        onAnotherThread {
            while !loop.isWaiting { sched_yield() }
            far.fireDate = Date()
        }
        expect(loop.run(in: .default, for: 60, returnAfterSourceHandled: false) == .stopped, "\(log.entries)")
        expect(log.entries.last == "moved", "\(log.entries)")
    }
}

/// Blocks of Foundation's loop, each of which hands in the next one, while a poll or several are made: one poll calls as many of
/// them as it has places for blocks.
private func chainedBlocks(_ run: () -> Void) -> Int {
    let count = Cell(0)
    let isOver = Cell(false)
    @Sendable func handIn() {
        Foundation.RunLoop.main.perform {
            guard !isOver.withLock({ $0 }) else { return }
            count.withLock { $0 += 1 }
            handIn()
        }
    }
    handIn()
    run()
    isOver.withLock { $0 = true }
    // Rids Foundation's loop of the last one.
    _ = Foundation.RunLoop.main.limitDate(forMode: .default)
    return count.withLock { $0 }
}

/// Three polls are made in a row, each time that the loop sleeps.
func pollsComeInThrees() {
    let loop = RunLoop.main
    let once = chainedBlocks { _ = Foundation.RunLoop.main.limitDate(forMode: .default) }
    expect(once > 0, "a poll calls blocks")
    loop.servesFoundation(in: [.default], atLeastEvery: 3600)
    let sleeps = Cell(0)
    let observer = RunLoop.Observer(activities: .beforeWaiting, repeats: true) { _, _ in
        sleeps.withLock { $0 += 1 }
    }
    loop.add(observer, forMode: .default)
    // A run that was held up until its end does not sleep.
    let runUntilItSleeps = {
        sleeps.withLock { $0 = 0 }
        while sleeps.withLock({ $0 }) == 0 {
            _ = loop.run(in: .default, for: 0.02, returnAfterSourceHandled: false)
        }
    }
    // The first sleep: before it there has been no poll, and one may be overdue.
    runUntilItSleeps()
    let together = chainedBlocks(runUntilItSleeps)
    observer.invalidate()
    let times = sleeps.withLock { $0 }
    expect(together == 3 * once * times, "\(together) blocks in \(times) sleeps, \(once) in one poll")
}

/// The first poll is made while no descriptor is left.
func pollsCountAfterAShortage() {
    let loop = RunLoop.main
    let (sleeps, drains) = (Cell(0), Cell(0))
    // Both loops make their descriptors.
    _ = loop.run(in: .default, for: 0, returnAfterSourceHandled: false)
    _ = Foundation.RunLoop.main.limitDate(forMode: .default)
    loop.servesFoundation(in: [.default])
    let counter = RunLoop.Observer(activities: .beforeWaiting) { _, _ in sleeps.withLock { $0 += 1 } }
    loop.add(counter, forMode: .default)
    withNoDescriptorLeft {
        // A run that was held up until its end does not sleep.
        while sleeps.withLock({ $0 }) == 0 {
            _ = loop.run(in: .default, for: 0.02, returnAfterSourceHandled: false)
        }
    }
    counter.invalidate()
    // Between the pass's own look at the main queue and its sleep: so the poll drains it.
    let filler = RunLoop.Observer(activities: .beforeWaiting) { _, _ in
        DispatchQueue.main.async { drains.withLock { $0 += 1 } }
    }
    loop.add(filler, forMode: .default)
    let result = loop.run(in: .default, for: 60, returnAfterSourceHandled: true)
    filler.invalidate()
    expect(result == .handledSource, "\(result) after \(drains.withLock { $0 }) drains")
}

func pollsServeAllKinds() {
    let loop = RunLoop.main
    let log = Log()
    // One poll in an hour, at the first sleep, serves everything that is due.
    loop.servesFoundation(in: [.default], atLeastEvery: 3600)
    let name = Notification.Name("BR-13")
    let token = NotificationCenter.default.addObserver(forName: name, object: nil, queue: nil) {
        notification in
        log.note(notification.object as? String ?? "")
    }
    let queue = Foundation.NotificationQueue.default
    queue.enqueue(
        Notification(name: name, object: "asap"), postingStyle: .asap, coalesceMask: [], forModes: nil)
    queue.enqueue(
        Notification(name: name, object: "idle"), postingStyle: .whenIdle, coalesceMask: [], forModes: nil)
    Foundation.RunLoop.main.perform { log.note("block") }
    foundationTimer(after: 0) { log.note("timer") }
    DispatchQueue.main.async { log.note("queue") }
    runRondo { log.entries.count >= 5 }
    expect(log.entries.sorted() == ["asap", "block", "idle", "queue", "timer"], "\(log.entries)")
    NotificationCenter.default.removeObserver(token)
    // A timer is due again at once: the next pass polls again.
    let again = Cell(0)
    let ticking = foundationTimer(after: 0.002, repeats: true) {
        let count = again.withLock { count in
            count += 1
            return count
        }
        if count == 10 { loop.stop() }
    }
    expect(
        loop.run(in: .default, for: 60, returnAfterSourceHandled: false) == .stopped,
        "\(again.withLock { $0 })")
    ticking.invalidate()

    // Rule BR-15: on another thread an empty mode has no observers.
    onAThread {
        let loop = RunLoop.current
        let log = Log()
        let token = NotificationCenter.default.addObserver(forName: .init("BR-15"), object: nil, queue: nil) {
            _ in
            log.note("posted")
        }
        loop.add(Port(), forMode: .default)
        loop.servesFoundation(in: [.default], atLeastEvery: 0.005)
        Foundation.NotificationQueue.default.enqueue(
            Notification(name: .init("BR-15")), postingStyle: .whenIdle)
        _ = loop.run(in: .default, for: 0.1, returnAfterSourceHandled: false)
        expect(log.entries.isEmpty, "an empty mode of Foundation's posts nothing: \(log.entries)")
        foundationTimer(after: 3600) {}
        runRondo { !log.entries.isEmpty }
        expect(log.entries == ["posted"], "with a timer there it does: \(log.entries)")
        NotificationCenter.default.removeObserver(token)
    }
}

func pollsAreNotNested() {
    let loop = RunLoop.main
    let log = Log()
    loop.servesFoundation(in: [.default], atLeastEvery: 0.005)
    let ticking = foundationTimer(after: 0.005, repeats: true) { log.note("foreign") }
    DispatchQueue.main.async {
        log.clear()
        loop.add(Timer(timeInterval: 0.1, repeats: false) { _ in log.note("own") }, forMode: .default)
        let result = loop.run(in: .default, for: 60, returnAfterSourceHandled: false)
        log.note("\(result)")
    }
    runRondo { log.entries.contains("finished") }
    expect(
        Array(log.entries.prefix(2)) == ["own", "finished"],
        "no poll inside a block of the main queue: \(log.entries)")
    ticking.invalidate()
    log.clear()
    // This loop runs again in a callback of a poll, and does not poll.
    foundationTimer(after: 0.01) {
        foundationTimer(after: 0) { log.note("next") }
        _ = loop.run(in: .default, for: 0.1, returnAfterSourceHandled: false)
        log.note("ran")
    }
    runRondo { log.entries.count == 2 }
    expect(log.entries == ["ran", "next"], "\(log.entries)")
}
