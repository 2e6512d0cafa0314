internal import CEv

/// The two descriptors that end a run loop's sleep: an eventfd that any thread may write, and a timerfd that
/// only the loop's thread arms. libev watches both in every mode.
final class WakeUp: Sendable {
    let eventDescriptor: Int32
    let timerDescriptor: Int32

    init() throws(SystemError) {
        eventDescriptor = try systemCall("eventfd") { rondo_eventfd() }
        do {
            timerDescriptor = try systemCall("timerfd_create") { rondo_timerfd() }
        } catch {
            close(eventDescriptor)
            throw error
        }
    }

    deinit {
        close(eventDescriptor)
        close(timerDescriptor)
    }

    /// Ends the loop's sleep. Any thread; whoever calls holds a reference, so the descriptor is still ours.
    func wake() {
        // The only failure of this write is a counter that is full, and then the loop is being woken already.
        _ = try? systemCall("eventfd_write") { eventfd_write(eventDescriptor, 1) }
    }

    /// Empties the eventfd. Loop's thread only.
    func drain() {
        var count: eventfd_t = 0
        // Fails with EAGAIN where somebody else has emptied it: nothing is lost.
        _ = try? systemCall("eventfd_read") { eventfd_read(eventDescriptor, &count) }
    }

    /// Ends the sleep at `instant`; `.never` disarms. Setting the timer anew clears an expiry that has not
    /// been read, so it is never read. Loop's thread only.
    func arm(_ instant: LoopInstant) {
        let nanoseconds = instant == .never ? 0 : UInt64(max(1, instant.nanoseconds))
        // With a valid descriptor and a normalised time this call has no way to fail.
        _ = rondo_timerfd_arm(timerDescriptor, nanoseconds)
    }
}
