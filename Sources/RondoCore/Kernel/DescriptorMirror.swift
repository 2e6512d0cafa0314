internal import CRondoEv

/// An epoll set with the descriptors of one mode, for a foreign loop to wait on: libev 4.33 does not expose
/// its own set. Several sources may watch one descriptor, which is in the set once, for the events of all of
/// them.
///
/// A closed descriptor stays in an epoll set, and is reported, while another descriptor has the same open
/// file; by its number it can be removed no more (epoll(7)). So the descriptors are in an inner set, which is
/// replaced when it reports one that has left the mode.
///
/// Loop's thread only.
final class DescriptorMirror {
    private struct Wanted {
        /// Comes with the descriptor's events: its number, and above that a count, by which files that had
        /// the same number one after the other are told apart.
        let tag: UInt64
        var reads = 0
        var writes = 0
    }

    /// The outer set, which watches the inner one and nothing else.
    let descriptor: Int32
    private var inner: Int32
    private var wanted: [Int32: Wanted] = [:]
    private var lastTag: UInt64 = 0
    /// Descriptors that epoll refuses because they are always ready: regular files.
    private var alwaysReady: Set<Int32> = []
    /// A descriptor could not be removed from the inner set.
    private var mayHaveStrays = false

    init() throws(SystemError) {
        descriptor = try systemCall("epoll_create1") { rondo_epoll() }
        do throws(SystemError) {
            inner = try Self.makeSet(within: descriptor)
        } catch {
            close(descriptor)
            throw error
        }
    }

    deinit {
        Self.giveUp(inner, within: descriptor)
        close(descriptor)
    }

    var isAlwaysReady: Bool { !alwaysReady.isEmpty }

    /// - Parameter events: `EV_READ | EV_WRITE`.
    /// - Returns: The kernel's error, if the descriptor could not be added.
    func add(_ other: Int32, events: Int32) -> SystemError? {
        guard let refusal = change(other, events, by: 1) else { return nil }
        // It has come into no set, so that it cannot stay behind in one.
        change(other, events, by: -1)
        return refusal
    }

    func remove(_ other: Int32, events: Int32) {
        // It may be closed already, and its number may be another file's.
        if change(other, events, by: -1) != nil { mayHaveStrays = true }
    }

    /// - Returns: The kernel's error, if it refuses the change of a descriptor that is, or is to be, in the
    ///   set.
    @discardableResult
    private func change(_ other: Int32, _ events: Int32, by step: Int) -> SystemError? {
        var counts = wanted[other] ?? Wanted(tag: makeTag(for: other))
        if events & Int32(EV_READ) != 0 { counts.reads += step }
        if events & Int32(EV_WRITE) != 0 { counts.writes += step }
        let isWanted = counts.reads > 0 || counts.writes > 0
        wanted[other] = isWanted ? counts : nil
        let refusal = set(other, counts, in: inner)
        if isWanted, refusal?.code == EPERM {
            alwaysReady.insert(other)
            return nil
        }
        let wasInNoSet = alwaysReady.remove(other) != nil
        return wasInNoSet && !isWanted ? nil : refusal
    }

    private func makeTag(for other: Int32) -> UInt64 {
        lastTag += 1
        return lastTag << 32 | UInt64(UInt32(bitPattern: other))
    }

    /// - Returns: The kernel's error, if it refuses the change.
    private func set(_ other: Int32, _ counts: Wanted, in set: Int32) -> SystemError? {
        do throws(SystemError) {
            _ = try systemCall("epoll_ctl") {
                rondo_epoll_set_tagged(
                    set, other, counts.reads > 0 ? 1 : 0, counts.writes > 0 ? 1 : 0, counts.tag)
            }
            return nil
        } catch {
            return error
        }
    }

    // MARK: The inner set

    /// Replaces the inner set if it reports a descriptor that is not wanted any more. If the kernel has no
    /// room for another set, the next call tries again.
    func removeStrays() {
        guard mayHaveStrays, reportsStray, let made = try? Self.makeSet(within: descriptor) else { return }
        let isComplete = wanted.allSatisfy { other, counts in
            if alwaysReady.contains(other) { return true }
            // Any other error means that the program has closed the descriptor too early; its source is told
            // (rule SRC-27).
            return ![ENOMEM, ENOSPC].contains(set(other, counts, in: made)?.code)
        }
        guard isComplete else { return Self.giveUp(made, within: descriptor) }
        Self.giveUp(inner, within: descriptor)
        inner = made
        mayHaveStrays = false
    }

    private var reportsStray: Bool {
        // On the stack: after the first closed descriptor each turn looks.
        withUnsafeTemporaryAllocation(of: UInt64.self, capacity: 16) { tags in
            let count = max(0, Int(rondo_epoll_ready(inner, tags.baseAddress!)))
            return tags.prefix(count).contains { wanted[Int32(truncatingIfNeeded: $0)]?.tag != $0 }
        }
    }

    /// Makes a set that `outer` watches.
    private static func makeSet(within outer: Int32) throws(SystemError) -> Int32 {
        var (made, code): (Int32, Int32) = (-1, 0)
        OwnDescriptors.add {
            made = rondo_epoll()
            code = errno
            return made
        }
        guard made >= 0 else { throw SystemError("epoll_create1", code: code) }
        guard rondo_epoll_set(outer, made, 1, 0) == 0 else {
            code = errno
            giveUp(made, within: outer)
            throw SystemError("epoll_ctl", code: code)
        }
        return made
    }

    private static func giveUp(_ set: Int32, within outer: Int32) {
        _ = rondo_epoll_remove(outer, set)
        OwnDescriptors.remove(set)
        close(set)
    }
}
