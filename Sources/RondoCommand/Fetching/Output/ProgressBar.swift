import Rondo
import RondoLab

/// Draws the progress of a load on a terminal, at most ten times a second. On the loop's thread only.
final class ProgressBar {
    /// Seconds between two drawings.
    static let interval = 0.1

    private var received = 0
    private var expected: Int?
    private let terminal: Terminal
    private let stopwatch = Stopwatch()
    private var drawnAt = 0.0
    private var meter = RateMeter()
    private var hasBegun = false

    init(terminal: Terminal) {
        self.terminal = terminal
    }

    /// Called at each response of a load; the last one counts.
    func begin(expected: Int?) {
        self.expected = expected
        hasBegun = true
    }

    /// Begins again with nothing, because the transfer is tried again.
    func restart() {
        received = 0
        meter = RateMeter(from: stopwatch.elapsed)
    }

    /// - Parameter total: The bytes of the body that have arrived so far.
    func note(received total: Int) { received = total }

    /// Draws if the interval has passed.
    func tick() {
        let now = stopwatch.elapsed
        guard hasBegun, now - drawnAt >= Self.interval else { return }
        drawnAt = now
        meter.note(received, at: now)
        draw(ProgressLine(received: received, expected: expected, elapsed: now, rate: meter.rate))
    }

    /// Leaves the last drawing on the terminal, with the mean rate, and begins a new line.
    func end() {
        guard hasBegun else { return }
        let now = stopwatch.elapsed
        let mean = now > 0 ? Double(received) / now : 0
        draw(
            ProgressLine(received: received, expected: expected, elapsed: now, rate: mean, isAtEnd: true))
        terminal.write("\n")
    }

    private func draw(_ line: ProgressLine) {
        // In some terminals a line as wide as the window would wrap.
        terminal.write("\r" + line.text(width: terminal.size.columns - 1, terminal: terminal) + "\u{1B}[K")
    }
}
