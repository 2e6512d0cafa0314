import BenchmarkSupport
import Rondo

/// Empty passes: in a mode of their own, while 10,000 timers stand in the default mode.
func guardPasses() {
    let loop = RunLoop.current
    let count = 10_000
    let other = RunLoop.Mode("guard.other")
    let timers = (0..<10_000).map { Timer(timeInterval: 3600 + Double($0), repeats: false) { _ in } }
    for timer in timers { loop.add(timer, forMode: .default) }
    let far = Timer(timeInterval: 3600, repeats: false) { _ in }
    loop.add(far, forMode: other)
    for (name, mode) in [("pass.other-mode", other), ("pass.same-mode", RunLoop.Mode.default)] {
        guarded(name, count: count) {
            for _ in 0..<count { _ = loop.run(mode: mode, before: .distantPast) }
        }
    }
    // Passes of one activation, as signals cause them.
    nonisolated(unsafe) var left = 0
    nonisolated(unsafe) var again: RunLoop.Source?
    let source = RunLoop.Source(perform: {
        left -= 1
        if left > 0 { again?.signal() } else { loop.stop() }
    })
    again = source
    loop.add(source, forMode: other)
    guarded("source.performed", count: count) {
        left = count
        source.signal()
        _ = loop.run(in: other, for: .infinity, returnAfterSourceHandled: false)
    }
    source.invalidate()
    again = nil
    for timer in timers + [far] { timer.invalidate() }
}
