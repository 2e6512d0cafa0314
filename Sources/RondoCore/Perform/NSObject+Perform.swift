// `performSelector:withObject:afterDelay:` and its kin. Linux has no selectors: closures and method
// references replace them.

extension NSObjectProtocol where Self: NSObject {
    /// Calls `body` with this object once on the calling thread's loop, after `delay` seconds at the
    /// earliest, while the loop runs in one of `modes` (rules PL-1 to PL-10).
    ///
    /// - Parameters:
    ///   - key: Replaces the selector: `cancelPreviousPerformRequests(withTarget:key:)` finds the request by
    ///     it.
    ///   - delay: Seconds. 0 or less: in the next pass, never before this returns.
    ///   - modes: `.common` stands for every common mode. With an empty array nothing happens.
    ///   - body: Kept, together with this object, until it is called or cancelled.
    /// - Returns: The request, by which it can be cancelled.
    @available(*, noasync, message: "A task has no thread of its own; sleep in it, or add a timer to a loop.")
    @discardableResult
    public func perform(
        key: AnyHashable? = nil, afterDelay delay: TimeInterval, inModes modes: [RunLoop.Mode] = [.default],
        _ body: @escaping (Self) -> Void
    ) -> PerformRequest {
        PerformRequest(
            PerformRequest.Content(target: self, key: key) { [self] in body(self) }, afterDelay: delay,
            inModes: modes)
    }

    /// Calls a method of this object, named by its type (`Model.save`), as
    /// `perform(key:afterDelay:inModes:_:)` calls a closure.
    @available(*, noasync, message: "A task has no thread of its own; sleep in it, or add a timer to a loop.")
    @discardableResult
    public func perform(
        _ method: @escaping (Self) -> () -> Void, afterDelay delay: TimeInterval,
        inModes modes: [RunLoop.Mode] = [.default]
    ) -> PerformRequest {
        perform(afterDelay: delay, inModes: modes) { method($0)() }
    }

    /// Calls a method of this object with `argument`, which is kept until the call.
    @available(*, noasync, message: "A task has no thread of its own; sleep in it, or add a timer to a loop.")
    @discardableResult
    public func perform<Argument>(
        _ method: @escaping (Self) -> (Argument) -> Void, with argument: Argument,
        afterDelay delay: TimeInterval, inModes modes: [RunLoop.Mode] = [.default]
    ) -> PerformRequest {
        perform(afterDelay: delay, inModes: modes) { method($0)(argument) }
    }
}

extension NSObjectProtocol where Self: NSObject & Sendable {
    /// Calls `body` with this object on a new thread, which ends when `body` returns. The thread has a run
    /// loop of its own, which is not run unless `body` runs it (rule PL-18).
    ///
    /// If the system has no thread left, that is logged, and `body` is not called.
    public func performInBackground(_ body: @escaping @Sendable (Self) -> Void) {
        do throws(SystemError) {
            try SystemThread.start(name: "rondo.background", blocksSignals: false) { [self] in
                body(self)
            }
        } catch {
            Log.core.error("performInBackground of \(Self.self) has not called the method: \(error).")
        }
    }
}

extension NSObject {
    /// Cancels the requests of `aTarget`, compared by identity, on the calling thread's loop only (rule
    /// PL-8).
    @available(*, noasync, message: "A task has no thread of its own; cancel the requests themselves.")
    public class func cancelPreviousPerformRequests(withTarget aTarget: Any) {
        for request in RunLoop.performRequests(for: aTarget) { request.cancel() }
    }

    /// Cancels the requests of `aTarget` that were made with `key`.
    @available(*, noasync, message: "A task has no thread of its own; cancel the requests themselves.")
    public class func cancelPreviousPerformRequests(withTarget aTarget: Any, key: AnyHashable) {
        for request in RunLoop.performRequests(for: aTarget) where request.has(key) { request.cancel() }
    }
}
