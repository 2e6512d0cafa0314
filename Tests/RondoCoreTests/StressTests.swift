import RondoCore
import RondoMutex
import RondoProbeSupport
import RondoTestSupport
import Testing

import struct Synchronization.Atomic

@Suite(.leavesNothing) struct StressTests {
    /// Eight threads at two loops, each step chosen at random (the same in each run): nothing may be lost,
    /// nothing may hang, and the sanitizers watch.
    @Test func `RL-5 many threads may change, signal, stop and wake two loops at once`() throws {
        let isOver = Atomic(false)
        let loopThreads = (1...2).map { _ in
            LoopThread { loop in
                let port = Port()
                for mode in [RunLoop.Mode.default, .tracking, .work] { loop.add(port, forMode: mode) }
                var turn = 0
                while !isOver.load(ordering: .acquiring) {
                    turn += 1
                    _ = loop.run(
                        in: [.default, .work, .tracking][turn % 3], for: turn % 5 == 0 ? 0 : 0.002,
                        returnAfterSourceHandled: turn % 2 == 0)
                }
                // All blocks that were performed are to be run.
                for mode in [RunLoop.Mode.default, .tracking, .work] { loop.poll(mode) }
                return turn
            }
        }
        let loops = try loopThreads.map { try $0.loop }
        let blocks = BlockCount()
        let shared = SharedMembers(loops)
        let workers = (0..<8).map { number in
            LoopThread { _ in
                var random = Random(seed: UInt64(number))
                for _ in 1...5000 {
                    let loop = loops[Int(random.next() % 2)]
                    let mode = [RunLoop.Mode.default, .tracking, .work, .common][Int(random.next() % 4)]
                    if random.next() % 8 == 0 {
                        blocks.performed.wrappingAdd(1, ordering: .relaxed)
                        loop.perform(inModes: random.next() % 2 == 0 ? [mode] : [.work, .common]) {
                            blocks.run.wrappingAdd(1, ordering: .relaxed)
                        }
                    } else {
                        shared.change(&random, loop, mode)
                    }
                }
            }
        }
        for worker in workers { try worker.value() }
        isOver.store(true, ordering: .releasing)
        for loop in loops { loop.stop() }
        for thread in loopThreads { #expect(try thread.value() > 0) }
        #expect(blocks.run.load(ordering: .relaxed) == blocks.performed.load(ordering: .relaxed))
        shared.invalidateAll()
    }

    /// Each of eight threads owns a source of both loops, and signals it again and again: whatever the loops
    /// are doing, the last signal is served.
    @Test func `SRC-3 no signal is lost between two loops that run, stop and nest`() throws {
        let loopThreads = (1...2).map { number in RunLoopThread(name: "stress \(number)", mode: .work) }
        let loops = loopThreads.map { $0.start() }
        let workers = (0..<8).map { number in
            LoopThread { _ -> Bool in
                let (sent, seen) = (SignalCount(), SignalCount())
                let source = RunLoop.Source(order: number) {
                    seen.value.store(sent.value.load(ordering: .acquiring), ordering: .releasing)
                    // A nested run serves the others, and must not lose their signals.
                    if RunLoop.current.currentMode != .inner { RunLoop.current.poll(.inner) }
                }
                for loop in loops {
                    loop.add(source, forMode: .work)
                    loop.add(source, forMode: .inner)
                }
                for round in 1...3000 {
                    sent.value.store(round, ordering: .releasing)
                    source.signal()
                    for loop in loops { loop.wakeUp() }
                    if round % 7 == number { loops[round % 2].stop() }
                }
                let sawLast: Void? = try? waitFor("the last signal of \(number)") {
                    seen.value.load(ordering: .acquiring) == 3000 ? () : nil
                }
                source.invalidate()
                return sawLast != nil
            }
        }
        for worker in workers { #expect(try worker.value()) }
        for thread in loopThreads {
            thread.stop()
            thread.join()
        }
    }

    /// One thread adds under the common name while another removes: the last call wins, in all modes.
    @Test func `RL-24 after additions and removals under the common name at once all modes agree`() throws {
        let thread = RunLoopThread(name: "common", mode: .work)
        let loop = thread.start()
        let members = (1...3000).map { _ in
            (
                RunLoop.Source {}, Timer(timeInterval: 1000, repeats: true) { _ in },
                RunLoop.Observer(activities: .exit) { _, _ in }
            )
        }
        let meeting = Meeting()
        let adding = LoopThread { _ in
            for (round, (source, timer, observer)) in members.enumerated() {
                meeting.wait(round, adds: true)
                loop.add(source, forMode: .common)
                loop.add(timer, forMode: .common)
                loop.add(observer, forMode: .common)
            }
        }
        let removing = LoopThread { _ in
            for (round, (source, timer, observer)) in members.enumerated() {
                meeting.wait(round, adds: false)
                loop.remove(source, forMode: .common)
                loop.remove(timer, forMode: .common)
                loop.remove(observer, forMode: .common)
            }
        }
        try adding.value()
        try removing.value()
        for (source, timer, observer) in members {
            for mode in [RunLoop.Mode.default, .tracking] {
                #expect(loop.contains(source, forMode: mode) == loop.contains(source, forMode: .common))
                #expect(loop.contains(timer, forMode: mode) == loop.contains(timer, forMode: .common))
                #expect(loop.contains(observer, forMode: mode) == loop.contains(observer, forMode: .common))
            }
            source.invalidate()
            timer.invalidate()
            observer.invalidate()
        }
        thread.stop()
        thread.join()
    }
}

/// Two threads begin each round at the same time, as long as both run.
private final class Meeting: Sendable {
    /// As long as the other thread's part of a round takes, and much more.
    private static let mostLooks = 1_000

    private let adding = Atomic(0)
    private let removing = Atomic(0)

    /// Waits until the other thread has come to this round as well; but where it does not run at the moment, not until it does,
    /// which would take a time slice in each round.
    func wait(_ round: Int, adds: Bool) {
        if adds {
            adding.store(round + 1, ordering: .sequentiallyConsistent)
        } else {
            removing.store(round + 1, ordering: .sequentiallyConsistent)
        }
        for _ in 0..<Self.mostLooks {
            let other = adds ? removing.load(ordering: .acquiring) : adding.load(ordering: .acquiring)
            if other > round { return }
        }
    }
}

private final class SignalCount: Sendable {
    let value = Atomic(0)
}

private final class BlockCount: Sendable {
    let performed = Atomic(0)
    let run = Atomic(0)
}

/// Members that all threads of the stress test use at the same time.
private final class SharedMembers: Sendable {
    private struct Members {
        var sources: [RunLoop.Source] = []
        var timers: [Timer] = []
        var observers: [RunLoop.Observer] = []
        var pipes: [BytePipe] = []
    }

    private let members = Mutex(Members())

    init(_ loops: [RunLoop]) {
        members.withLock { members in
            for _ in 0..<6 {
                members.sources.append(Self.source(loops))
                members.timers.append(Self.timer())
                members.observers.append(RunLoop.Observer(activities: .allActivities) { _, _ in })
                let pipe = BytePipe()
                members.pipes.append(pipe)
                members.sources.append(pipe.source("ready", to: EventLog()))
            }
        }
    }

    private static func source(_ loops: [RunLoop]) -> RunLoop.Source {
        // A callback runs the loop now and then.
        RunLoop.Source {
            let loop = RunLoop.current
            loop.perform(inModes: [.inner]) {}
            if loop.currentMode != .inner { loop.poll(.inner) }
        }
    }

    private static func timer() -> Timer { Timer(timeInterval: 0.0003, repeats: true) { _ in } }

    private func pick<Value: Sendable>(_ random: inout Random, _ list: (Members) -> [Value]) -> Value {
        let number = random.next()
        let values = list(members.withLock { $0 })
        return values[Int(number % UInt64(values.count))]
    }

    func change(_ random: inout Random, _ loop: RunLoop, _ mode: RunLoop.Mode) {
        switch random.next() % 16 {
        case 0: loop.add(pick(&random, \.sources), forMode: mode)
        case 1: loop.remove(pick(&random, \.sources), forMode: mode)
        case 2: loop.add(pick(&random, \.timers), forMode: mode)
        case 3: loop.remove(pick(&random, \.timers), forMode: mode)
        case 4: loop.add(pick(&random, \.observers), forMode: mode)
        case 5: loop.remove(pick(&random, \.observers), forMode: mode)
        case 6: pick(&random, \.sources).signal()
        case 7: loop.wakeUp()
        case 8: loop.stop()
        case 9: pick(&random, \.pipes).write()
        case 10:
            let source = pick(&random, \.sources)
            source.interest = source.interest == [] ? .read : []
        case 11: pick(&random, \.timers).fireDate = Date(timeIntervalSinceNow: 0.0001)
        case 12:
            // A member is invalidated, and another one replaces it.
            let new = Self.timer()
            let place = Int(random.next() % 6)
            members.withLock { members in
                let old = members.timers[place]
                members.timers[place] = new
                return old
            }.invalidate()
        case 13:
            let new = Self.source([loop])
            let place = Int(random.next() % 6) * 2
            members.withLock { members in
                let old = members.sources[place]
                members.sources[place] = new
                return old
            }.invalidate()
        case 14:
            let pipe = BytePipe()
            let source = pipe.source("ready", to: EventLog())
            let place = Int(random.next() % 6)
            // The pipe is closed when the last reference goes: after its source was invalidated.
            let (oldSource, oldPipe) = members.withLock { members in
                let old = (members.sources[2 * place + 1], members.pipes[place])
                members.sources[2 * place + 1] = source
                members.pipes[place] = pipe
                return old
            }
            oldSource.invalidate()
            withExtendedLifetime(oldPipe) {}
        default:
            _ = loop.currentMode
            _ = loop.isWaiting
            _ = loop.contains(pick(&random, \.timers), forMode: mode)
            _ = pick(&random, \.timers).fireDate
        }
    }

    func invalidateAll() {
        let all = members.withLock { $0 }
        for source in all.sources { source.invalidate() }
        for timer in all.timers { timer.invalidate() }
        for observer in all.observers { observer.invalidate() }
    }
}
