package import Rondo

// The scrolling experiment shows the point of modes.
//
// Two connections load the same file on the same run loop. A is scheduled in the default mode, B in the
// common modes. The loop runs in default and in tracking by turns, as the main loop of a program does when
// its user scrolls now and then. One thread runs the loop and everything on it, and nothing is simulated: the
// bytes come from a server in another process.

/// Runs the scrolling experiment on the current thread's run loop.
package final class ScrollingDemo {
    package struct Plan: Sendable {
        /// The file that both connections load, and its size in bytes.
        package var url: URL
        package var size: Int
        /// Bytes a second that the server sends on each connection.
        package var rate: Int
        /// Seconds that the loop runs in one mode before it changes to the other.
        package var span = 0.7
        /// Seconds after which the experiment fails.
        package var limit = 60.0

        package init(url: URL, size: Int, rate: Int) {
            self.url = url
            self.size = size
            self.rate = rate
        }
    }

    package enum Failure: Error, CustomStringConvertible {
        case noConnection(URL)
        case emptyMode(RunLoop.Mode)

        package var description: String {
            switch self {
            case .noConnection(let url): "no connection can be made for \(url.absoluteString)"
            case .emptyMode(let mode):
                "the run loop found nothing to wait for in \(mode.spokenName), though a port was added to it"
            }
        }
    }

    private static let framesPerSecond = 15.0

    private let plan: Plan
    private let clock = Stopwatch()
    private var view: ScrollingView
    private var record: Record

    package init(plan: Plan, terminal: Terminal, silent: Bool) {
        self.plan = plan
        view = ScrollingView(terminal: terminal, silent: silent, rate: Double(plan.rate))
        record = Record(
            ScrollingReport(
                size: plan.size,
                loads: [
                    ScrollingLoad(name: "A", scheduledIn: .default),
                    ScrollingLoad(name: "B", scheduledIn: .common),
                ]))
    }

    /// Loads the files, draws the picture and returns the counts.
    package func run() throws -> ScrollingReport {
        let loop = RunLoop.current
        // Both modes need a source, or running in them would return at once (rule RL-12).
        let port = Port()
        for mode in [RunLoop.Mode.default, .tracking] { loop.add(port, forMode: mode) }
        let connections = try startLoads(on: loop)
        defer {
            for connection in connections { connection.cancel() }
            for mode in [RunLoop.Mode.default, .tracking] { loop.remove(port, forMode: mode) }
        }

        view.begin(record.report)
        var mode = RunLoop.Mode.default
        while record.isInProgress, elapsed < plan.limit {
            try runSpan(in: mode, of: loop)
            mode = mode == .default ? .tracking : .default
        }
        record.giveUp(after: plan.limit)
        view.end(record.report)
        return record.report
    }

    private func startLoads(on loop: RunLoop) throws -> [URLConnection] {
        try record.report.loads.indices.map { index in
            let request = URLRequest(url: plan.url, cachePolicy: .reloadIgnoringLocalCacheData)
            let delegate = Delegate(index: index, clock: clock, record: record)
            guard
                let connection = URLConnection(request: request, delegate: delegate, startImmediately: false)
            else { throw Failure.noConnection(plan.url) }
            connection.schedule(in: loop, forMode: record.report.loads[index].scheduledIn)
            connection.start()
            return connection
        }
    }

    /// Runs the loop in `mode` for a span and draws between the turns.
    private func runSpan(in mode: RunLoop.Mode, of loop: RunLoop) throws {
        let spanBegan = elapsed
        let spanEnd = spanBegan + plan.span
        let inProgress = record.report.loads.indices.filter { record.report.loads[$0].isInProgress }
        while elapsed < spanEnd, record.isInProgress {
            record.strip.advance(to: elapsed, mode: mode)
            view.frame(record.report, record.strip, mode: mode)
            let nextFrame = min(elapsed + 1 / Self.framesPerSecond, spanEnd)
            while elapsed < nextFrame, record.isInProgress {
                guard loop.run(mode: mode, before: Date(timeIntervalSinceNow: nextFrame - elapsed)) else {
                    throw Failure.emptyMode(mode)
                }
            }
        }
        record.spanEnded(mode, seconds: elapsed - spanBegan, inProgress: inProgress)
        view.frame(record.report, record.strip, mode: mode)
        view.spanEnded(record.report, mode: mode, elapsed: elapsed)
    }

    private var elapsed: Double { clock.elapsed }
}

extension ScrollingDemo {
    /// The counts of both delegates. Only the loop's thread uses them.
    private final class Record {
        var report: ScrollingReport
        var strip: ActivityStrip

        init(_ report: ScrollingReport) {
            self.report = report
            strip = ActivityStrip(loads: report.loads.count)
        }

        var isInProgress: Bool { report.loads.contains(where: \.isInProgress) }

        /// Counts a span of tracking for the loads that were running when it began.
        func spanEnded(_ mode: RunLoop.Mode, seconds: Double, inProgress indices: [Int]) {
            guard mode == .tracking else { return }
            for index in indices {
                report.loads[index].trackingSpans += 1
                report.loads[index].trackingSeconds += seconds
            }
        }

        func giveUp(after limit: Double) {
            for index in report.loads.indices where report.loads[index].isInProgress {
                report.loads[index].failure = "not finished after \(TextFormats.fixed(limit, digits: 0)) s"
            }
        }
    }

    private final class Delegate: NSObject, URLConnectionDataDelegate {
        private let index: Int
        private let clock: Stopwatch
        private let record: Record

        init(index: Int, clock: Stopwatch, record: Record) {
            self.index = index
            self.clock = clock
            self.record = record
        }

        func connection(_ connection: URLConnection, didReceive data: Data) {
            // The evidence: the loop itself says which mode runs now.
            let mode = RunLoop.current.currentMode ?? RunLoop.Mode("no mode")
            record.report.loads[index].bytes[mode, default: 0] += data.count
            record.strip.record(data.count, load: index, at: clock.elapsed, mode: mode)
        }

        func connectionDidFinishLoading(_ connection: URLConnection) {
            record.report.loads[index].seconds = clock.elapsed
        }

        func connection(_ connection: URLConnection, didFailWithError error: any Error) {
            record.report.loads[index].failure = error.localizedDescription
        }
    }
}
