internal import CRondoEv

/// The two descriptors that end a run loop's sleep: an eventfd that any thread may write to, and a timerfd
/// that only the loop's thread arms. libev watches both in every mode.
final class WakeUp: Sendable {
    let eventDescriptor: Int32
    let timerDescriptor: Int32

    init() throws(SystemError) {
        eventDescriptor = try Self.make("eventfd") { rondo_eventfd() }
        do throws(SystemError) {
            timerDescriptor = try Self.make("timerfd_create") { rondo_timerfd() }
        } catch {
            OwnDescriptors.remove(eventDescriptor)
            close(eventDescriptor)
            throw error
        }
    }

    deinit {
        for descriptor in [eventDescriptor, timerDescriptor] {
            OwnDescriptors.remove(descriptor)
            close(descriptor)
        }
    }

    private static func make(_ name: StaticString, _ body: () -> Int32) throws(SystemError) -> Int32 {
        var made = Result<Int32, SystemError>.failure(SystemError("\(name)", code: 0))
        OwnDescriptors.add {
            do throws(SystemError) {
                let descriptor = try systemCall(name, body)
                made = .success(descriptor)
                return descriptor
            } catch {
                made = .failure(error)
                return nil
            }
        }
        return try made.get()
    }

    /// Whether the descriptors are still open: a program may have closed descriptors that are not its own.
    var isIntact: Bool {
        rondo_descriptor_kind(eventDescriptor) == 1 && rondo_descriptor_kind(timerDescriptor) == 1
    }

    /// Ends the loop's sleep. Any thread may call this: the caller retains this object, so the descriptor is
    /// open.
    func wake() {
        // The only failure of this write is a full counter, and then the loop is already being woken.
        _ = try? systemCall("eventfd_write") { eventfd_write(eventDescriptor, 1) }
    }

    /// Empties the eventfd. Loop's thread only.
    func drain() {
        var count: eventfd_t = 0
        // Fails with EAGAIN if the eventfd is already empty: nothing is lost.
        _ = try? systemCall("eventfd_read") { eventfd_read(eventDescriptor, &count) }
    }

    /// Ends the sleep at `instant`; `.never` disarms. Setting the timer clears an expiry that has not been
    /// read, so expiries are normally never read. Loop's thread only.
    ///
    /// - Returns: False if the timer could not be set. A pending expiry has then been read, because it would
    ///   end every sleep.
    @discardableResult
    func arm(_ instant: LoopInstant) -> Bool {
        let nanoseconds = instant == .never ? 0 : UInt64(max(1, instant.nanoseconds))
        if rondo_timerfd_arm(timerDescriptor, nanoseconds) == 0 { return true }
        // With a valid descriptor and a normalised time this call cannot fail.
        var expiries: UInt64 = 0
        _ = read(timerDescriptor, &expiries, MemoryLayout<UInt64>.size)
        return false
    }
}
