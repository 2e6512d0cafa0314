import Rondo
import RondoLab
import RondoMutex

// The loads run on a thread of its own whose run loop runs in the wished mode, and nowhere else. The main
// thread only waits for it, so that Ctrl-C is answered at once even while the loader's thread is held up by
// a slow disk or by a reader of its output that does not read.

/// The transfers of a command line, on a thread of their own.
final class FetchRun: Sendable {
    private struct State {
        var interruption: Int32?
        var status: Int32 = ExitStatus.failed
    }

    /// Seconds that interrupted transfers have for tidying up.
    private static let graceTime = 0.5
    /// Seconds between two looks at what is not told of: progress, slowness, interruptions.
    private static let interval = ProgressBar.interval

    private let commandLine: FetchCommandLine
    private let messages: Messages
    private let state = Mutex(State())
    /// The transfers are over.
    private let end = DispatchGroup()
    /// In the mode of the transfers as long as they go on: it is signalled by an interruption, and keeps the mode from
    /// being empty between two of them.
    private let interruption = RunLoop.Source {}

    /// - Throws: `CommandFailure` if there is no place for messages.
    init(_ commandLine: FetchCommandLine) throws {
        self.commandLine = commandLine
        messages = try Messages(commandLine.common)
    }

    /// Loads, and returns the status to exit with.
    func run() -> Int32 {
        Signals.ignoreBrokenPipes()
        end.enter()
        Signals.onInterruption { signal in self.interrupt(by: signal) }
        // The loop of the main thread would stand in the way of the signals' thread.
        do throws(SystemError) {
            try SystemThread.start(name: "fetch") {
                self.load()
                self.end.leave()
            }
            end.wait()
        } catch {
            // There is no thread for it: this one does it.
            load()
            end.leave()
        }
        return state.withLock { $0.status }
    }

    private func interrupt(by signal: Int32) {
        state.withLock { $0.interruption = signal }
        interruption.signalAndWakeUp()
        // Where they end in time the main thread ends the program.
        if end.wait(timeout: .now() + Self.graceTime) == .timedOut { _exit(ExitStatus.ended(by: signal)) }
    }

    // MARK: - On the loader's thread

    private func load() {
        let common = commandLine.common
        let context = FetchContext(common, mode: RunLoop.Mode(spokenName: common.mode), messages: messages)
        let transfers = TransferQueue(commandLine, in: context)
        for warning in commandLine.operations.flatMap(\.warnings) { messages.warn(warning) }
        RunLoop.current.add(interruption, forMode: context.mode)
        defer { interruption.invalidate() }
        transfers.fill()
        while !transfers.isOver {
            if let signal = state.withLock({ $0.interruption }) {
                transfers.interrupt()
                return state.withLock { $0.status = ExitStatus.ended(by: signal) }
            }
            RunLoop.current.run(mode: context.mode, before: Date(timeIntervalSinceNow: Self.interval))
            transfers.tick()
            transfers.fill()
        }
        state.withLock { $0.status = transfers.status }
    }
}

/// The transfers that are under way, and those that wait for their turn. On the loop's thread only.
final class TransferQueue {
    private let common: CommonSettings
    private let context: FetchContext
    private var jobs: TransferJobs
    private var running: [FetchTransfer] = []
    private var isExhausted = false
    /// Of the last transfer, or of the last failure where several run at once.
    private(set) var status: Int32 = 0

    init(_ commandLine: FetchCommandLine, in context: FetchContext) {
        common = commandLine.common
        self.context = context
        jobs = TransferJobs(commandLine.operations)
    }

    var isOver: Bool { isExhausted && running.isEmpty }

    /// Starts as many as may run.
    func fill() {
        let maximum = common.isParallel ? common.maximumParallel : 1
        while !isExhausted, running.count < maximum {
            do throws(FetchFailure) {
                guard let job = try jobs.next() else {
                    isExhausted = true
                    return
                }
                start(job)
            } catch {
                context.messages.tell(error)
                status = error.status.rawValue
                isExhausted = true
            }
        }
    }

    private func start(_ job: TransferJob) {
        let transfer = FetchTransfer(job, in: context, progress: progress(for: job))
        running.append(transfer)
        transfer.start { [unowned self, unowned transfer] in ended(transfer) }
    }

    func tick() { for transfer in running { transfer.tick() } }

    func interrupt() {
        isExhausted = true
        for transfer in running { transfer.interrupt() }
    }

    private func ended(_ transfer: FetchTransfer) {
        let operation = transfer.job.operation
        if case .failure(let failure) = transfer.outcome {
            context.messages.tell(failure)
            status = failure.status.rawValue
            if common.failsEarly { isExhausted = true }
        } else if !common.isParallel {
            status = 0
        }
        context.saveCookies(of: operation)
        if let writeOut = operation.writeOut {
            for name in writeOut.unknownNames {
                context.messages.write("rondo: unknown --write-out variable: '\(name)'\n")
            }
            for name in writeOut.emptyNames {
                context.messages.write(
                    "rondo: --write-out variable '\(name)' stays empty: use `openssl s_client -showcerts`\n")
            }
            for line in writeOut.lines(for: transfer.record) {
                (line.isError ? Terminal.standardError : Terminal.standardOutput).write(line.text)
            }
        }
        running.removeAll { $0 === transfer }
        // The next one begins now, or the program ends, also where a timer has ended this one.
        RunLoop.current.stop()
    }

    /// Progress goes to a terminal, and only where nothing else goes there at the same time.
    private func progress(for job: TransferJob) -> ProgressBar? {
        let asksForHead = job.operation.asksForHead
        guard common.showsProgress, !common.isSilent, !common.isVerbose, !common.isParallel, !asksForHead,
            common.messagePath == nil, Terminal.standardError.isTerminal
        else { return nil }
        let isToTerminal = Terminal.standardOutput.isTerminal
        switch job.output {
        case .file("-"), nil: if isToTerminal { return nil }
        case .file, .remoteName: if common.printsEvents, isToTerminal { return nil }
        }
        return ProgressBar(terminal: .standardError)
    }
}

extension Timer {
    /// A timer of this thread's loop, that fires once.
    static func scheduled(after seconds: Double, in mode: RunLoop.Mode, _ body: @escaping () -> Void) -> Timer
    {
        let call = LoopCall(body)
        let timer = Timer(timeInterval: seconds, repeats: false) { _ in call.body() }
        RunLoop.current.add(timer, forMode: mode)
        return timer
    }
}

/// A closure that is made and called on one loop's thread.
///
/// `@unchecked Sendable`: a timer fires on the thread of its loop only, which is the one that has made this.
private final class LoopCall: @unchecked Sendable {
    let body: () -> Void

    init(_ body: @escaping () -> Void) { self.body = body }
}
