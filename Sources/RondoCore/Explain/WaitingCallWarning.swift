internal import Logging

/// The warning about a closure that another thread has to run, and for which the caller has waited in vain.
enum WaitingCallWarning {
    /// Warns that `call`, made for `modes` of `loop`, has not been answered for `seconds`. Called on the
    /// waiting thread.
    static func log(
        _ call: WaitingCalls.Call, on loop: RunLoop, inModes modes: [RunLoop.Mode],
        after seconds: TimeInterval
    ) {
        let target = call.nameOfTarget()
        let obstacle = DeliveryObstacle(modes: modes.map { (loop, $0) })
        let further = WaitingCalls.targetsCall(of: call).map {
            "; \(target) waits itself, for \($0.nameOfTarget())"
        }
        Log.core.warning(
            """
            For \(seconds.formatted()) s \(call.waiter) has waited for a closure that it performed on \(target): \
            \(obstacle.description)\(further ?? ""). A thread that waits runs no loop: perform without waiting, or \
            run the loop that is waited for.
            """)
    }
}
