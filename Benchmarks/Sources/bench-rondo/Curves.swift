import BenchmarkSupport
import Rondo

// `nonisolated(unsafe)`: touched by the loop's thread only.

/// In rounds: `count` timers with delays below `count` microseconds, until all have fired.
func curveTimers(_ count: Int) {
    let loop = RunLoop.current
    let rounds = max(1, curveItems / count)
    var random = SplitMix()
    nonisolated(unsafe) var left = 0
    let meter = Meter()
    for _ in 0..<rounds {
        left = count
        for _ in 0..<count {
            let timer = Timer(timeInterval: random.unit() * Double(count) * 1e-6, repeats: false) { _ in
                left -= 1
                if left == 0 { loop.stop() }
            }
            loop.add(timer, forMode: .default)
        }
        runUntilStopped()
        precondition(left == 0)
    }
    reportCurve("timers", count, peer, items: rounds * count, wall: meter.wall, cpu: meter.cpu)
}

/// A hundred tokens go round through `count` descriptors: one read and one write an event.
func curveSources(_ count: Int) {
    let loop = RunLoop.current
    let descriptors = tokenDescriptors(count)
    nonisolated(unsafe) var left = curveItems
    for index in 0..<count {
        let (descriptor, next) = (descriptors[index], descriptors[(index + 1) % count])
        let source = RunLoop.Source(fileDescriptor: descriptor, interest: .read) { _, _ in
            guard takeToken(descriptor) else { return }
            putToken(next)
            left -= 1
            if left == 0 { loop.stop() }
        }
        loop.add(source, forMode: .default)
    }
    _ = loop.run(in: .default, for: 0, returnAfterSourceHandled: false)
    for token in 0..<100 { putToken(descriptors[token * count / 100]) }
    let meter = Meter()
    runUntilStopped()
    reportCurve("sources", count, peer, items: curveItems, wall: meter.wall, cpu: meter.cpu)
}

/// `count` modes that hold a far timer each; an empty pass in each in turn.
func curveModes(_ count: Int) {
    let loop = RunLoop.current
    let modes = (0..<count).map { RunLoop.Mode("bench.\($0)") }
    for mode in modes {
        loop.add(Timer(timeInterval: 3600, repeats: false) { _ in }, forMode: mode)
        _ = loop.run(mode: mode, before: .distantPast)
    }
    let meter = Meter()
    for pass in 0..<curveItems { _ = loop.run(mode: modes[pass % count], before: .distantPast) }
    reportCurve("modes", count, peer, items: curveItems, wall: meter.wall, cpu: meter.cpu)
}
