import Rondo
import RondoLab

/// The text of the progress bar, as a value: one line of at most `width` columns.
struct ProgressLine: Equatable {
    /// Bytes received; bytes in all, or nil if not known.
    var received: Int
    var expected: Int?
    /// Seconds since the beginning.
    var elapsed: Double
    /// Bytes a second.
    var rate: Double
    var isAtEnd = false

    var fraction: Double? {
        guard let expected, expected > 0, received <= expected else { return nil }
        return Double(received) / Double(expected)
    }

    private var secondsLeft: Double? {
        guard let expected, received <= expected, rate > 0 else { return nil }
        return Double(expected - received) / rate
    }

    /// A short time has a decimal: the clock format counts whole seconds, begun ones too, which is too
    /// coarse.
    private var timeTaken: String {
        elapsed < 9.95 ? TextFormats.fixed(elapsed, digits: 1) + " s" : TextFormats.clock(elapsed)
    }

    /// The line's parts in order of importance; parts without room are left out.
    func text(width: Int, terminal: Terminal) -> String {
        let time =
            isAtEnd ? "in " + timeTaken : secondsLeft.map { TextFormats.clock($0) + " left" }
        let amount = TextFormats.bytes(received).rightAligned(7)
        let parts: [String?] = [
            fraction.map { "\(Int($0 * 100)) %".rightAligned(5) },
            expected.map { "\(amount) of \(TextFormats.bytes($0))" } ?? amount,
            (TextFormats.bytes(rate) + "/s").rightAligned(9),
            (time ?? TextFormats.clock(elapsed)).rightAligned(10),
        ]
        var room = max(width, 0)
        var kept: [String] = []
        for part in parts.compactMap(\.self) where part.count + (kept.isEmpty ? 0 : 2) <= room {
            room -= part.count + (kept.isEmpty ? 0 : 2)
            kept.append(part)
        }
        let figures = kept.joined(separator: "  ")
        guard let fraction, room >= 12 else { return figures }
        let bar = TextBar(fraction: fraction, width: min(room - 2, 50), usesUnicode: terminal.hasUnicode)
        return terminal.tinted(bar.filled, .good) + terminal.tinted(bar.empty, .quiet) + "  " + figures
    }
}

/// Measures bytes a second over the last few seconds.
struct RateMeter {
    private static let window = 3.0
    /// The least seconds between two samples that are kept, so that they are few however often they are
    /// noted.
    private static let interval = 0.05
    private(set) var samples: [(time: Double, total: Int)]

    /// - Parameter total: The bytes that had arrived at the time `start`.
    init(from start: Double = 0, with total: Int = 0) { samples = [(start, total)] }

    /// Records that `total` bytes had arrived after `time` seconds.
    mutating func note(_ total: Int, at time: Double) {
        // The last sample is always the newest one; the one before it decides whether it is kept.
        if samples.count > 1, time - samples[samples.count - 2].time < Self.interval { samples.removeLast() }
        samples.append((time, total))
        while samples.count > 2, samples[1].time <= time - Self.window { samples.removeFirst() }
    }

    var rate: Double {
        guard let first = samples.first, let last = samples.last, last.time > first.time else { return 0 }
        return Double(last.total - first.total) / (last.time - first.time)
    }
}
