import Rondo
import RondoLab
import RondoMutex

// The load runs on a thread of its own whose run loop runs in the wished mode, and nowhere else. The main
// thread only waits for it, so that Ctrl-C is answered at once even while the loader's thread is held up by
// a slow disk or by a reader of its output that does not read.

/// One load as a `FetchPlan` asks for it, on a thread of its own.
final class FetchRun: Sendable {
    private struct State {
        var connection: URLConnection?
        var interruption: Int32?
        var status: Int32 = ExitStatus.failed
    }

    /// Seconds that an interrupted load has for tidying up.
    private static let graceTime = 0.5

    private let plan: FetchPlan
    private let heads = HeadLog()
    private let state = Mutex(State())

    init(plan: FetchPlan) {
        self.plan = plan
    }

    /// Loads, and returns the status to exit with.
    func run() -> Int32 {
        Signals.ignoreBrokenPipes()
        Signals.onInterruption { signal in self.interrupt(by: signal) }
        let end = DispatchSemaphore(value: 0)
        // The loop of the main thread would stand in the way of the signals' thread.
        do throws(SystemError) {
            try SystemThread.start(name: "fetch") {
                self.load()
                end.signal()
            }
            end.wait()
        } catch {
            // There is no thread for it: this one does it.
            load()
        }
        return state.withLock { $0.status }
    }

    private func interrupt(by signal: Int32) {
        let connection = state.withLock {
            $0.interruption = signal
            return $0.connection
        }
        connection?.cancel()
        Thread.sleep(forTimeInterval: Self.graceTime)
        _exit(ExitStatus.ended(by: signal))
    }

    private func finish(_ status: Int32) {
        state.withLock { $0.status = status }
    }

    // MARK: On the loader's thread

    private func load() {
        let progress = plan.showsProgress ? ProgressBar(terminal: .standardError) : nil
        let delegate = FetchDelegate(plan: plan, heads: heads, progress: progress)
        guard
            let connection = URLConnection(request: plan.request, delegate: delegate, startImmediately: false)
        else {
            let url = plan.request.url?.absoluteString ?? ""
            delegate.fail(FetchFailure(.unsupportedURL, "nothing here can load \(url)"))
            return finish(delegate)
        }
        configure(connection)
        connection.schedule(in: RunLoop.current, forMode: plan.mode)
        state.withLock { $0.connection = connection }
        connection.start()
        runLoop(until: delegate, connection, progress)
        finish(delegate)
    }

    private func configure(_ connection: URLConnection) {
        if let path = plan.certificateAuthorities {
            connection.configuration.tls.certificateAuthorities = [.file(path)]
        }
        if !plan.verifies { connection.configuration.tls.verification = .none }
        connection.configuration.omittedFields = plan.omittedFields
        connection.configuration.proxy = plan.proxy
        guard plan.isVerbose || plan.printsHeads else { return }
        connection.configuration.onDiagnostic = { [plan, heads] diagnostic in
            if plan.isVerbose { Terminal.standardError.write(DiagnosticLines.text(for: diagnostic)) }
            if plan.printsHeads, diagnostic.kind == .responseHead { heads.append(diagnostic.head ?? "") }
        }
    }

    /// Runs the loop in the wished mode until the delegate has had its last call.
    private func runLoop(until delegate: FetchDelegate, _ connection: URLConnection, _ progress: ProgressBar?)
    {
        let stopwatch = Stopwatch()
        while delegate.outcome == nil {
            if let signal = state.withLock({ $0.interruption }) {
                connection.cancel()
                delegate.fail(FetchFailure(.cancelled, "interrupted by signal \(signal)"))
                return
            }
            let left = plan.maximumTime.map { $0 - stopwatch.elapsed } ?? .infinity
            guard left > 0 else {
                connection.cancel()
                delegate.fail(outOfTime(delegate))
                return
            }
            let turn = min(progress == nil ? 1 : ProgressBar.interval, left)
            if !RunLoop.current.run(mode: plan.mode, before: Date(timeIntervalSinceNow: turn)),
                delegate.outcome == nil, state.withLock({ $0.interruption }) == nil
            {
                delegate.fail(
                    FetchFailure(.unknown, "the load left mode \(plan.mode.spokenName) without an end"))
            }
            progress?.tick()
        }
    }

    private func outOfTime(_ delegate: FetchDelegate) -> FetchFailure {
        let host = plan.request.url?.host ?? "the load"
        // As a person types it: no exponent, every digit that was given.
        let limit = Decimal(string: "\(plan.maximumTime ?? 0)")?.description ?? ""
        return FetchFailure(
            .timedOut,
            "\(host): not finished within the \(limit) s of --max-time; \(delegate.received) bytes had come")
    }

    private func finish(_ delegate: FetchDelegate) {
        let interruption = state.withLock { $0.interruption }
        var status = ExitStatus.failed
        var message: String?
        switch delegate.outcome {
        case .finished: status = 0
        case .failed(let failure):
            message = failure.message
            Terminal.standardError.write("rondo: \(failure.message)\n")
            if let interruption { status = ExitStatus.ended(by: interruption) }
        case nil: break
        }
        if plan.isVerbose, let metrics = delegate.metrics {
            Terminal.standardError.write(MetricsLines.text(for: metrics))
        }
        if let writeOut = plan.writeOut {
            let result = WriteOut.Result(
                metrics: delegate.metrics, contentType: delegate.contentType, failure: message,
                exitStatus: status)
            Terminal.standardOutput.write(writeOut.text(for: result))
        }
        finish(status)
    }
}
