public import RondoCore
internal import RondoMutex

/// Runs `body` with a run loop that runs in its default mode on a thread of its own, and ends that thread afterwards.
///
/// Swift Testing runs no test on the main thread's loop, those of the main actor included, so what a test schedules on
/// `RunLoop.main` never comes. Here the loop runs by itself while the test awaits:
///
/// ```swift
/// @Test func load() async throws {
///     try await withRunLoop { loop in
///         await confirmation { confirmed in
///             await withCheckedContinuation { continuation in
///                 loop.perform { confirmed(); continuation.resume() }
///             }
///         }
///     }
/// }
/// ```
///
/// - Parameters:
///   - name: The thread's, for messages.
///   - clock: The loop's clock, if the test holds one: then timers of hours take no time.
///   - failsOnLeftovers: Whether sources, timers and blocks that are left on the loop at the end are an error. It is thrown,
///     which every test library reports as an issue of the test: this one links none of them (rule XT-9).
///   - timeLimit: Seconds after which the test has failed, be it that `body` has not ended or that a callback has not returned:
///     what every loop of the process holds is printed then, with why it is not delivered, and `body`'s task is cancelled. Nil
///     or `infinity`: no limit.
/// - Throws: What `body` throws; `RunLoopLeftovers`; `RunLoopTimeLimit`; a POSIX error where the system has no thread left.
/// - Note: When it returns the thread has ended, but after `RunLoopTimeLimit`, where a callback may not return (rules XT-7 to
///   XT-10, XT-12).
public func withRunLoop<Value: Sendable>(
    named name: String = "test", clock: ManualClock? = nil, failsOnLeftovers: Bool = false,
    timeLimit: TimeInterval? = 60, _ body: @escaping @Sendable (RunLoop) async throws -> Value
) async throws -> Value {
    let thread = RunLoopThread(name: name)
    clock?.attach(to: thread)
    let loop = try thread.startIfPossible()
    let own = Set(LoopReport.members(of: loop).map(\.id))
    do {
        return try await withTimeLimit(timeLimit) {
            let result: Result<Value, any Error>
            do {
                result = .success(try await body(loop))
            } catch {
                result = .failure(error)
            }
            let leftovers =
                failsOnLeftovers
                ? LoopReport.members(of: loop).filter { !own.contains($0.id) }.map(\.text) : []
            await end(thread)
            let value = try result.get()
            if !leftovers.isEmpty { throw RunLoopLeftovers(members: leftovers) }
            return value
        }
    } catch let limit as RunLoopTimeLimit {
        // Not waited for: `body`, or a callback, may not return.
        thread.stop()
        throw limit
    }
}

/// Stops the loop of `thread`, and waits until the thread has ended.
private func end(_ thread: RunLoopThread) async {
    thread.stop()
    await withCheckedContinuation { continuation in
        // It blocks, and tasks' threads are few.
        Thread.detachNewThread {
            thread.join()
            continuation.resume()
        }
    }
}

/// What was left on the loop of `withRunLoop(failsOnLeftovers: true)`.
public struct RunLoopLeftovers: Error, CustomStringConvertible {
    /// A line for each source, timer and kind of block, with its mode.
    public let members: [String]

    public var description: String {
        "left on the run loop at the end of the test: \(members.joined(separator: "; "))"
    }
}

/// A test has not ended in its time.
public struct RunLoopTimeLimit: Error, CustomStringConvertible {
    /// The limit, in seconds.
    public let seconds: TimeInterval
    /// What every run loop of the process held then, and why it was not delivered.
    public let report: String

    public var description: String { "not done after \(seconds.formatted()) s\n\(report)" }
}

/// What every run loop of the process holds at this moment, and why it is not delivered: for a test that waits in vain.
public func explainRunLoops() -> String { LoopReport.ofAllLoops }

/// Seconds that no test takes: thirty years. `Duration` does not take every number.
private let endlessLimit: TimeInterval = 1e9

/// Runs `body` in a task of its own, and does not wait for it beyond the limit.
private func withTimeLimit<Value: Sendable>(
    _ seconds: TimeInterval?, _ body: @escaping @Sendable () async throws -> Value
) async throws -> Value {
    // Not a number is not less either.
    guard let seconds, seconds < endlessLimit else { return try await body() }
    let race = Race<Value>()
    let task = Task {
        do {
            race.end(.success(try await body()))
        } catch {
            race.end(.failure(error))
        }
    }
    let limit = Task {
        try await Task.sleep(for: .seconds(seconds))
        guard !race.hasEnded else { return }
        let error = RunLoopTimeLimit(seconds: seconds, report: LoopReport.ofAllLoops)
        guard race.end(.failure(error)) else { return }
        FileHandle.standardError.write(Data("\(error)\n".utf8))
        task.cancel()
    }
    defer { limit.cancel() }
    return try await withTaskCancellationHandler {
        try await withCheckedThrowingContinuation { race.wait($0) }
    } onCancel: {
        task.cancel()
    }
}

/// The first of two ends.
private final class Race<Value: Sendable>: Sendable {
    private enum State {
        case runs
        case isAwaited(CheckedContinuation<Value, any Error>)
        case ended(Result<Value, any Error>)
    }

    private let state = Mutex(State.runs)

    var hasEnded: Bool { state.withLock { if case .ended = $0 { true } else { false } } }

    /// - Returns: False where it has ended before.
    @discardableResult
    func end(_ result: Result<Value, any Error>) -> Bool {
        let (isFirst, waiting) = state.withLock { state -> (Bool, CheckedContinuation<Value, any Error>?) in
            switch state {
            case .ended: return (false, nil)
            case .runs:
                state = .ended(result)
                return (true, nil)
            case .isAwaited(let continuation):
                state = .ended(result)
                return (true, continuation)
            }
        }
        waiting?.resume(with: result)
        return isFirst
    }

    func wait(_ continuation: CheckedContinuation<Value, any Error>) {
        let result = state.withLock { state -> Result<Value, any Error>? in
            if case .ended(let result) = state { return result }
            state = .isAwaited(continuation)
            return nil
        }
        if let result { continuation.resume(with: result) }
    }
}
