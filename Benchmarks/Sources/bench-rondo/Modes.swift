import BenchmarkSupport
import Rondo

// W8.

func pass(_ count: Int) {
    let loop = RunLoop.current
    var random = SplitMix()
    let other = RunLoop.Mode("bench.other")
    for _ in 0..<count {
        loop.add(Timer(timeInterval: 3600 + random.unit(), repeats: false) { _ in }, forMode: .default)
    }
    loop.add(Timer(timeInterval: 3600, repeats: false) { _ in }, forMode: other)
    let passes = 1_000_000
    for (mode, name) in [(other, "other-mode"), (RunLoop.Mode.default, "same-mode")] {
        for _ in 0..<10 { _ = loop.run(mode: mode, before: .distantPast) }
        let meter = Meter()
        for _ in 0..<passes { _ = loop.run(mode: mode, before: .distantPast) }
        let (wall, cpu) = (meter.wall, meter.cpu)
        report(
            "W8.pass.\(count).\(name)", peer, wall * 1e9 / Double(passes), "ns/pass", wall: wall, cpu: cpu)
    }
}
