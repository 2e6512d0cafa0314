import Rondo
import RondoMutex
import RondoProbeSupport

extension RunLoop.Mode {
    static let work = RunLoop.Mode("work")
}

/// Threads whose loops run in two modes by turns, until they are stopped.
final class Loops: Sendable {
    static let modes: [RunLoop.Mode] = [.default, .work]

    private struct State {
        var loops: [RunLoop] = []
        var isOver = false
    }

    private let state = Mutex(State())
    private let ended = DispatchGroup()
    private let started = DispatchSemaphore(value: 0)

    init(_ count: Int) {
        for _ in 0..<count {
            ended.enter()
            Thread.detachNewThread { [self] in
                let loop = RunLoop.current
                for mode in Self.modes { loop.add(Port(), forMode: mode) }
                state.withLock { $0.loops.append(loop) }
                started.signal()
                while !state.withLock({ $0.isOver }) {
                    for mode in Self.modes {
                        _ = loop.run(in: mode, for: 0.001, returnAfterSourceHandled: false)
                    }
                }
                ended.leave()
            }
        }
        for _ in 0..<count { started.wait() }
    }

    func stop() {
        state.withLock { $0.isOver = true }
        ended.wait()
    }

    /// A random loop and mode.
    func place(_ random: inout Random) -> (RunLoop, RunLoop.Mode) {
        let loops = state.withLock { $0.loops }
        return (loops[random.number(below: loops.count)], Self.modes[random.number(below: 2)])
    }

    /// Waits until each loop has run in each mode, and so has the shared background loop, and each has served its events.
    func settle() {
        let done = DispatchGroup()
        func settle(_ loop: RunLoop, _ mode: RunLoop.Mode) {
            done.enter()
            loop.perform(inModes: [mode]) { done.leave() }
        }
        for loop in state.withLock({ $0.loops }) { for mode in Self.modes { settle(loop, mode) } }
        settle(.loader, .default)
        RunLoop.loader.wakeUp()
        done.wait()
    }
}
