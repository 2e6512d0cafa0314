internal import CRondoEv

/// The kernel objects of a run loop: the two descriptors that end its sleep, and an `ev_loop` for each mode.
///
/// It also records refusals of the kernel; the loop goes on without the refused object
/// (`ModeLoop+WithoutEpoll`). Loop's thread only.
final class LoopKernel {
    /// The least number of seconds between two log messages of one loop about refusals of the kernel.
    static let complaintInterval: Double = 60
    /// The shortest sleep that the timerfd ends, in nanoseconds: by as much Linux lets every other sleep of a
    /// thread be late (`PR_SET_TIMERSLACK` of prctl(2)).
    ///
    /// The kernel cannot end a shorter one in time: on a virtual machine it takes 16 to 55 µs to set the
    /// timerfd to the next microsecond. A loop whose timers are a microsecond apart does that after every few
    /// of them: 30 % of the CPU time of W1's million timers.
    private static let shortestSleep: Int64 = 50_000

    private let attention: Attention
    /// Indexed by mode; nil for a mode that has never run.
    private(set) var modeLoops: [ModeLoop?] = []
    private(set) var wakeUp: WakeUp?
    /// The last refusal of the kernel.
    private(set) var refusal: SystemError?
    private var lastComplaint: LoopInstant?
    /// The instant to which the timerfd is set.
    private var armed = LoopInstant.never

    /// - Parameter attention: Receives the `WakeUp` that other threads write to.
    init(_ attention: Attention) {
        self.attention = attention
    }

    /// The libev side of the mode, made when the mode first runs.
    func modeLoop(_ index: Int) -> ModeLoop {
        while modeLoops.count <= index { modeLoops.append(nil) }
        if let modeLoop = modeLoops[index] { return modeLoop }
        let modeLoop = ModeLoop(of: self)
        modeLoops[index] = modeLoop
        acquireKernelObjects(for: modeLoop)
        return modeLoop
    }

    /// Asks the kernel for the objects that a mode lacks. Not to be called under the loop's lock.
    func acquireKernelObjects(for modeLoop: ModeLoop) {
        do throws(SystemError) {
            try modeLoop.acquireKernelObjects(with: intactWakeUp())
        } catch {
            refusal = error
            complain(of: error)
        }
    }

    var wasAskedForAttention: Bool { attention.wasAsked }

    private func intactWakeUp() throws(SystemError) -> WakeUp {
        if let wakeUp, wakeUp.isIntact { return wakeUp }
        let made = try WakeUp()
        wakeUp = made
        armed = .never
        attention.setWakeUp(made)
        return made
    }

    private func complain(of error: SystemError) {
        let now = LoopClock.systemNow
        if let lastComplaint, now.seconds(since: lastComplaint) < Self.complaintInterval { return }
        lastComplaint = now
        Log.core.error(
            """
            The kernel refuses a run loop what it needs (\(error)). The loop goes on: it checks its descriptors by poll(2), \
            and serves requests of other threads up to \(ModeLoop.longestSleepUnwakeable) ms late. Each thread that runs a \
            loop needs two file descriptors, and one more for each mode; raise the limits (ulimit -n, \
            fs.epoll.max_user_watches), or close some. The loop tries again by itself.
            """)
    }

    /// Sets the timerfd so that it ends the sleep at `instant` at the latest, but never to an instant that
    /// has passed, because that would end every sleep.
    ///
    /// A timerfd that is set to an earlier instant, for a timer that has been removed, is left alone: the
    /// loop then wakes once and sleeps again. Setting it would be a system call in each sleep of a request
    /// with a timeout.
    ///
    /// - Returns: False if no timerfd would end the sleep.
    @discardableResult
    func armTimer(noLaterThan instant: LoopInstant, now: LoopInstant) -> Bool {
        let instant = max(instant, now.advanced(byNanoseconds: Self.shortestSleep))
        guard instant < armed || armed <= now else { return true }
        guard let wakeUp, wakeUp.arm(instant) else { return false }
        armed = instant
        return true
    }

    /// Disarms the timerfd: it ends no sleep until it is set again.
    func disarmTimer() {
        guard armed != .never else { return }
        wakeUp?.arm(.never)
        armed = .never
    }

    /// Closes everything, because the thread ends.
    func close() {
        // Freed after the access: the end of a mode's libev side releases sources.
        var closed: [ModeLoop?] = []
        swap(&closed, &modeLoops)
        closed.removeAll()
        wakeUp = nil
        attention.setWakeUp(nil)
        SystemFailure.endThread()
    }
}
