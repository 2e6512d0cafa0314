import Rondo
import RondoLab
import RondoMutex

// The loads run on a thread of their own, whose run loop runs only in the mode of `--mode`. The main thread
// only waits for it, so that Ctrl-C is answered at once, even while the loader's thread is blocked by a slow
// disk or by a reader that does not read.

/// Runs the transfers of a command line on a thread of their own.
final class FetchRun: Sendable {
    private struct State {
        var interruption: Int32?
        var status: Int32 = ExitStatus.failed
    }

    /// Seconds that interrupted transfers have to clean up.
    private static let graceTime = 0.5
    /// Seconds between two checks of conditions that cause no event: progress, slowness, interruptions.
    private static let interval = ProgressBar.interval

    private let commandLine: FetchCommandLine
    private let messages: Messages
    private let state = Mutex(State())
    /// Left when the transfers have ended.
    private let end = DispatchGroup()
    /// A source in the mode of the transfers for as long as they run. An interruption signals it, and it
    /// keeps the mode from being empty between two transfers.
    private let interruption = RunLoop.Source {}

    /// - Throws: `CommandFailure` if the file for messages cannot be written.
    init(_ commandLine: FetchCommandLine) throws {
        self.commandLine = commandLine
        messages = try Messages(commandLine.common)
    }

    /// Runs the transfers, and returns the exit status.
    func run() -> Int32 {
        Signals.ignoreBrokenPipes()
        end.enter()
        Signals.onInterruption { signal in self.interrupt(by: signal) }
        // The main thread's loop would get in the way of the thread that handles signals.
        do throws(SystemError) {
            try SystemThread.start(name: "fetch") {
                self.load()
                self.end.leave()
            }
            end.wait()
        } catch {
            // If no thread can be made, the main thread loads.
            load()
            end.leave()
        }
        return state.withLock { $0.status }
    }

    private func interrupt(by signal: Int32) {
        state.withLock { $0.interruption = signal }
        interruption.signalAndWakeUp()
        // If the transfers end in time, the main thread ends the program.
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
                transfers.abort("interrupted")
                return state.withLock { $0.status = ExitStatus.ended(by: signal) }
            }
            RunLoop.current.run(mode: context.mode, before: Date(timeIntervalSinceNow: Self.interval))
            transfers.tick()
            transfers.fill()
        }
        state.withLock { $0.status = transfers.status }
    }
}

/// The running transfers, and those that wait. On the loop's thread only.
final class TransferQueue {
    private let common: CommonSettings
    private let context: FetchContext
    private var jobs: TransferJobs
    private var running: [FetchTransfer] = []
    private var isExhausted = false
    /// Whether all transfers were ended, for one reason.
    private var isAborted = false
    /// The status of the last transfer; of the last failure if several run at once, and of the first one
    /// if that ends all.
    private(set) var status: Int32 = 0

    init(_ commandLine: FetchCommandLine, in context: FetchContext) {
        common = commandLine.common
        self.context = context
        jobs = TransferJobs(commandLine.operations)
    }

    var isOver: Bool { isExhausted && running.isEmpty }

    /// Starts as many transfers as may run at once.
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
                endEarly()
            }
        }
    }

    private func start(_ job: TransferJob) {
        let transfer = FetchTransfer(job, in: context, progress: progress(for: job))
        running.append(transfer)
        transfer.start { [unowned self, unowned transfer] in ended(transfer) }
    }

    func tick() { for transfer in running { transfer.tick() } }

    /// Ends all transfers, and begins none.
    func abort(_ reason: String) {
        isExhausted = true
        isAborted = true
        for transfer in running { transfer.abort(reason) }
    }

    /// With --fail-early, a failure ends all transfers.
    private func endEarly() {
        guard common.failsEarly, status != 0, !isAborted else { return }
        abort("ended by a failure of another transfer (--fail-early)")
    }

    private func ended(_ transfer: FetchTransfer) {
        let operation = transfer.job.operation
        if case .failure(let failure) = transfer.outcome {
            context.messages.tell(failure)
            if !isAborted { status = failure.status.rawValue }
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
            write(writeOut.lines(for: transfer.record))
        }
        running.removeAll { $0 === transfer }
        endEarly()
        // Ends the run of the loop, even if a timer ended the transfer: the next transfer begins now, or the
        // program ends.
        RunLoop.current.stop()
    }

    private func write(_ lines: [WriteOut.Line]) {
        do throws(FetchFailure) {
            for line in lines {
                if line.isError {
                    Terminal.standardError.write(line.text)
                } else {
                    try context.print(line.text)
                }
            }
        } catch {
            context.messages.tell(error)
            if status == 0 { status = error.status.rawValue }
        }
    }

    /// Progress is drawn only on a terminal to which nothing else is written meanwhile.
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
    /// Makes a timer of this thread's loop that fires once.
    static func scheduled(after seconds: Double, in mode: RunLoop.Mode, _ body: @escaping () -> Void) -> Timer
    {
        let call = LoopCall(body)
        let timer = Timer(timeInterval: seconds, repeats: false) { _ in call.body() }
        RunLoop.current.add(timer, forMode: mode)
        return timer
    }
}

/// A closure that is made and called on the thread of one loop.
///
/// `@unchecked Sendable`: a timer fires only on the thread of its loop, which is the thread that made this
/// object.
private final class LoopCall: @unchecked Sendable {
    let body: () -> Void

    init(_ body: @escaping () -> Void) { self.body = body }
}
