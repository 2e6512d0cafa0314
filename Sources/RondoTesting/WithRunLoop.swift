public import RondoCore
internal import RondoMutex

/// Runs `body` with a run loop that runs in its default mode on a thread of its own, and ends that thread
/// afterwards.
///
/// Swift Testing never runs the main thread's loop, not even for tests of the main actor, so nothing that a
/// test schedules on `RunLoop.main` is called. This function's loop runs while the test awaits:
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
///   - name: The name of the thread, for messages.
///   - clock: The clock of the loop. With a clock, timers of hours take no time.
///   - failsOnLeftovers: Whether sources, timers and blocks that are left on the loop at the end are an
///     error. The error is thrown, and every test library reports that as an issue of the test; this module
///     links none of them (rule XT-9).
///   - timeLimit: Seconds after which the test fails, because `body` has not ended or a callback has not
///     returned. The contents of every loop of the process are printed, with the reasons why they are not
///     delivered, and the task of `body` is cancelled. Nil and `infinity` mean no limit.
/// - Throws: The error of `body`; `RunLoopLeftovers`; `RunLoopTimeLimit`; a POSIX error if no thread can be
///   made.
/// - Note: The thread has ended when this function returns, except after `RunLoopTimeLimit`, because a
///   callback may never return (rules XT-7 to XT-10, XT-12).
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
        // Do not join the thread: `body` or a callback may never return.
        thread.stop()
        throw limit
    }
}

/// Stops the loop of `thread`, and waits until the thread has ended.
private func end(_ thread: RunLoopThread) async {
    thread.stop()
    await withCheckedContinuation { continuation in
        // `join()` blocks, and Swift's concurrency has few threads.
        Thread.detachNewThread {
            thread.join()
            continuation.resume()
        }
    }
}

/// The error of `withRunLoop(failsOnLeftovers: true)`: members that were left on the loop.
public struct RunLoopLeftovers: Error, CustomStringConvertible {
    /// One line for each source, timer and kind of block, with its mode.
    public let members: [String]

    public var description: String {
        "left on the run loop at the end of the test: \(members.joined(separator: "; "))"
    }
}

/// The error of `withRunLoop` for a test that has not ended within its time limit.
public struct RunLoopTimeLimit: Error, CustomStringConvertible {
    /// The limit, in seconds.
    public let seconds: TimeInterval
    /// The contents of every run loop of the process when the time expired, and the reasons why they were not
    /// delivered.
    public let report: String

    public var description: String { "not done after \(seconds.formatted()) s\n\(report)" }
}

/// Describes the contents of every run loop of the process, and why they are not delivered. For a test that
/// waits in vain. Any thread.
public func explainRunLoops() -> String { LoopReport.ofAllLoops }

/// A limit in seconds that no test reaches: thirty years. `Duration` traps on much larger numbers.
private let endlessLimit: TimeInterval = 1e9

/// Runs `body` in a task of its own, and stops waiting at the limit.
private func withTimeLimit<Value: Sendable>(
    _ seconds: TimeInterval?, _ body: @escaping @Sendable () async throws -> Value
) async throws -> Value {
    // This comparison is false for NaN too.
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

/// Keeps the first of two outcomes.
private final class Race<Value: Sendable>: Sendable {
    private enum State {
        case runs
        case isAwaited(CheckedContinuation<Value, any Error>)
        case ended(Result<Value, any Error>)
    }

    private let state = Mutex(State.runs)

    var hasEnded: Bool { state.withLock { if case .ended = $0 { true } else { false } } }

    /// - Returns: False if there was an outcome before.
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
