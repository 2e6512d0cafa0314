internal import CRondoEv

/// An epoll set with the descriptors of one mode, for a foreign loop to wait on: libev 4.33 does not expose
/// its own set. Several sources may watch one descriptor, which is in the set once, for the events of all of
/// them.
///
/// Loop's thread only.
final class DescriptorMirror {
    private struct Wanted {
        var reads = 0
        var writes = 0
    }

    let descriptor: Int32
    private var wanted: [Int32: Wanted] = [:]
    /// Descriptors that epoll refuses because they are always ready: regular files.
    private var alwaysReady: Set<Int32> = []

    init() throws(SystemError) {
        descriptor = try systemCall("epoll_create1") { rondo_epoll() }
    }

    deinit { close(descriptor) }

    var isAlwaysReady: Bool { !alwaysReady.isEmpty }

    /// - Parameter events: `EV_READ | EV_WRITE`.
    /// - Returns: The kernel's error, if the descriptor could not be added.
    func add(_ other: Int32, events: Int32) -> SystemError? {
        guard let refusal = change(other, events, by: 1) else { return nil }
        remove(other, events: events)
        return refusal
    }

    func remove(_ other: Int32, events: Int32) { change(other, events, by: -1) }

    @discardableResult
    private func change(_ other: Int32, _ events: Int32, by step: Int) -> SystemError? {
        var counts = wanted[other] ?? Wanted()
        if events & Int32(EV_READ) != 0 { counts.reads += step }
        if events & Int32(EV_WRITE) != 0 { counts.writes += step }
        let isWanted = counts.reads > 0 || counts.writes > 0
        wanted[other] = isWanted ? counts : nil
        do throws(SystemError) {
            _ = try systemCall("epoll_ctl") {
                rondo_epoll_set(descriptor, other, counts.reads > 0 ? 1 : 0, counts.writes > 0 ? 1 : 0)
            }
            alwaysReady.remove(other)
            return nil
        } catch {
            if isWanted && error.code == EPERM {
                alwaysReady.insert(other)
                return nil
            }
            alwaysReady.remove(other)
            // A descriptor that is removed may already be closed; closing has taken it out of the set.
            return isWanted ? error : nil
        }
    }
}
